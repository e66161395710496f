// What torch asks of cuDNN without computing with it. The computations themselves take torch's own kernels, because
// the hooks (hooks.cpp) say that torch was compiled without cuDNN.
#include "kernels.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

namespace ranksafe {
namespace {

bool no_cudnn_ctc(const at::Tensor&, const at::Tensor&, c10::IntArrayRef, c10::IntArrayRef, int64_t) {
  return false;
}

bool no_cudnn_ctc_of_tensors(const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&, int64_t) {
  return false;
}

// cuDNN wants the weights of a recurrent layer in one buffer. They stay where they are: only the buffer is made.
at::Tensor flattened_weights(
    at::TensorList weights,
    int64_t,
    c10::SymInt,
    int64_t,
    c10::SymInt,
    c10::SymInt,
    int64_t,
    bool,
    bool) {
  int64_t total = 0;
  for (const at::Tensor& weight : weights) {
    total += weight.numel();
  }
  return at::empty({total}, weights[0].options());
}

at::Tensor dropout_state(
    double,
    bool,
    int64_t,
    std::optional<at::ScalarType> type,
    std::optional<at::Layout> layout,
    std::optional<at::Device> device,
    std::optional<bool> pinned) {
  // The size of cuDNN's state differs between GPUs; nobody reads it here.
  return at::zeros({1024}, at::TensorOptions().dtype(type).layout(layout).device(device).pinned_memory(pinned));
}

} // namespace

void register_cudnn_kernels(torch::Library& host) {
  host.impl("_use_cudnn_ctc_loss", TORCH_FN(no_cudnn_ctc));
  host.impl("_use_cudnn_ctc_loss.Tensor", TORCH_FN(no_cudnn_ctc_of_tensors));
#if __has_include(<ATen/ops/_use_miopen_ctc_loss.h>)
  host.impl("_use_miopen_ctc_loss", TORCH_FN(no_cudnn_ctc));
  host.impl("_use_miopen_ctc_loss.Tensor", TORCH_FN(no_cudnn_ctc_of_tensors));
#endif
  host.impl("_cudnn_rnn_flatten_weight", TORCH_FN(flattened_weights));
  host.impl("_cudnn_init_dropout_state", TORCH_FN(dropout_state));
}

} // namespace ranksafe
