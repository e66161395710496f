// Types that a CUDA kernel refuses although the CPU's kernel takes them.
#pragma once

#include "operator_plan.h"

namespace ranksafe {

// The name that an operator's CUDA kernel has in its refusal of whole numbers, or null where it takes them.
const char* kernel_without_whole_numbers(const std::string& operator_name);

// Raises CUDA's text when a tensor of the call has a type that the plan's kernel refuses.
void check_types(const OperatorPlan& plan, const c10::IValue* arguments);

} // namespace ranksafe
