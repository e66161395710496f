// The kernels that are not the general path of host_execution.h, by area.
#pragma once

#include <torch/library.h>

namespace ranksafe {

// For the CUDA key: tensors of the device go in and come out.
void register_storage_kernels(torch::Library& cuda);

// For `kHostKernels` (operator_plan.h): host tensors go in and come out.
void register_softmax_kernels(torch::Library& host);
void register_recurrent_kernels(torch::Library& host);
void register_batch_norm_kernels(torch::Library& host);
void register_dropout_kernels(torch::Library& host);
void register_matrix_kernels(torch::Library& host);
void register_attention_kernels(torch::Library& host);
void register_cudnn_kernels(torch::Library& host);
void register_histogram_kernels(torch::Library& host);

} // namespace ranksafe
