#include "library_workspaces.h"

#include "device_state.h"
#include "memory_accounts.h"
#include "streams_and_events.h"
#include "torch_compatibility.h"

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdlib>
#include <map>
#include <mutex>
#include <regex>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace ranksafe {
namespace {

constexpr int64_t kKibibyte = 1024;

std::string environment(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? std::string() : std::string(text);
}

// torch's own choice: :4096:2:16:8, and 32 MiB on Hopper; since torch 2.12 (pull request 175344) on Blackwell, too.
int64_t default_cublas_bytes() {
  const int generation = device_capability() / 10;
#if RANKSAFE_TORCH_AT_LEAST(2, 12)
  const bool large = generation == 9 || generation == 10 || generation == 12;
#else
  const bool large = generation == 9;
#endif
  return (large ? 8 * 4096 : 2 * 4096 + 8 * 16) * kKibibyte;
}

int64_t cublas_bytes() {
  static const int64_t bytes = [] {
    const std::string text = environment("CUBLAS_WORKSPACE_CONFIG");
    static const std::regex kSizeAndCount(":([0-9]+):([0-9]+)");
    int64_t sum = 0;
    for (std::sregex_iterator at(text.begin(), text.end(), kSizeAndCount), end; at != end; ++at) {
      sum += std::atoll((*at)[1].str().c_str()) * std::atoll((*at)[2].str().c_str()) * kKibibyte;
    }
    return sum > 0 ? sum : default_cublas_bytes();
  }();
  return bytes;
}

int64_t cublas_lt_bytes() {
  static const int64_t bytes = [] {
    const int64_t chosen = std::atoll(environment("CUBLASLT_WORKSPACE_SIZE").c_str());
    return (chosen > 0 ? chosen : 1024) * kKibibyte;
  }();
  return bytes;
}

bool are_shared() {
  static const bool shared = [] {
    const std::string chosen = environment("TORCH_CUBLASLT_UNIFIED_WORKSPACE");
    return chosen.empty() ? RANKSAFE_WORKSPACES == RANKSAFE_WORKSPACES_SHARED : chosen == "1";
  }();
  return shared;
}

bool are_kept() {
  static const bool kept =
      RANKSAFE_WORKSPACES != RANKSAFE_WORKSPACES_OF_A_CALL || environment("TORCH_CUBLAS_WORKSPACE_CACHE") == "1";
  return kept;
}

// Handles are lent to threads, and lent again when a thread has ended.
struct HandlePool {
  std::mutex mutex;
  std::array<std::vector<int>, kMaxDevices> returned;
  std::array<int, kMaxDevices> made{};
};

HandlePool& handle_pool() {
  static auto* pool = new HandlePool();
  return *pool;
}

class HandlesOfThread {
 public:
  ~HandlesOfThread() {
    HandlePool& pool = handle_pool();
    const std::lock_guard<std::mutex> lock(pool.mutex);
    for (const auto& [device, handle] : lent_) {
      pool.returned[device].push_back(handle);
    }
  }
  int handle(c10::DeviceIndex device) {
    const auto found = lent_.find(device);
    if (found != lent_.end()) {
      return found->second;
    }
    HandlePool& pool = handle_pool();
    const std::lock_guard<std::mutex> lock(pool.mutex);
    int number = 0;
    if (pool.returned[device].empty()) {
      number = pool.made[device]++;
    } else {
      number = pool.returned[device].back();
      pool.returned[device].pop_back();
    }
    lent_[device] = number;
    return number;
  }

 private:
  std::map<c10::DeviceIndex, int> lent_;
};

using WorkspaceKey = std::tuple<MatrixLibrary, c10::DeviceIndex, int, c10::StreamId>;

struct Workspaces {
  std::mutex mutex;
  std::map<WorkspaceKey, Block*> taken;
};

Workspaces& workspaces() {
  static auto* all = new Workspaces();
  return *all;
}

void keep_workspace(MatrixLibrary library, c10::DeviceIndex device) {
  thread_local HandlesOfThread handles;
  const WorkspaceKey key{library, device, handles.handle(device), current_stream(device).id()};
  const std::lock_guard<std::mutex> lock(workspaces().mutex);
  if (workspaces().taken.count(key) == 0) {
    Block* block = take_block(device, library == MatrixLibrary::cublas ? cublas_bytes() : cublas_lt_bytes());
    set_purpose(device, block, Purpose::workspace);
    workspaces().taken[key] = block;
  }
}

bool is_enabled_lt() {
  static const bool enabled = environment("DISABLE_ADDMM_CUDA_LT") != "1";
  return enabled;
}

// Whether addmm adds its bias in the product's epilogue, which only cuBLASLt has.
bool has_fused_bias(const OperatorPlan& plan, const c10::IValue* arguments) {
  const at::Tensor& bias = arguments[0].toTensor();
  const at::Tensor& left = arguments[1].toTensor();
  const at::Tensor& right = arguments[2].toTensor();
  for (std::size_t position = 3; position < plan.argument_count; ++position) {
    if (arguments[position].isScalar()) {
      if (!arguments[position].toScalar().equal(1)) {
        return false; // beta; alpha may be anything
      }
      break;
    }
  }
  return is_enabled_lt() && at::isFloatingType(left.scalar_type()) && bias.is_contiguous() && bias.dim() > 0 &&
      bias.numel() == right.size(1) && bias.size(-1) == right.size(1) && left.size(0) > 1 && left.size(1) > 1 &&
      right.size(0) > 1 && right.size(1) > 1;
}

bool has_empty_argument(const OperatorPlan& plan, const c10::IValue* arguments) {
  for (const PlannedArgument& argument : plan.arguments) {
    const c10::IValue& value = arguments[argument.position];
    if (argument.kind == ArgumentKind::tensor && !argument.written && value.isTensor() && value.toTensor().defined() &&
        value.toTensor().numel() == 0) {
      return true;
    }
  }
  return false;
}

} // namespace

MatrixLibrary matrix_library(const OperatorPlan& plan, const c10::IValue* arguments) {
  if (C10_LIKELY(plan.matrix_library == PlannedLibrary::none) || has_empty_argument(plan, arguments)) {
    return MatrixLibrary::none;
  }
  const bool through_lt = plan.matrix_library == PlannedLibrary::cublas_lt ||
      (plan.matrix_library == PlannedLibrary::cublas_or_lt && has_fused_bias(plan, arguments));
  return through_lt ? MatrixLibrary::cublas_lt : MatrixLibrary::cublas;
}

void take_workspace(MatrixLibrary library, c10::DeviceIndex device) {
  if (C10_LIKELY(library == MatrixLibrary::none)) {
    return;
  }
  if (!are_kept()) {
    const int64_t bytes = library == MatrixLibrary::cublas ? cublas_bytes() : cublas_lt_bytes();
    give_block_back(device, take_block(device, bytes));
    return;
  }
  // A handle of cuBLASLt is one of cuBLAS, which is set up with a workspace of its own.
  keep_workspace(MatrixLibrary::cublas, device);
  if (library == MatrixLibrary::cublas_lt && !are_shared()) {
    keep_workspace(library, device);
  }
}

void clear_library_workspaces() {
  const std::lock_guard<std::mutex> lock(workspaces().mutex);
  for (const auto& [key, block] : workspaces().taken) {
    give_block_back(std::get<c10::DeviceIndex>(key), block);
  }
  workspaces().taken.clear();
}

} // namespace ranksafe
