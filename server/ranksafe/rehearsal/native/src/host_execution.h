// One operator call on simulated devices: device check, the work on host tensors, results back on the device.
#pragma once

#include "operator_plan.h"

#include <ATen/core/stack.h>

#include <cstdint>

namespace ranksafe {

// Replaces the arguments on the stack by the results, as every boxed kernel does.
void execute_on_host(const c10::OperatorHandle& op, const OperatorPlan& plan, torch::jit::Stack* stack);

// How many operator calls came through here in this process.
int64_t host_executions();

} // namespace ranksafe
