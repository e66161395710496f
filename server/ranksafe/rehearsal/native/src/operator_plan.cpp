#include "operator_plan.h"

#include "device_check_table.h"
#include "type_check.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <unordered_set>

namespace ranksafe {
namespace {

// Operators whose CUDA kernels take tensors of several devices, or whose check has its own place (device_check.cpp).
const std::unordered_set<std::string>& free_of_checks() {
  static const auto* names = new std::unordered_set<std::string>{
      "aten::copy_",
      "aten::fill_.Tensor",
      "aten::bernoulli_.Tensor",
      "aten::set_.source_Tensor",
      "aten::is_set_to",
      "aten::_use_cudnn_ctc_loss",
      "aten::_use_cudnn_ctc_loss.Tensor",
      "aten::_use_miopen_ctc_loss",
      "aten::_use_miopen_ctc_loss.Tensor",
      "aten::_validate_compressed_sparse_indices",
      "aten::_nested_from_padded",
      "aten::_nested_view_from_buffer",
      "aten::_scaled_dot_product_efficient_attention_backward", // random state on the host
  };
  return *names;
}

bool starts_with(const std::string& text, const char* prefix) {
  return text.rfind(prefix, 0) == 0;
}

bool takes_lists_of_any_device(const std::string& name) {
  return starts_with(name, "aten::_foreach") || starts_with(name, "aten::_fused_") || starts_with(name, "aten::_amp");
}

// CUDA has no half precision for these either, or they return whole numbers of a fixed type.
bool refuses_low_precision_on_cuda(const std::string& name) {
  static constexpr std::array<const char*, 21> kPrefixes{
      "aten::linalg_",  "aten::_linalg_",        "aten::cholesky",      "aten::_cholesky",       "aten::lu_",
      "aten::triangular_solve", "aten::geqrf",   "aten::orgqr",         "aten::ormqr",           "aten::_lu",
      "aten::igamma",   "aten::_ctc_loss",       "aten::special_",      "aten::_validate",       "aten::segment_reduce",
      "aten::_segment_reduce",  "aten::lgamma_out", "aten::histc", "aten::_cdist", "aten::_euclidean_dist", "aten::_pdist"};
  for (const char* prefix : kPrefixes) {
    if (starts_with(name, prefix)) {
      return true;
    }
  }
  return false;
}

// Measured with torch 2.13: float16 takes 20 to 120 times as long as float32, bfloat16 three times.
bool is_slow_in_low_precision(const std::string& name) {
  static constexpr std::array<const char*, 11> kNames{
      "aten::convolution", "aten::_convolution", "aten::convolution_backward", "aten::mm",
      "aten::addmm",       "aten::bmm",          "aten::baddbmm",              "aten::addbmm",
      "aten::mv",          "aten::addmv",        "aten::_addmm_activation"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

// Those that ask for a handle: aten/src/ATen/native/cuda/Blas.cpp, torch 2.8 to 2.13. An operator that is composed of
// others is not here: they are.
PlannedLibrary matrix_library_of(const c10::OperatorName& name) {
  static const auto* libraries = new std::unordered_map<std::string, PlannedLibrary>{
      {"aten::mm", PlannedLibrary::cublas},
      {"aten::bmm", PlannedLibrary::cublas},
      {"aten::baddbmm", PlannedLibrary::cublas},
      {"aten::baddbmm_", PlannedLibrary::cublas},
      {"aten::addbmm", PlannedLibrary::cublas}, // a CPU kernel of its own, one product after another on CUDA
      {"aten::addbmm_", PlannedLibrary::cublas},
      {"aten::addmv", PlannedLibrary::cublas},
      {"aten::addmv_", PlannedLibrary::cublas},
      {"aten::dot", PlannedLibrary::cublas},
      {"aten::vdot", PlannedLibrary::cublas},
      {"aten::addmm", PlannedLibrary::cublas_or_lt},
      {"aten::addmm_", PlannedLibrary::cublas},
      {"aten::_addmm_activation", PlannedLibrary::cublas_or_lt},
      {"aten::_int_mm", PlannedLibrary::cublas_lt},
      {"aten::_scaled_mm", PlannedLibrary::cublas_lt},
  };
  const auto found = libraries->find(name.name);
  return found == libraries->end() ? PlannedLibrary::none : found->second;
}

std::size_t device_return_count_of(const OperatorPlan& plan) {
  if (starts_with(plan.name, "aten::_nested_tensor_s")) { // sizes, strides, storage offsets
    return 0;
  }
  if (plan.name == "aten::_scaled_dot_product_efficient_attention") { // its random state is on the host
    return 2;
  }
  return plan.return_count;
}

std::optional<ArgumentKind> kind_of(const c10::Argument& argument) {
  c10::TypePtr type = argument.real_type();
  if (auto optional = type->cast<c10::OptionalType>()) {
    type = optional->getElementType();
  }
  switch (type->kind()) {
    case c10::TypeKind::TensorType:
      return ArgumentKind::tensor;
    case c10::TypeKind::DeviceObjType:
      return ArgumentKind::device;
    case c10::TypeKind::GeneratorType:
      return ArgumentKind::generator;
    case c10::TypeKind::ScalarTypeType:
      return ArgumentKind::scalar_type;
    case c10::TypeKind::ListType: {
      const auto element = type->castRaw<c10::ListType>()->getElementType();
      if (element->kind() == c10::TypeKind::TensorType) {
        return ArgumentKind::tensor_list;
      }
      if (auto optional = element->cast<c10::OptionalType>()) {
        if (optional->getElementType()->kind() == c10::TypeKind::TensorType) {
          return ArgumentKind::optional_tensor_list;
        }
      }
      return std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

// The rule of torchgen for kernels that are not structured; the structured ones are in the table.
std::string wrapper_by_rule(const c10::OperatorName& name, const char* key) {
  const std::string base = name.name.substr(name.name.rfind(':') + 1);
  return std::string("wrapper_") + key + "_" + name.overload_name + "_" + base;
}

DeviceCheck check_of(const OperatorPlan& plan, bool in_aten) {
  if (free_of_checks().count(plan.name) > 0 || takes_lists_of_any_device(plan.name)) {
    return DeviceCheck::none;
  }
  static const auto* special = new std::unordered_map<std::string, DeviceCheck>{
      {"aten::index.Tensor", DeviceCheck::indexing},
      {"aten::index.Tensor_out", DeviceCheck::indexing},
      {"aten::_index_put_impl_", DeviceCheck::indexing},
      {"aten::where.self", DeviceCheck::where},
      {"aten::where.self_out", DeviceCheck::where},
      {"aten::masked_fill_.Scalar", DeviceCheck::masked_fill},
      {"aten::masked_fill_.Tensor", DeviceCheck::masked_fill},
      {"aten::convolution", DeviceCheck::convolution},
      {"aten::_convolution", DeviceCheck::convolution},
  };
  const auto found = special->find(plan.name);
  if (found != special->end()) {
    return found->second;
  }
  const bool checked_by_wrapper = in_aten && device_checks_known() && !has_no_device_check(plan.name);
  return checked_by_wrapper ? DeviceCheck::wrapper : DeviceCheck::iterator;
}

c10::DispatchKey host_key_of(c10::DispatchKey device_key) {
  switch (device_key) {
    case c10::DispatchKey::SparseCUDA:
      return c10::DispatchKey::SparseCPU;
    case c10::DispatchKey::SparseCsrCUDA:
      return c10::DispatchKey::SparseCsrCPU;
    case c10::DispatchKey::NestedTensorCUDA:
      return c10::DispatchKey::NestedTensorCPU;
    default:
      return c10::DispatchKey::CPU;
  }
}

const char* wrapper_key(c10::DispatchKey device_key) {
  switch (device_key) {
    case c10::DispatchKey::SparseCUDA:
      return "SparseCUDA";
    case c10::DispatchKey::SparseCsrCUDA:
      return "SparseCsrCUDA";
    case c10::DispatchKey::NestedTensorCUDA:
      return "NestedTensorCUDA";
    default:
      return "CUDA";
  }
}

c10::DispatchKey work_key_of(const c10::OperatorHandle& op, c10::DispatchKey device_key) {
  const c10::DispatchKey host_key = host_key_of(device_key);
  if (device_key == c10::DispatchKey::CUDA && op.hasKernelForDispatchKey(kHostKernels)) {
    return kHostKernels;
  }
  return op.hasComputedKernelForDispatchKey(host_key) ? host_key : c10::DispatchKey::Undefined;
}

} // namespace

OperatorPlan make_plan(const c10::OperatorHandle& op, c10::DispatchKey device_key) {
  const c10::FunctionSchema& schema = op.schema();
  const c10::OperatorName& name = op.operator_name();
  OperatorPlan plan;
  plan.name = name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
  plan.argument_count = schema.arguments().size();
  plan.return_count = schema.returns().size();
  for (std::size_t position = 0; position < plan.argument_count; ++position) {
    const c10::Argument& argument = schema.arguments()[position];
    if (const auto kind = kind_of(argument)) {
      const bool written = argument.alias_info() != nullptr && argument.alias_info()->isWrite();
      plan.has_generator |= *kind == ArgumentKind::generator;
      plan.arguments.push_back({position, *kind, written, argument.kwarg_only(), argument.name()});
    }
  }
  for (const bool out : {true, false}) {
    for (std::size_t index = 0; index < plan.arguments.size(); ++index) {
      const PlannedArgument& argument = plan.arguments[index];
      const bool is_out = argument.keyword_only && argument.written;
      if (is_out == out && argument.kind <= ArgumentKind::optional_tensor_list) {
        plan.check_order.push_back(index);
      }
    }
  }
  const bool in_aten = starts_with(plan.name, "aten::");
  plan.wrapper = device_key == c10::DispatchKey::CUDA ? wrapper_name(plan.name) : std::string();
  if (plan.name == "aten::convolution" || plan.name == "aten::_convolution") {
    plan.wrapper = "wrapper_CUDA__cudnn_convolution"; // what their composite kernels call on a GPU
  }
  if (plan.wrapper.empty()) {
    plan.wrapper = wrapper_by_rule(name, wrapper_key(device_key));
  }
  plan.check = check_of(plan, in_aten);
  plan.draws_without_generator = !plan.has_generator && op.hasTag(at::Tag::nondeterministic_seeded);
  plan.composite_without_kernel = op.hasComputedKernelForDispatchKey(kNoKernels);
  plan.low_precision_retry = in_aten && !refuses_low_precision_on_cuda(plan.name);
  plan.slow_in_low_precision = is_slow_in_low_precision(plan.name);
  plan.device_return_count = device_return_count_of(plan);
  if (device_key == c10::DispatchKey::CUDA) {
    plan.kernel_without_whole_numbers = kernel_without_whole_numbers(plan.name);
    plan.matrix_library = matrix_library_of(name);
  }
  plan.work_key = work_key_of(op, device_key);
  const char* key = wrapper_key(device_key);
  const bool nowhere = in_aten && plan.work_key == c10::DispatchKey::Undefined && device_checks_known() &&
      !is_only_on_cuda(key, plan.name);
  if (nowhere || is_absent(key, plan.name)) {
    plan.absent_from = key;
  }
  return plan;
}

} // namespace ranksafe
