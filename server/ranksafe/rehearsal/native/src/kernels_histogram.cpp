// Histograms of whole numbers, which the CPU's kernel refuses: transformers counts the tokens of each expert so.
#include "kernels.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/histc.h>

namespace ranksafe {
namespace {

at::Tensor histogram(const at::Tensor& self, int64_t bins, const at::Scalar& lowest, const at::Scalar& highest) {
  if (!at::isIntegralType(self.scalar_type(), /*includeBool=*/false)) {
    return at::histc(self, bins, lowest, highest);
  }
  return at::histc(self.to(at::kDouble), bins, lowest, highest).to(self.scalar_type());
}

} // namespace

void register_histogram_kernels(torch::Library& host) {
  host.impl("histc", TORCH_FN(histogram));
}

} // namespace ranksafe
