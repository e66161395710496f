#include "host_execution.h"

#include "device_check.h"
#include "device_state.h"
#include "dry_execution.h"
#include "forecast_mode.h"
#include "generators.h"
#include "host_alias.h"
#include "library_workspaces.h"
#include "simulation_limit.h"
#include "low_precision.h"
#include "type_check.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <atomic>
#include <mutex>

namespace ranksafe {
namespace {

using c10::IValue;

std::atomic<int64_t> executions{0};

// The kernels below work on plain host tensors: nothing is to be recorded, and nothing cast, a second time.
class PlainTensorsOnly {
 public:
  PlainTensorsOnly()
      : guard_(c10::autograd_dispatch_keyset_with_ADInplaceOrView | c10::autocast_dispatch_keyset) {}

 private:
  c10::impl::ExcludeDispatchKeyGuard guard_;
};

// For random operators that take no generator: the host's default generator, lent a seed of the device for one call.
class BorrowedHostGenerator {
 public:
  explicit BorrowedHostGenerator(c10::DeviceIndex device) : lock_(borrowing()) {
    at::CPUGeneratorImpl* host = default_generator_of_host();
    engine_ = host->engine();
    float_sample_ = host->next_float_normal_sample();
    double_sample_ = host->next_double_normal_sample();
    host->set_current_seed(host_generator_for_call({}, device).current_seed());
  }
  ~BorrowedHostGenerator() {
    at::CPUGeneratorImpl* host = default_generator_of_host();
    host->set_engine(engine_);
    host->set_next_float_normal_sample(float_sample_);
    host->set_next_double_normal_sample(double_sample_);
  }
  BorrowedHostGenerator(const BorrowedHostGenerator&) = delete;
  BorrowedHostGenerator& operator=(const BorrowedHostGenerator&) = delete;

 private:
  static std::mutex& borrowing() {
    static auto* mutex = new std::mutex();
    return *mutex;
  }
  static at::CPUGeneratorImpl* default_generator_of_host() {
    return static_cast<at::CPUGeneratorImpl*>(at::detail::getDefaultCPUGenerator().unsafeGetGeneratorImpl());
  }

