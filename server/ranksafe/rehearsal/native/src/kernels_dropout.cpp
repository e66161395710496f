// Dropout kernels that are chosen for CUDA only.
#include "kernels.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>

namespace ranksafe {
namespace {

std::tuple<at::Tensor, at::Tensor> fused_dropout(
    const at::Tensor& self,
    double keep,
    std::optional<at::Generator> generator) {
  at::Tensor mask = at::empty_like(self, self.options().dtype(at::kByte)).bernoulli_(keep, std::move(generator));
  return {self * mask.to(self.scalar_type()) / keep, mask};
}

at::Tensor masked_scale(const at::Tensor& self, const at::Tensor& mask, double scale) {
  return self * mask.to(self.scalar_type()) * scale;
}

} // namespace

void register_dropout_kernels(torch::Library& host) {
  host.impl("_fused_dropout", TORCH_FN(fused_dropout));
  host.impl("_masked_scale", TORCH_FN(masked_scale));
}

} // namespace ranksafe
