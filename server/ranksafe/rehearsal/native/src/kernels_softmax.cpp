// Softmax with the conversion from half to single precision, which only CUDA's kernels have.
#include "kernels.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/_log_softmax.h>
#include <ATen/ops/_log_softmax_backward_data.h>
#include <ATen/ops/_softmax.h>
#include <ATen/ops/_softmax_backward_data.h>

namespace ranksafe {
namespace {

at::Tensor raised(const at::Tensor& input, bool half_to_float) {
  if (!half_to_float) {
    return input;
  }
  TORCH_CHECK(
      input.scalar_type() == at::kHalf || input.scalar_type() == at::kBFloat16,
      "conversion is supported for Half and BFloat16 type only");
  return input.to(at::kFloat);
}

at::Tensor softmax(const at::Tensor& self, int64_t dim, bool half_to_float) {
  return at::_softmax(raised(self, half_to_float), dim, false);
}

at::Tensor log_softmax(const at::Tensor& self, int64_t dim, bool half_to_float) {
  return at::_log_softmax(raised(self, half_to_float), dim, false);
}

at::Tensor& softmax_out(const at::Tensor& self, int64_t dim, bool half_to_float, at::Tensor& out) {
  const at::Tensor result = softmax(self, dim, half_to_float);
  return out.resize_(result.sizes()).copy_(result);
}

at::Tensor& log_softmax_out(const at::Tensor& self, int64_t dim, bool half_to_float, at::Tensor& out) {
  const at::Tensor result = log_softmax(self, dim, half_to_float);
  return out.resize_(result.sizes()).copy_(result);
}

at::Tensor softmax_backward(const at::Tensor& grad, const at::Tensor& output, int64_t dim, at::ScalarType input) {
  return at::_softmax_backward_data(grad, output, dim, grad.scalar_type()).to(input);
}

at::Tensor log_softmax_backward(const at::Tensor& grad, const at::Tensor& output, int64_t dim, at::ScalarType input) {
  return at::_log_softmax_backward_data(grad, output, dim, grad.scalar_type()).to(input);
}

at::Tensor& softmax_backward_out(
    const at::Tensor& grad,
    const at::Tensor& output,
    int64_t dim,
    at::ScalarType input,
    at::Tensor& out) {
  const at::Tensor result = softmax_backward(grad, output, dim, input);
  return out.resize_(result.sizes()).copy_(result);
}

at::Tensor& log_softmax_backward_out(
    const at::Tensor& grad,
    const at::Tensor& output,
    int64_t dim,
    at::ScalarType input,
    at::Tensor& out) {
  const at::Tensor result = log_softmax_backward(grad, output, dim, input);
  return out.resize_(result.sizes()).copy_(result);
}

} // namespace

void register_softmax_kernels(torch::Library& host) {
  host.impl("_softmax", TORCH_FN(softmax));
  host.impl("_log_softmax", TORCH_FN(log_softmax));
  host.impl("_softmax.out", TORCH_FN(softmax_out));
  host.impl("_log_softmax.out", TORCH_FN(log_softmax_out));
  host.impl("_softmax_backward_data", TORCH_FN(softmax_backward));
  host.impl("_log_softmax_backward_data", TORCH_FN(log_softmax_backward));
  host.impl("_softmax_backward_data.out", TORCH_FN(softmax_backward_out));
  host.impl("_log_softmax_backward_data.out", TORCH_FN(log_softmax_backward_out));
}

} // namespace ranksafe
