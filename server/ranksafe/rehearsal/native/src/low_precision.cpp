#include "low_precision.h"

#include <ATen/core/List.h>

namespace ranksafe {
namespace {

bool is_low(at::ScalarType type) {
  return type == at::kHalf || type == at::kBFloat16 || type == at::kComplexHalf;
}

at::ScalarType raised_type(at::ScalarType type) {
  return type == at::kComplexHalf ? at::kComplexFloat : at::kFloat;
}

at::ScalarType low_type_of(const c10::IValue& value, ArgumentKind kind) {
  if (kind == ArgumentKind::scalar_type) {
    return value.isInt() ? value.toScalarType() : at::ScalarType::Undefined;
  }
  if (value.isTensor()) {
    return value.toTensor().defined() ? value.toTensor().scalar_type() : at::ScalarType::Undefined;
  }
  if (value.isList()) {
    for (const c10::IValue& element : value.toListRef()) {
      if (element.isTensor() && element.toTensor().defined() && is_low(element.toTensor().scalar_type())) {
        return element.toTensor().scalar_type();
      }
    }
  }
  return at::ScalarType::Undefined;
}

} // namespace

LowPrecisionRetry::LowPrecisionRetry(const OperatorPlan& plan, const torch::jit::Stack& stack)
    : plan_(plan), base_(stack.size() - plan.argument_count) {
  if (!plan.low_precision_retry) {
    return;
  }
  for (const PlannedArgument& argument : plan.arguments) {
    if (argument.kind == ArgumentKind::device || argument.kind == ArgumentKind::generator) {
      continue;
    }
    const at::ScalarType type = low_type_of(stack[base_ + argument.position], argument.kind);
    if (is_low(type)) {
      low_type_ = type;
      arguments_.assign(stack.begin() + static_cast<std::ptrdiff_t>(base_), stack.end());
      return;
    }
  }
}

bool LowPrecisionRetry::applies_to(const std::string& message) const {
  if (arguments_.empty()) {
    return false;
  }
  const bool refused = message.find("not implemented for 'Half'") != std::string::npos ||
      message.find("not implemented for 'BFloat16'") != std::string::npos ||
      message.find("not implemented for 'ComplexHalf'") != std::string::npos ||
      message.find("Unsupported dtype Half") != std::string::npos ||
      message.find("Unsupported dtype BFloat16") != std::string::npos;
  return refused;
}

bool LowPrecisionRetry::is_better_at_once() const {
  if (!plan_.slow_in_low_precision || (low_type_ != at::kHalf && low_type_ != at::kBFloat16)) {
    return false;
  }
  // Of types that differ the kernel itself has to complain.
  for (const c10::IValue& value : arguments_) {
    if (value.isTensor() && value.toTensor().defined() && value.toTensor().scalar_type() != low_type_) {
      return false;
    }
  }
  return true;
}

at::Tensor LowPrecisionRetry::raised_tensor(const at::Tensor& tensor, bool written) {
  if (!tensor.defined() || !is_low(tensor.scalar_type())) {
    return tensor;
  }
  at::Tensor raised = tensor.to(raised_type(tensor.scalar_type()));
  if (written) {
    written_.push_back({tensor, raised});
  }
  return raised;
}

c10::IValue LowPrecisionRetry::raised(const c10::IValue& value, const PlannedArgument& argument) {
  switch (argument.kind) {
    case ArgumentKind::scalar_type:
      return value.isInt() && is_low(value.toScalarType()) ? c10::IValue(raised_type(value.toScalarType())) : value;
    case ArgumentKind::tensor:
      return value.isTensor() ? c10::IValue(raised_tensor(value.toTensor(), argument.written)) : value;
    case ArgumentKind::tensor_list: {
      if (!value.isList()) {
        return value;
      }
      c10::List<at::Tensor> tensors;
      for (const c10::IValue& element : value.toListRef()) {
        tensors.push_back(raised_tensor(element.toTensor(), argument.written));
      }
      return c10::IValue(std::move(tensors));
    }
    default:
      return value;
  }
}

at::Tensor LowPrecisionRetry::lowered(const at::Tensor& tensor) {
  if (!tensor.defined()) {
    return tensor;
  }
  for (const Written& written : written_) {
    if (written.raised.unsafeGetTensorImpl() == tensor.unsafeGetTensorImpl()) {
      return written.original;
    }
  }
  if (tensor.scalar_type() == at::kFloat && low_type_ != at::kComplexHalf) {
    return tensor.to(low_type_);
  }
  if (tensor.scalar_type() == at::kComplexFloat) {
    return tensor.to(at::kComplexHalf);
  }
  return low_type_ == at::kComplexHalf && tensor.scalar_type() == at::kFloat ? tensor.to(at::kHalf) : tensor;
}

void LowPrecisionRetry::run(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  // The kernel that refused may have taken its arguments off already.
  stack->resize(base_);
  stack->insert(stack->end(), arguments_.begin(), arguments_.end());
  for (const PlannedArgument& argument : plan_.arguments) {
    c10::IValue& value = (*stack)[base_ + argument.position];
    value = raised(value, argument);
  }
  op.redispatchBoxed(c10::DispatchKeySet(plan_.work_key), stack);
  for (const Written& written : written_) {
    if (written.original.sizes() != written.raised.sizes()) {
      written.original.resize_(written.raised.sizes());
    }
    written.original.copy_(written.raised);
  }
  for (std::size_t position = base_; position < stack->size(); ++position) {
    c10::IValue& value = (*stack)[position];
    if (value.isTensor()) {
      value = c10::IValue(lowered(value.toTensor()));
    } else if (value.isTensorList()) {
      c10::List<at::Tensor> tensors;
      for (const at::Tensor& tensor : value.toTensorVector()) {
        tensors.push_back(lowered(tensor));
      }
      value = c10::IValue(std::move(tensors));
    }
  }
}

} // namespace ranksafe
