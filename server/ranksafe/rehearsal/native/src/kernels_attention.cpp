// Scaled dot product attention: which of torch's implementations is taken.
#include "kernels.h"

#include <ATen/core/Tensor.h>

namespace ranksafe {
namespace {

// sdp::SDPBackend::math: composed of ordinary operators, so it has every mask, dropout and gradient.
constexpr int64_t kMathBackend = 0;

int64_t choose_math(
    const at::Tensor&,
    const at::Tensor&,
    const at::Tensor&,
    const std::optional<at::Tensor>&,
    double,
    bool,
    std::optional<double>,
    bool) {
  return kMathBackend;
}

} // namespace

void register_attention_kernels(torch::Library& host) {
  host.impl("_fused_sdp_choice", TORCH_FN(choose_math));
}

} // namespace ranksafe
