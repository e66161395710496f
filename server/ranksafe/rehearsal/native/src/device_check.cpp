#include "device_check.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/op_registration/adaption.h>

#include <atomic>

namespace ranksafe {
namespace {

std::atomic<bool> checks_enabled{true};
thread_local bool composite_has_decided = false;

// A Python number: no device of its own.
bool is_number(const at::Tensor& tensor) {
  return tensor.is_cpu() && tensor.unsafeGetTensorImpl()->is_wrapped_number();
}

bool is_zero_dimensional(const at::Tensor& tensor) {
  return tensor.dim() == 0;
}

bool on_one_device(const OperatorPlan& plan, const c10::IValue* arguments) {
  std::optional<c10::Device> common;
  bool same = true;
  for_each_tensor(plan, arguments, [&](const at::Tensor& tensor, const PlannedArgument&) {
    if (common.has_value()) {
      same = same && (*common == tensor.device() || is_number(tensor));
    } else if (!is_number(tensor)) {
      common = tensor.device();
    }
  });
  return same;
}

[[noreturn]] void raise_two_devices(c10::Device first, c10::Device second) {
  TORCH_CHECK(
      false,
      "Expected all tensors to be on the same device, but found at least two devices, ",
      first,
      " and ",
      second,
      "!");
}

void check_as_wrapper(const OperatorPlan& plan, const c10::IValue* arguments) {
  std::optional<c10::Device> common;
  for_each_tensor(plan, arguments, [&](const at::Tensor& tensor, const PlannedArgument& argument) {
    if ((argument.keyword_only && !argument.written) || is_number(tensor)) {
      return;
    }
    c10::impl::check_and_update_common_device(common, tensor, plan.wrapper.c_str(), argument.name.c_str());
  });
  // Wrappers leave keyword arguments to the kernels, each of which fails in a way of its own.
  for_each_tensor(plan, arguments, [&](const at::Tensor& tensor, const PlannedArgument& argument) {
    if (argument.keyword_only && !argument.written && common.has_value() && tensor.device() != *common) {
      raise_two_devices(*common, tensor.device());
    }
  });
}

// TensorIteratorBase::compute_types of torch 2.13 and 2.15: one CPU scalar may come along.
void check_as_iterator(const OperatorPlan& plan, const c10::IValue* arguments) {
  std::optional<c10::Device> common;
  for_each_tensor(plan, arguments, [&](const at::Tensor& tensor, const PlannedArgument&) {
    if (!common.has_value() && !tensor.is_cpu()) {
      common = tensor.device();
    }
  });
  int scalars = 0;
  for_each_tensor(plan, arguments, [&](const at::Tensor& tensor, const PlannedArgument& argument) {
    if (!common.has_value() || tensor.device() == *common) {
      return;
    }
    if (tensor.is_cpu() && is_zero_dimensional(tensor) && !argument.written) {
      TORCH_CHECK(++scalars <= 1, "Trying to pass too many CPU scalars to non-CPU kernel!");
      return;
    }
    raise_two_devices(*common, tensor.device());
  });
}

const at::Tensor& tensor_at(const c10::IValue* arguments, std::size_t position) {
  return arguments[position].toTensor();
}

// index and index_put_ (ATen/native/TensorAdvancedIndexing.cpp): (self, indices, values or nothing).
void check_indexing(const OperatorPlan& plan, const c10::IValue* arguments) {
  const at::Tensor& self = tensor_at(arguments, 0);
  for (const c10::IValue& element : arguments[1].toListRef()) {
    if (!element.isTensor() || !element.toTensor().defined()) {
      continue;
    }
    const at::Tensor& index = element.toTensor();
    TORCH_CHECK(
        index.is_cpu() || index.device() == self.device(),
        "indices should be either on ",
        c10::DeviceType::CPU,
        " or on the same device as the indexed tensor (",
        self.device(),
        ")");
  }
  for (const PlannedArgument& argument : plan.arguments) {
    if (argument.position < 2 || argument.kind != ArgumentKind::tensor) {
      continue;
    }
    const at::Tensor& values = tensor_at(arguments, argument.position);
    const bool converted = values.numel() == 1 && is_zero_dimensional(values) && !argument.written;
    if (values.device() != self.device() && !converted) {
      raise_two_devices(self.device(), values.device());
    }
  }
}

void check_where(const OperatorPlan& plan, const c10::IValue* arguments) {
  const at::Tensor* first = nullptr;
  for_each_tensor(plan, arguments, [&](const at::Tensor& tensor, const PlannedArgument&) {
    if (is_zero_dimensional(tensor)) {
      return;
    }
    if (first == nullptr) {
      first = &tensor;
    } else if (first->device() != tensor.device()) {
      const bool swapped = first->is_cpu();
      raise_two_devices((swapped ? tensor : *first).device(), (swapped ? *first : tensor).device());
    }
  });
}

void check_masked_fill(const OperatorPlan& plan, const c10::IValue* arguments) {
  const at::Tensor& self = tensor_at(arguments, 0);
  const at::Tensor& mask = tensor_at(arguments, 1);
  TORCH_CHECK(
      self.device() == mask.device(),
      "expected self and mask to be on the same device, but got mask on ",
      mask.device(),
      " and self on ",
      self.device());
  if (plan.arguments.size() > 2) {
    const at::Tensor& value = tensor_at(arguments, 2);
    TORCH_CHECK(
        value.is_cpu() || value.device() == self.device(),
        "masked_fill: Expected inputs to be on same device");
  }
}

// check_input_same_type_as_parameters of ATen/native/Convolution.cpp, then cuDNN's wrapper.
void check_convolution(const OperatorPlan& plan, const c10::IValue* arguments) {
  const at::Tensor& input = tensor_at(arguments, 0);
  const at::Tensor& weight = tensor_at(arguments, 1);
  TORCH_CHECK(
      input.options().type_equal(weight.options()),
      "Input type (",
      input.toString(),
      ") and weight type (",
      weight.toString(),
      ") should be the same");
  if (arguments[2].isTensor() && arguments[2].toTensor().defined()) {
    const at::Tensor& bias = tensor_at(arguments, 2);
    TORCH_CHECK(
        input.options().type_equal(bias.options()),
        "Input type (",
        input.toString(),
        ") and bias type (",
        bias.toString(),
        ") should be the same");
  }
  check_as_wrapper(plan, arguments);
}

} // namespace

CheckResult check_devices(const OperatorPlan& plan, const c10::IValue* arguments) {
  if (plan.check == DeviceCheck::none || composite_has_decided || !checks_enabled.load(std::memory_order_relaxed)) {
    return CheckResult::passed;
  }
  if (plan.check == DeviceCheck::convolution) {
    check_convolution(plan, arguments);
    return CheckResult::passed;
  }
  if (C10_LIKELY(on_one_device(plan, arguments))) {
    return CheckResult::passed;
  }
  switch (plan.check) {
    case DeviceCheck::wrapper:
      check_as_wrapper(plan, arguments);
      break;
    case DeviceCheck::indexing:
      check_indexing(plan, arguments);
      break;
    case DeviceCheck::where:
      check_where(plan, arguments);
      break;
    case DeviceCheck::masked_fill:
      check_masked_fill(plan, arguments);
      break;
    default:
      if (plan.composite_without_kernel) {
        return CheckResult::composite_decides;
      }
      check_as_iterator(plan, arguments);
  }
  return CheckResult::passed;
}

CompositeHasDecided::CompositeHasDecided() : previous_(composite_has_decided) {
  composite_has_decided = true;
}

CompositeHasDecided::~CompositeHasDecided() {
  composite_has_decided = previous_;
}

void set_device_checks_enabled(bool enabled) {
  checks_enabled = enabled;
}

} // namespace ranksafe
