// Puts the simulated devices behind CUDA's dispatch keys. Runs when the library is loaded: libtorch_cpu, which this
// library is linked against, has registered its operators by then.
#include "host_execution.h"
#include "kernels.h"
#include "operator_plan.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <array>
#include <atomic>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

namespace ranksafe {
namespace {

using c10::DispatchKey;

struct KeyPair {
  DispatchKey device;
  DispatchKey host;
};

constexpr std::array<KeyPair, 4> kKeys{{
    {DispatchKey::CUDA, DispatchKey::CPU},
    {DispatchKey::SparseCUDA, DispatchKey::SparseCPU},
    {DispatchKey::SparseCsrCUDA, DispatchKey::SparseCsrCPU},
    {DispatchKey::NestedTensorCUDA, DispatchKey::NestedTensorCPU},
}};

// The kernel of one operator: knows its plan after the first call.
class PlannedKernel final : public c10::OperatorKernel {
 public:
  explicit PlannedKernel(DispatchKey key) : key_(key) {}

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
    const OperatorPlan* plan = plan_.load(std::memory_order_acquire);
    if (C10_UNLIKELY(plan == nullptr)) {
      plan = remember(new OperatorPlan(make_plan(op, key_)));
    }
    execute_on_host(op, *plan, stack);
  }

 private:
  const OperatorPlan* remember(const OperatorPlan* made) {
    const OperatorPlan* expected = nullptr;
    if (plan_.compare_exchange_strong(expected, made)) {
      return made;
    }
    delete made; // another thread was faster
    return expected;
  }

  DispatchKey key_;
  std::atomic<const OperatorPlan*> plan_{nullptr};
};

// For operators that were not there when this library was loaded (other packages') and those without a CPU kernel.
class UnplannedKernel final : public c10::OperatorKernel {
 public:
  explicit UnplannedKernel(DispatchKey key) : key_(key) {}

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
    execute_on_host(op, plan_of(op), stack);
  }

 private:
  const OperatorPlan& plan_of(const c10::OperatorHandle& op) {
    {
      std::shared_lock<std::shared_mutex> lock(mutex_);
      const auto found = plans_.find(op.operator_name());
      if (found != plans_.end() && found->second->work_key != DispatchKey::Undefined) {
        return *found->second;
      }
    }
    // A package may bring the CPU kernel after the first call, so a plan that cannot work is made again.
    auto made = std::make_unique<OperatorPlan>(make_plan(op, key_));
    std::unique_lock<std::shared_mutex> lock(mutex_);
    auto& slot = plans_[op.operator_name()];
    if (slot == nullptr || slot->work_key == DispatchKey::Undefined) {
      if (slot != nullptr) {
        outdated_.push_back(std::move(slot));
      }
      slot = std::move(made);
    }
    return *slot;
  }

  DispatchKey key_;
  std::shared_mutex mutex_;
  std::unordered_map<c10::OperatorName, std::unique_ptr<OperatorPlan>> plans_;
  std::vector<std::unique_ptr<OperatorPlan>> outdated_; // another thread may still read them
};

// Kept for ever: the dispatcher removes a kernel when its handle goes.
std::vector<c10::RegistrationHandleRAII>& registrations() {
  static auto* handles = new std::vector<c10::RegistrationHandleRAII>();
  return *handles;
}

torch::Library& library_for(DispatchKey key) {
  return *new torch::Library(torch::Library::IMPL, "aten", key, __FILE__, __LINE__);
}

void register_planned(c10::Dispatcher& dispatcher, const c10::OperatorName& name, DispatchKey key) {
  registrations().push_back(dispatcher.registerImpl(
      name,
      key,
      c10::KernelFunction::makeFromBoxedFunctor(std::make_unique<PlannedKernel>(key)),
      std::nullopt,
      nullptr,
      "simulated devices of ranksafe"));
}

// Composite operators that look for a CUDA-only kernel outside the dispatcher: done on the host as a whole. The sparse
// ones ask a DispatchStub since torch 2.15.
bool is_done_as_a_whole(const c10::OperatorName& name) {
  return name.overload_name.empty() &&
      (name.name == "aten::convolution" || name.name == "aten::convolution_backward" ||
       name.name == "aten::_convolution" || name.name.rfind("aten::_validate_sparse_", 0) == 0);
}

void register_operators() {
  c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    if (name.name.rfind("aten::", 0) != 0) {
      continue;
    }
    const auto op = dispatcher.findOp(name);
    if (!op.has_value() || !op->hasSchema()) {
      continue;
    }
    for (const KeyPair& keys : kKeys) {
      const bool on_host = op->hasKernelForDispatchKey(keys.host) ||
          (keys.device == DispatchKey::CUDA &&
           (op->hasKernelForDispatchKey(kHostKernels) || is_done_as_a_whole(name)));
      if (on_host && !op->hasKernelForDispatchKey(keys.device)) {
        register_planned(dispatcher, name, keys.device);
      }
    }
  }
  for (const KeyPair& keys : kKeys) {
    registrations().push_back(dispatcher.registerFallback(
        keys.device,
        c10::KernelFunction::makeFromBoxedFunctor(std::make_unique<UnplannedKernel>(keys.device)),
        "simulated devices of ranksafe"));
  }
}

const bool registered = [] {
  register_storage_kernels(library_for(DispatchKey::CUDA));
  torch::Library& host = library_for(kHostKernels);
  register_softmax_kernels(host);
  register_recurrent_kernels(host);
  register_batch_norm_kernels(host);
  register_dropout_kernels(host);
  register_matrix_kernels(host);
  register_attention_kernels(host);
  register_cudnn_kernels(host);
  register_histogram_kernels(host);
  register_operators();
  return true;
}();

} // namespace
} // namespace ranksafe
