// Operators in a forecast of memory: what takes or makes large floating tensors gets shapes from torch's meta kernels and
// computes nothing.
#pragma once

#include "operator_plan.h"

#include <ATen/core/stack.h>

namespace ranksafe {

// Replaces the arguments by results and returns true, or leaves them for the host kernel: where the call is small or
// integral, where no meta kernel knows the result's shape, or where it raises, since the host kernel has the right text.
bool execute_dry(
    const c10::OperatorHandle& op,
    const OperatorPlan& plan,
    torch::jit::Stack* stack,
    c10::DeviceIndex device);

// Whether a copy between tensors, on the host or on devices, is left out.
bool is_copy_left_out(const at::Tensor& target, const at::Tensor& source);

} // namespace ranksafe
