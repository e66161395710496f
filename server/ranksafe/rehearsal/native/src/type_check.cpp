#include "type_check.h"

#include <ATen/core/Tensor.h>

#include <unordered_map>

namespace ranksafe {

const char* kernel_without_whole_numbers(const std::string& operator_name) {
  // cuBLAS has no products of whole numbers. The names are those in libtorch_cuda of torch 2.15.0.
  static const auto* names = new std::unordered_map<std::string, const char*>{
      {"aten::mm", "addmm_cuda"},
      {"aten::mm.out", "addmm_cuda"},
      {"aten::addmm", "addmm_cuda"},
      {"aten::addmm_", "addmm_cuda"},
      {"aten::addmm.out", "addmm_cuda"},
      {"aten::bmm", "baddbmm_cuda"},
      {"aten::bmm.out", "baddbmm_cuda"},
      {"aten::baddbmm", "baddbmm_cuda"},
      {"aten::baddbmm_", "baddbmm_cuda"},
      {"aten::baddbmm.out", "baddbmm_cuda"},
      {"aten::addmv", "addmv_impl_cuda"},
      {"aten::addmv_", "addmv_impl_cuda"},
      {"aten::addmv.out", "addmv_impl_cuda"},
      {"aten::dot", "dot"},
  };
  const auto found = names->find(operator_name);
  return found == names->end() ? nullptr : found->second;
}

void check_types(const OperatorPlan& plan, const c10::IValue* arguments) {
  for (const PlannedArgument& argument : plan.arguments) {
    const c10::IValue& value = arguments[argument.position];
    if (argument.kind != ArgumentKind::tensor || argument.written || !value.isTensor()) {
      continue;
    }
    const at::Tensor& tensor = value.toTensor();
    // Products without elements return before a kernel is chosen.
    const bool refused = tensor.defined() && tensor.numel() > 0 &&
        c10::isIntegralType(tensor.scalar_type(), /*includeBool=*/true);
    TORCH_CHECK_NOT_IMPLEMENTED(
        !refused, '"', plan.kernel_without_whole_numbers, "\" not implemented for '", tensor.scalar_type(), "'");
  }
}

} // namespace ranksafe
