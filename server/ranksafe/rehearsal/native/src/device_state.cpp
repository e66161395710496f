#include "device_state.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <atomic>
#include <string>

#ifndef _WIN32
#include <pthread.h>
#endif

namespace ranksafe {
namespace {

std::atomic<int> configured_count{0};
std::atomic<int> configured_capability{80};
std::atomic<int64_t> configured_memory{int64_t{80} << 30};
std::atomic<int64_t> configured_driver{0};
std::atomic<int64_t> configured_context{0};
std::atomic<bool> devices_used{false};
std::atomic<bool> forked_after_use{false};
thread_local c10::DeviceIndex thread_device = 0;

// CUDA does not survive a fork: a child of a process that has used it may not.
void watch_forks() {
#ifndef _WIN32
  static const bool watching = [] {
    pthread_atfork(nullptr, nullptr, [] {
      if (devices_used) {
        forked_after_use = true;
      }
    });
    return true;
  }();
  (void)watching;
#endif
}

[[noreturn]] void raise_cuda_error(uint32_t line, int code, const std::string& what) {
  // The text of c10_cuda_check_implementation in torch 2.13 and 2.15.
  throw c10::AcceleratorError(
      {"check_ordinal", "c10/cuda/CUDAException.cpp", line},
      code,
      "CUDA error: " + what +
          "\nCUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be "
          "incorrect.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1\nCompile with `TORCH_USE_CUDA_DSA` to enable "
          "device-side assertions.\n");
}

} // namespace

void configure_devices(int count, int capability, const DeviceCapacity& capacity) {
  watch_forks();
  configured_count = std::clamp(count, 0, kMaxDevices);
  configured_capability = capability;
  configured_memory = std::max<int64_t>(capacity.memory, 0);
  configured_driver = std::clamp<int64_t>(capacity.driver, 0, configured_memory);
  configured_context = std::clamp<int64_t>(capacity.context, 0, configured_memory - configured_driver);
}

int device_count() {
  return configured_count.load(std::memory_order_relaxed);
}

int device_capability() {
  return configured_capability.load(std::memory_order_relaxed);
}

DeviceCapacity device_capacity() {
  return {
      configured_memory.load(std::memory_order_relaxed),
      configured_driver.load(std::memory_order_relaxed),
      configured_context.load(std::memory_order_relaxed)};
}

c10::DeviceIndex current_device() {
  return thread_device;
}

void set_current_device(c10::DeviceIndex index) noexcept {
  thread_device = index;
}

void check_ordinal(int64_t index) {
  if (index < 0 || index >= device_count()) {
    raise_cuda_error(
        __LINE__,
        101,
        "invalid device ordinal\nGPU device may be out of range, do you have enough GPUs?");
  }
}

c10::DeviceIndex index_of(c10::Device device) {
  if (!device.has_index()) {
    return current_device();
  }
  check_ordinal(device.index());
  return device.index();
}

void require_usable_devices() {
  TORCH_CHECK(
      !in_bad_fork(),
      "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the 'spawn' start "
      "method");
  if (!devices_used.load(std::memory_order_relaxed)) {
    watch_forks();
    devices_used = true;
  }
}

void require_no_fork() {
  if (C10_UNLIKELY(in_bad_fork())) {
    raise_cuda_error(__LINE__, 3, "initialization error");
  }
}

bool in_bad_fork() {
  return forked_after_use.load(std::memory_order_relaxed);
}

} // namespace ranksafe
