// What differs between the torch releases that this library is compiled for (2.8 and newer), in one place.
#pragma once

#include <torch/version.h>

#define RANKSAFE_TORCH_AT_LEAST(major, minor) \
  (TORCH_VERSION_MAJOR > (major) || (TORCH_VERSION_MAJOR == (major) && TORCH_VERSION_MINOR >= (minor)))

#if !RANKSAFE_TORCH_AT_LEAST(2, 8)
#error "The simulated devices need torch 2.8 or newer."
#endif

#if __has_include(<c10/core/CachingDeviceAllocator.h>) && RANKSAFE_TORCH_AT_LEAST(2, 9)
#include <c10/core/CachingDeviceAllocator.h>
// torch.accelerator.memory_* asks the allocator of the device through this interface.
#define RANKSAFE_DEVICE_ALLOCATOR_INTERFACE 1
#else
#include <c10/core/Allocator.h>
#define RANKSAFE_DEVICE_ALLOCATOR_INTERFACE 0
#endif

// The address in CUDA's out-of-memory message: torch 2.11.0 on an H100, libc10_cuda.so of torch 2.15.0.
#if RANKSAFE_TORCH_AT_LEAST(2, 11)
#define RANKSAFE_MEMORY_DOCUMENTATION \
  "https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf"
#else
#define RANKSAFE_MEMORY_DOCUMENTATION "https://pytorch.org/docs/stable/notes/cuda.html#environment-variables"
#endif

// What a coalesced reduce-scatter is called in the flight recorder: it got a name of its own in torch 2.12.
#if RANKSAFE_TORCH_AT_LEAST(2, 12)
#define RANKSAFE_REDUCE_SCATTER_TENSOR_COALESCED ::c10d::OpType::REDUCE_SCATTER_TENSOR_COALESCED
#else
#define RANKSAFE_REDUCE_SCATTER_TENSOR_COALESCED ::c10d::OpType::_REDUCE_SCATTER_BASE
#endif

// Virtual functions of c10d::Backend that torch 2.8 does not have yet.
#if RANKSAFE_TORCH_AT_LEAST(2, 9)
#define RANKSAFE_OVERRIDE_SINCE_2_9 override
#else
#define RANKSAFE_OVERRIDE_SINCE_2_9
#endif

// What torch's fake process group is made with besides rank and size: it has options since 2.9.
#if RANKSAFE_TORCH_AT_LEAST(2, 9)
#define RANKSAFE_FAKE_GROUP_OPTIONS , c10::make_intrusive<c10d::FakeProcessGroup::Options>()
#else
#define RANKSAFE_FAKE_GROUP_OPTIONS
#endif

// Who owns the workspaces of cuBLAS and cuBLASLt (aten/src/ATen/cuda/CublasHandlePool.cpp).
#define RANKSAFE_WORKSPACES_APART 0 // one of each kind, kept for good: measured with torch 2.11
#define RANKSAFE_WORKSPACES_SHARED 1 // cuBLASLt takes cuBLAS's, kept for good: pull request 175879, March 2026
#define RANKSAFE_WORKSPACES_OF_A_CALL 2 // given back after each call: pull request 194311, August 2026
#if RANKSAFE_TORCH_AT_LEAST(2, 15)
#define RANKSAFE_WORKSPACES RANKSAFE_WORKSPACES_OF_A_CALL
#elif RANKSAFE_TORCH_AT_LEAST(2, 12)
#define RANKSAFE_WORKSPACES RANKSAFE_WORKSPACES_SHARED
#else
#define RANKSAFE_WORKSPACES RANKSAFE_WORKSPACES_APART
#endif
