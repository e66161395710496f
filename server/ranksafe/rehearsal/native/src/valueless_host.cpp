#include "valueless_host.h"

#include "forecast_mode.h"
#include "untouched_memory.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/copy_native.h>
#include <ATen/ops/fill_native.h>
#include <ATen/ops/normal_native.h>
#include <ATen/ops/uniform_native.h>
#include <ATen/ops/zero_native.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

namespace ranksafe {
namespace {

bool is_left_out(const at::Tensor& self) {
  if (!is_large(self)) {
    return false;
  }
  mark_valueless(self.storage().data());
  return true;
}

at::Tensor& normal(at::Tensor& self, double mean, double deviation, std::optional<at::Generator> generator) {
  return is_left_out(self) ? self : at::native::normal_(self, mean, deviation, std::move(generator));
}

at::Tensor& uniform(at::Tensor& self, double from, double to, std::optional<at::Generator> generator) {
  return is_left_out(self) ? self : at::native::uniform_(self, from, to, std::move(generator));
}

at::Tensor& fill(at::Tensor& self, const at::Scalar& value) {
  return is_left_out(self) ? self : at::native::fill_(self, value);
}

at::Tensor& zero(at::Tensor& self) {
  return is_left_out(self) ? self : at::native::zero_(self);
}

// What was read from a file is copied: the file's pages are there already, and a small part of a model may be wanted.
at::Tensor& copy(at::Tensor& self, const at::Tensor& source, bool non_blocking) {
  if (source.is_cpu() && is_large(source) && is_large(self) && is_valueless(source.storage().data())) {
    mark_valueless(self.storage().data());
    return self;
  }
  return at::native::copy_(self, source, non_blocking);
}

// torch warns of every kernel that is replaced.
class Silence final : public c10::WarningHandler {
 public:
  void process(const c10::Warning&) override {}
};

} // namespace

void register_valueless_host_kernels() {
  Silence silence;
  const c10::WarningUtils::WarningHandlerGuard guard(&silence);
  auto& host = *new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::CPU, __FILE__, __LINE__);
  host.impl("normal_", TORCH_FN(normal));
  host.impl("uniform_", TORCH_FN(uniform));
  host.impl("fill_.Scalar", TORCH_FN(fill));
  host.impl("zero_", TORCH_FN(zero));
  host.impl("copy_", TORCH_FN(copy));
}

} // namespace ranksafe
