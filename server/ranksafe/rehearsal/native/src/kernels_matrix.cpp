// Matrix products with a result of a higher precision than their arguments', and the fused RMS norm's backward pass.
#include "kernels.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/mm.h>
#if __has_include(<ATen/ops/_fused_rms_norm_backward.h>)
#include <ATen/ops/_fused_rms_norm_backward.h>
#endif

namespace ranksafe {
namespace {

void require_output_type(const at::Tensor& self, at::ScalarType type) {
  TORCH_CHECK(
      type == self.scalar_type() ||
          (type == at::kFloat && (self.scalar_type() == at::kHalf || self.scalar_type() == at::kBFloat16)),
      "out_dtype must be the same as input dtype or fp32 for fp16/bf16 inputs");
}

at::Tensor mm_with_type(const at::Tensor& self, const at::Tensor& other, at::ScalarType type) {
  require_output_type(self, type);
  return at::mm(self.to(type), other.to(type));
}

at::Tensor bmm_with_type(const at::Tensor& self, const at::Tensor& other, at::ScalarType type) {
  require_output_type(self, type);
  return at::bmm(self.to(type), other.to(type));
}

at::Tensor addmm_with_type(
    const at::Tensor& self,
    const at::Tensor& left,
    const at::Tensor& right,
    at::ScalarType type,
    const at::Scalar& beta,
    const at::Scalar& alpha) {
  require_output_type(left, type);
  return at::addmm(self.to(type), left.to(type), right.to(type), beta, alpha);
}

at::Tensor baddbmm_with_type(
    const at::Tensor& self,
    const at::Tensor& left,
    const at::Tensor& right,
    at::ScalarType type,
    const at::Scalar& beta,
    const at::Scalar& alpha) {
  require_output_type(left, type);
  return at::baddbmm(self.to(type), left.to(type), right.to(type), beta, alpha);
}

// The result is complete before it is written: `out` may be one of the arguments.
at::Tensor& written_to(at::Tensor& out, const at::Tensor& result) {
  out.resize_(result.sizes());
  return out.copy_(result);
}

at::Tensor& mm_with_type_out(
    const at::Tensor& self, const at::Tensor& other, at::ScalarType type, at::Tensor& out) {
  return written_to(out, mm_with_type(self, other, type));
}

at::Tensor& bmm_with_type_out(
    const at::Tensor& self, const at::Tensor& other, at::ScalarType type, at::Tensor& out) {
  return written_to(out, bmm_with_type(self, other, type));
}

at::Tensor& addmm_with_type_out(
    const at::Tensor& self,
    const at::Tensor& left,
    const at::Tensor& right,
    at::ScalarType type,
    const at::Scalar& beta,
    const at::Scalar& alpha,
    at::Tensor& out) {
  return written_to(out, addmm_with_type(self, left, right, type, beta, alpha));
}

at::Tensor& baddbmm_with_type_out(
    const at::Tensor& self,
    const at::Tensor& left,
    const at::Tensor& right,
    at::ScalarType type,
    const at::Scalar& beta,
    const at::Scalar& alpha,
    at::Tensor& out) {
  return written_to(out, baddbmm_with_type(self, left, right, type, beta, alpha));
}

std::vector<int64_t> last_dims(const at::Tensor& input, std::size_t count) {
  std::vector<int64_t> dims;
  for (auto dim = input.dim() - static_cast<int64_t>(count); dim < input.dim(); ++dim) {
    dims.push_back(dim);
  }
  return dims;
}

std::tuple<at::Tensor, at::Tensor> rms_norm_backward(
    const at::Tensor& gradient,
    const at::Tensor& input,
    c10::IntArrayRef normalized_shape,
    const at::Tensor& inverse_deviation,
    const std::optional<at::Tensor>& weight,
    std::array<bool, 2> wanted) {
  const at::ScalarType type = input.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const auto dims = last_dims(input, normalized_shape.size());
  const at::Tensor normalized = input.to(type) * inverse_deviation.to(type);
  const at::Tensor flow = gradient.to(type);
  const bool weighted = weight.has_value() && weight->defined();
  at::Tensor for_input;
  at::Tensor for_weight;
  if (wanted[0]) {
    const at::Tensor scaled = weighted ? flow * weight->to(type) : flow;
    const at::Tensor projection = (scaled * normalized).mean(dims, /*keepdim=*/true);
    for_input = ((scaled - normalized * projection) * inverse_deviation.to(type)).to(input.scalar_type());
  }
  if (wanted[1] && weighted) {
    for_weight = (flow * normalized).sum_to_size(normalized_shape).to(weight->scalar_type());
  }
  return {for_input, for_weight};
}

} // namespace

void register_matrix_kernels(torch::Library& host) {
  host.impl("mm.dtype", TORCH_FN(mm_with_type));
  host.impl("bmm.dtype", TORCH_FN(bmm_with_type));
  host.impl("addmm.dtype", TORCH_FN(addmm_with_type));
  host.impl("baddbmm.dtype", TORCH_FN(baddbmm_with_type));
  host.impl("mm.dtype_out", TORCH_FN(mm_with_type_out));
  host.impl("bmm.dtype_out", TORCH_FN(bmm_with_type_out));
  host.impl("addmm.dtype_out", TORCH_FN(addmm_with_type_out));
  host.impl("baddbmm.dtype_out", TORCH_FN(baddbmm_with_type_out));
#if __has_include(<ATen/ops/_fused_rms_norm_backward.h>)
  host.impl("_fused_rms_norm_backward", TORCH_FN(rms_norm_backward));
#endif
}

} // namespace ranksafe
