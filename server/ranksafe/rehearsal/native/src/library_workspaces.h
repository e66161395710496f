// Memory that CUDA's libraries take from the caching allocator for themselves, where torch's source says how much.
#pragma once

#include "operator_plan.h"

#include <ATen/core/ivalue.h>

namespace ranksafe {

// The library that computes one call; worked out before the call, whose kernel takes the arguments from the stack.
enum class MatrixLibrary : uint8_t { none, cublas, cublas_lt };

// How CUDA would compute the call: aten/src/ATen/native/cuda/Blas.cpp, torch 2.8 to 2.13.
MatrixLibrary matrix_library(const OperatorPlan& plan, const c10::IValue* arguments);

// The workspace of the thread's handle and stream. Raises torch.OutOfMemoryError.
void take_workspace(MatrixLibrary library, c10::DeviceIndex device);

// As torch._C._cuda_clearCublasWorkspaces.
void clear_library_workspaces();

} // namespace ranksafe