  std::lock_guard<std::mutex> lock_;
  at::mt19937 engine_;
  std::optional<float> float_sample_;
  std::optional<double> double_sample_;
};

// Where results belong: the device asked for, or that of the first device tensor, which is the one that generated
// wrappers guard.
std::optional<c10::DeviceIndex> target_device(const OperatorPlan& plan, const IValue* arguments) {
  std::optional<c10::DeviceIndex> found;
  for (const PlannedArgument& argument : plan.arguments) {
    const IValue& value = arguments[argument.position];
    if (argument.kind == ArgumentKind::device) {
      if (value.isDevice() && value.toDevice().is_cuda()) {
        return index_of(value.toDevice());
      }
    } else if (!found && value.isTensor()) {
      const at::Tensor& tensor = value.toTensor();
      if (tensor.defined() && tensor.is_cuda()) {
        found = tensor.get_device();
      }
    } else if (!found && argument.kind <= ArgumentKind::optional_tensor_list && value.isList()) {
      for (const IValue& element : value.toListRef()) {
        if (element.isTensor() && element.toTensor().defined() && element.toTensor().is_cuda()) {
          found = element.toTensor().get_device();
          break;
        }
      }
    }
  }
  return found;
}

void replace_list(IValue& value, ArgumentKind kind, bool written, CallAliases& aliases) {
  if (kind == ArgumentKind::tensor_list) {
    c10::List<at::Tensor> replaced;
    for (const IValue& element : value.toListRef()) {
      replaced.push_back(aliases.alias(element.toTensor(), written));
    }
    value = IValue(std::move(replaced));
    return;
  }
  c10::List<std::optional<at::Tensor>> replaced;
  for (const IValue& element : value.toListRef()) {
    replaced.push_back(
        element.isTensor() ? std::optional<at::Tensor>(aliases.alias(element.toTensor(), written)) : std::nullopt);
  }
  value = IValue(std::move(replaced));
}

void replace_arguments(
    const OperatorPlan& plan,
    IValue* arguments,
    std::optional<c10::DeviceIndex> target,
    CallAliases& aliases) {
  for (const PlannedArgument& argument : plan.arguments) {
    IValue& value = arguments[argument.position];
    switch (argument.kind) {
      case ArgumentKind::tensor:
        if (value.isTensor()) {
          const at::Tensor& tensor = value.toTensor();
          if (tensor.defined() && tensor.is_cuda()) {
            value = IValue(aliases.alias(tensor, argument.written));
          }
        }
        break;
      case ArgumentKind::tensor_list:
      case ArgumentKind::optional_tensor_list:
        if (value.isList()) {
          replace_list(value, argument.kind, argument.written, aliases);
        }
        break;
      case ArgumentKind::device:
        if (value.isDevice() && value.toDevice().is_cuda()) {
          value = IValue(c10::Device(c10::DeviceType::CPU));
        }
        break;
      case ArgumentKind::generator:
        if (target.has_value()) {
          value = IValue(
              host_generator_for_call(value.isGenerator() ? value.toGenerator() : at::Generator(), *target));
        }
        break;
      case ArgumentKind::scalar_type:
        break;
    }
  }
}

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

// The host kernel, with failures that are the simulation's own turned into limits.
void call_host_kernel(const c10::OperatorHandle& op, const OperatorPlan& plan, torch::jit::Stack* stack) {
  const PlainTensorsOnly plain;
  LowPrecisionRetry retry(plan, *stack);
  try {
    if (retry.is_better_at_once()) {
      retry.run(op, stack);
    } else {
      op.redispatchBoxed(c10::DispatchKeySet(plan.work_key), stack);
    }
  } catch (const c10::Error& error) {
    const std::string message = error.what_without_backtrace();
    if (contains(message, "INTERNAL ASSERT FAILED")) {
      raise_limit("operator " + plan.name + " met an internal error of its CPU kernel: " + message);
    }
    if (!retry.applies_to(message)) {
      throw;
    }
    retry.run(op, stack);
  }
}

// What the dispatcher says about an operator without a kernel, with the name of the real backend.
[[noreturn]] void raise_absent(const c10::OperatorHandle& op, const OperatorPlan& plan, torch::jit::Stack* stack) {
  try {
    op.redispatchBoxed(c10::DispatchKeySet(kNoKernels), stack);
  } catch (const c10::NotImplementedError& error) {
    std::string message = error.what_without_backtrace();
    for (std::size_t at = message.find("IPU"); at != std::string::npos; at = message.find("IPU", at)) {
      message.replace(at, 3, plan.absent_from);
    }
    TORCH_CHECK_NOT_IMPLEMENTED(false, message);
  }
  raise_limit("operator " + plan.name + " has no CUDA kernel");
}

[[noreturn]] void raise_no_kernel(const OperatorPlan& plan) {
  raise_limit("operator " + plan.name + " has no kernel that could run on this machine's processor");
}

} // namespace

void execute_on_host(const c10::OperatorHandle& op, const OperatorPlan& plan, torch::jit::Stack* stack) {
  executions.fetch_add(1, std::memory_order_relaxed);
  require_no_fork();
  if (C10_UNLIKELY(!plan.absent_from.empty() && plan.work_key != kHostKernels)) {
    raise_absent(op, plan, stack);
  }
  const bool has_kernel = plan.work_key != c10::DispatchKey::Undefined;
  if (C10_UNLIKELY(!has_kernel && !is_forecast())) {
    raise_no_kernel(plan);
  }
  IValue* arguments = stack->data() + (stack->size() - plan.argument_count);
  if (C10_UNLIKELY(check_devices(plan, arguments) == CheckResult::composite_decides)) {
    const CompositeHasDecided decided;
    op.redispatchBoxed(c10::DispatchKeySet(kNoKernels), stack);
    return;
  }
  if (C10_UNLIKELY(plan.kernel_without_whole_numbers != nullptr)) {
    check_types(plan, arguments);
  }
  const std::optional<c10::DeviceIndex> target = target_device(plan, arguments);
  if (C10_UNLIKELY(is_forecast() && target.has_value())) {
    if (execute_dry(op, plan, stack, *target)) {
      return;
    }
    arguments = stack->data() + (stack->size() - plan.argument_count);
    if (!has_kernel) {
      raise_no_kernel(plan);
    }
  }
  const MatrixLibrary library = matrix_library(plan, arguments);
  CallAliases aliases;
  replace_arguments(plan, arguments, target, aliases);
  if (C10_UNLIKELY(plan.draws_without_generator && target.has_value())) {
    const BorrowedHostGenerator borrowed(*target);
    call_host_kernel(op, plan, stack);
  } else {
    call_host_kernel(op, plan, stack);
  }
  aliases.apply_writes();
  if (C10_LIKELY(target.has_value())) {
    wrap_device_results(plan, stack, *target, aliases);
    take_workspace(library, *target); // after the result, as CUDA's kernels do
  }
}

int64_t host_executions() {
  return executions.load(std::memory_order_relaxed);
}

} // namespace ranksafe
