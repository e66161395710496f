// CUDA computes in half precision where some CPU kernels do not: such a call is done in float32 and cast back.
#pragma once

#include "operator_plan.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include <string>
#include <vector>

namespace ranksafe {

class LowPrecisionRetry {
 public:
  // Keeps the (host) arguments when one of them has a low precision, because the call takes them off the stack.
  LowPrecisionRetry(const OperatorPlan& plan, const torch::jit::Stack& stack);

  // Whether `message` is a CPU kernel's refusal of such a type, and the arguments are there.
  bool applies_to(const std::string& message) const;

  // Whether a first attempt can be spared, because it would take too long.
  bool is_better_at_once() const;

  // Does the call again in float32 (complex64 for complex32) and leaves results of the asked precision on the stack.
  void run(const c10::OperatorHandle& op, torch::jit::Stack* stack);

 private:
  c10::IValue raised(const c10::IValue& value, const PlannedArgument& argument);
  at::Tensor raised_tensor(const at::Tensor& tensor, bool written);
  at::Tensor lowered(const at::Tensor& tensor);

  struct Written {
    at::Tensor original;
    at::Tensor raised;
  };

  const OperatorPlan& plan_;
  std::size_t base_ = 0; // of the call's arguments on the stack
  std::vector<c10::IValue> arguments_;
  std::vector<Written> written_;
  at::ScalarType low_type_ = at::ScalarType::Undefined;
};

} // namespace ranksafe
