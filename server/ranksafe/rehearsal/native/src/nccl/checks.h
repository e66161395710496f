// What ProcessGroupNCCL demands of tensors, in its words (torch 2.15).
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace ranksafe::nccl {

/// A dense tensor on a device, contiguous in its own memory format. Throws ValueError or TypeError.
void check_tensor(const at::Tensor& tensor);
/// As above; a point-to-point tensor that is not contiguous is only warned about.
void check_tensor_for_peer(const at::Tensor& tensor);
/// Tensors of one type on one device. Throws ValueError or TypeError.
void check_tensor_list(const std::vector<at::Tensor>& tensors);
/// Exactly one tensor, as since the end of several devices per thread. Throws RuntimeError.
void check_single(size_t tensors);

} // namespace ranksafe::nccl
