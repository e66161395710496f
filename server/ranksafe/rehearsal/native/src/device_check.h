// The check that tensors are on one device, made where and in the words in which the real CUDA kernels make it.
#pragma once

#include "operator_plan.h"

namespace ranksafe {

enum class CheckResult : uint8_t {
  passed,
  // The tensors differ and torch's own composite kernel for this operator has the exact rule: let it decide.
  composite_decides,
};

// `arguments`: of the call, in the schema's order, still with the device's tensors. Raises torch's device errors.
CheckResult check_devices(const OperatorPlan& plan, const c10::IValue* arguments);

// While it lives, `check_devices` of this thread trusts the composite kernel that calls.
class CompositeHasDecided {
 public:
  CompositeHasDecided();
  ~CompositeHasDecided();
  CompositeHasDecided(const CompositeHasDecided&) = delete;
  CompositeHasDecided& operator=(const CompositeHasDecided&) = delete;

 private:
  bool previous_;
};

// Switches all device checks off or on, for measurements.
void set_device_checks_enabled(bool enabled);

} // namespace ranksafe
