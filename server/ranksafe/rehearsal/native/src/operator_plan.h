// What is known about an operator before it is called: which arguments matter, where its work is done, which device
// check its CUDA kernel makes. Worked out once per operator.
#pragma once

#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <string>
#include <vector>

namespace ranksafe {

// Kernels of ours for operators that have no CPU kernel, or whose CPU kernel does not do what CUDA's does. They work
// on host tensors. A dispatch key of its own keeps them out of the user's reach: the operators stay as they are on
// the CPU. No device of this type exists in any build that we support.
inline constexpr c10::DispatchKey kHostKernels = c10::DispatchKey::VE;

// A key without any kernel: what the dispatcher does there is what it does for a device that brings none of its own.
inline constexpr c10::DispatchKey kNoKernels = c10::DispatchKey::IPU;

enum class ArgumentKind : uint8_t { tensor, tensor_list, optional_tensor_list, device, generator, scalar_type };

struct PlannedArgument {
  std::size_t position;
  ArgumentKind kind;
  bool written;
  bool keyword_only; // generated wrappers do not check these
  std::string name;
};

enum class DeviceCheck : uint8_t {
  none, // the CUDA kernel takes tensors of several devices, or checks in its own words elsewhere
  wrapper, // c10's check with the generated wrapper's name
  iterator, // TensorIterator's check
  indexing, // indices may be on the host
  where, // tensors without dimensions may be anywhere
  masked_fill,
  convolution, // compares the types of input, weight and bias first
};

// Which library multiplies matrices in the operator's CUDA kernel; library_workspaces.h.
enum class PlannedLibrary : uint8_t { none, cublas, cublas_lt, cublas_or_lt };

struct OperatorPlan {
  std::string name; // "aten::add.Tensor"
  std::string wrapper; // "wrapper_CUDA_add_Tensor"
  std::vector<PlannedArgument> arguments; // those that matter, in the schema's order
  std::vector<std::size_t> check_order; // positions in `arguments`: out first, as generated wrappers do
  std::size_t argument_count = 0;
  std::size_t return_count = 0;
  DeviceCheck check = DeviceCheck::none;
  std::string absent_from; // "CUDA" and the like: a CPU kernel without a CUDA one, which fails on a real GPU too
  bool has_generator = false;
  bool draws_without_generator = false; // random, but the caller cannot pass a generator
  bool composite_without_kernel = false; // the dispatcher has a composite kernel for `kNoKernels`
  std::size_t device_return_count = 0; // of the results the first so many; the others are on the host
  bool low_precision_retry = false; // CUDA computes half precision where the CPU kernel may refuse
  bool slow_in_low_precision = false; // a half precision takes the CPU kernel many times as long as float32
  const char* kernel_without_whole_numbers = nullptr; // type_check.h
  PlannedLibrary matrix_library = PlannedLibrary::none;
  c10::DispatchKey work_key = c10::DispatchKey::Undefined; // Undefined: nothing can do the work
};

// Calls `visit(tensor, argument)` for every defined tensor, in the order of generated wrappers.
template <typename Visit>
void for_each_tensor(const OperatorPlan& plan, const c10::IValue* arguments, Visit&& visit) {
  for (const std::size_t index : plan.check_order) {
    const PlannedArgument& argument = plan.arguments[index];
    const c10::IValue& value = arguments[argument.position];
    if (value.isTensor()) {
      const at::Tensor& tensor = value.toTensor();
      if (tensor.defined()) {
        visit(tensor, argument);
      }
    } else if (value.isList()) {
      for (const c10::IValue& element : value.toListRef()) {
        if (element.isTensor() && element.toTensor().defined()) {
          visit(element.toTensor(), argument);
        }
      }
    }
  }
}

// Puts `aliases.result(tensor, device)` in the place of every tensor of a device that the kernel has returned.
template <typename Aliases>
void wrap_device_results(
    const OperatorPlan& plan, torch::jit::Stack* stack, c10::DeviceIndex device, Aliases& aliases) {
  const std::size_t first = stack->size() - plan.return_count;
  for (std::size_t position = first; position < first + plan.device_return_count; ++position) {
    c10::IValue& value = (*stack)[position];
    if (value.isTensor()) {
      value = c10::IValue(aliases.result(value.toTensor(), device));
    } else if (value.isTensorList()) {
      c10::List<at::Tensor> wrapped;
      for (const at::Tensor& tensor : value.toTensorVector()) {
        wrapped.push_back(aliases.result(tensor, device));
      }
      value = c10::IValue(std::move(wrapped));
    }
  }
}

// `device_key`: CUDA, SparseCUDA, SparseCsrCUDA or NestedTensorCUDA.
OperatorPlan make_plan(const c10::OperatorHandle& op, c10::DispatchKey device_key);

} // namespace ranksafe
