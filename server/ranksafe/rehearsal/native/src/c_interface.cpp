// What the Python half calls, through ctypes. Sizes are bytes, devices are indices from 0.
//
//   ranksafe_configure(device_count, memory_bytes)       before torch is imported; returns the number of devices
//   ranksafe_device_count, ranksafe_current_device, ranksafe_set_device(device) -> 0, or 101 for a wrong ordinal
//   ranksafe_in_bad_fork()                               1 in a process forked from one that used the devices
//   ranksafe_use_devices()                               notes that this process uses its devices (torch.cuda.init)
//   ranksafe_memory_allocated / _peak / _reset_peak (device), ranksafe_memory_total()
//   ranksafe_memory_reserved / _reserved_peak (device), ranksafe_memory_reset_accumulated(device)
//   ranksafe_memory_statistic(device, name)              one of: allocated, allocated_peak, allocated_total, requested,
//       requested_peak, requested_total, reserved, reserved_peak, blocks, blocks_peak, blocks_total, out_of_memory;
//       -1 for another name
//   ranksafe_empty_cache(device), ranksafe_set_memory_fraction(device, fraction), ranksafe_memory_fraction(device)
//   ranksafe_allocation_count(device)                    allocations since the start
//   ranksafe_out_of_memory_count(device)
//   ranksafe_host_memory_limit(bytes)                    0 or less: not bounded
//   ranksafe_storage_resize(storage_impl, bytes)         UntypedStorage.resize_ on a device; 0, or -1 out of memory
//   ranksafe_load_device_checks(path)                    the table of native/device_checks.py; 0, or -1 not readable;
//       not needed where device-checks.txt lies beside this library
//   ranksafe_device_check_none(op), ranksafe_device_check_method(op, wrapper)   single entries; "aten::add.Tensor"
//   ranksafe_device_checks_enable(on)                    for measurements
//   ranksafe_kernel_calls()                              operator calls so far
//   ranksafe_last_limit()                                text of the last simulation limit, "" for none
//   ranksafe_elapsed_clock()                             nanoseconds; two calls never return the same
//   ranksafe_new_stream(device, priority) -> stream id, ranksafe_current_stream(device) -> stream id,
//   ranksafe_set_stream(device, stream_id)
//   ranksafe_default_generator(device)                   address of the device's at::Generator, 0 for a wrong ordinal
#include "allocators.h"
#include "device_check.h"
#include "device_check_table.h"
#include "device_state.h"
#include "generators.h"
#include "host_execution.h"
#include "host_memory.h"
#include "memory_accounts.h"
#include "simulation_limit.h"
#include "streams_and_events.h"

#include <ATen/native/Resize.h>

#include <cstring>

#ifdef _WIN32
#define RANKSAFE_EXPORT extern "C" __declspec(dllexport)
#else
#define RANKSAFE_EXPORT extern "C" __attribute__((visibility("default")))
#endif

RANKSAFE_EXPORT int ranksafe_configure(int device_count, int64_t memory_bytes) {
  ranksafe::configure_devices(device_count, memory_bytes);
  return ranksafe::device_count();
}

RANKSAFE_EXPORT int ranksafe_device_count() {
  return ranksafe::device_count();
}

RANKSAFE_EXPORT int ranksafe_current_device() {
  return ranksafe::current_device();
}

RANKSAFE_EXPORT int ranksafe_set_device(int device) {
  if (device < 0 || device >= ranksafe::device_count()) {
    return 101; // cudaErrorInvalidDevice
  }
  ranksafe::set_current_device(static_cast<c10::DeviceIndex>(device));
  return 0;
}

RANKSAFE_EXPORT int ranksafe_in_bad_fork() {
  return ranksafe::in_bad_fork() ? 1 : 0;
}

RANKSAFE_EXPORT int ranksafe_use_devices() {
  if (ranksafe::in_bad_fork()) {
    return -1;
  }
  ranksafe::require_usable_devices();
  return 0;
}

RANKSAFE_EXPORT int64_t ranksafe_memory_allocated(int device) {
  return ranksafe::memory_statistics(device).allocated;
}

RANKSAFE_EXPORT int64_t ranksafe_memory_peak(int device) {
  return ranksafe::memory_statistics(device).allocated_peak;
}

RANKSAFE_EXPORT void ranksafe_memory_reset_peak(int device) {
  ranksafe::reset_peak_memory(device);
}

RANKSAFE_EXPORT void ranksafe_memory_reset_accumulated(int device) {
  ranksafe::reset_accumulated_memory(device);
}

RANKSAFE_EXPORT int64_t ranksafe_memory_total() {
  return ranksafe::device_capacity();
}

RANKSAFE_EXPORT int64_t ranksafe_memory_reserved(int device) {
  return ranksafe::memory_statistics(device).reserved;
}

RANKSAFE_EXPORT int64_t ranksafe_memory_reserved_peak(int device) {
  return ranksafe::memory_statistics(device).reserved_peak;
}

RANKSAFE_EXPORT int64_t ranksafe_memory_statistic(int device, const char* name) {
  const ranksafe::MemoryStatistics now = ranksafe::memory_statistics(device);
  const struct {
    const char* name;
    int64_t value;
  } values[] = {
      {"allocated", now.allocated},
      {"allocated_peak", now.allocated_peak},
      {"allocated_total", now.allocated_total},
      {"requested", now.requested},
      {"requested_peak", now.requested_peak},
      {"requested_total", now.requested_total},
      {"reserved", now.reserved},
      {"reserved_peak", now.reserved_peak},
      {"blocks", now.blocks},
      {"blocks_peak", now.blocks_peak},
      {"blocks_total", now.blocks_total},
      {"out_of_memory", now.out_of_memory},
  };
  for (const auto& entry : values) {
    if (std::strcmp(entry.name, name) == 0) {
      return entry.value;
    }
  }
  return -1;
}

RANKSAFE_EXPORT void ranksafe_empty_cache(int device) {
  ranksafe::empty_cache(device);
}

RANKSAFE_EXPORT void ranksafe_set_memory_fraction(int device, double fraction) {
  ranksafe::set_memory_fraction(device, fraction);
}

RANKSAFE_EXPORT double ranksafe_memory_fraction(int device) {
  return ranksafe::memory_fraction(device);
}

RANKSAFE_EXPORT int64_t ranksafe_allocation_count(int device) {
  return ranksafe::memory_statistics(device).blocks_total;
}

RANKSAFE_EXPORT int64_t ranksafe_out_of_memory_count(int device) {
  return ranksafe::memory_statistics(device).out_of_memory;
}

RANKSAFE_EXPORT void ranksafe_host_memory_limit(int64_t bytes) {
  ranksafe::set_host_memory_limit(bytes);
}

RANKSAFE_EXPORT int ranksafe_storage_resize(uint64_t storage_impl, int64_t bytes) {
  auto* storage = reinterpret_cast<c10::StorageImpl*>(storage_impl);
  try {
    const ranksafe::CurrentDevice scope(storage->device().index());
    at::native::resize_bytes_cpu(storage, static_cast<std::size_t>(bytes));
    return 0;
  } catch (const c10::Error&) {
    return -1;
  }
}

RANKSAFE_EXPORT int ranksafe_load_device_checks(const char* path) {
  return ranksafe::load_device_checks(path) ? 0 : -1;
}

RANKSAFE_EXPORT void ranksafe_device_check_none(const char* op) {
  ranksafe::set_no_device_check(op);
}

RANKSAFE_EXPORT void ranksafe_device_check_method(const char* op, const char* wrapper) {
  ranksafe::set_wrapper_name(op, wrapper);
}

RANKSAFE_EXPORT void ranksafe_device_checks_enable(int on) {
  ranksafe::set_device_checks_enabled(on != 0);
}

RANKSAFE_EXPORT int64_t ranksafe_kernel_calls() {
  return ranksafe::host_executions();
}

RANKSAFE_EXPORT const char* ranksafe_last_limit() {
  return ranksafe::last_limit();
}

RANKSAFE_EXPORT int64_t ranksafe_elapsed_clock() {
  return ranksafe::monotonic_nanoseconds();
}

RANKSAFE_EXPORT int64_t ranksafe_new_stream(int device, int priority) {
  return ranksafe::stream_from_pool(static_cast<c10::DeviceIndex>(device), priority).id();
}

RANKSAFE_EXPORT int64_t ranksafe_current_stream(int device) {
  return ranksafe::current_stream(static_cast<c10::DeviceIndex>(device)).id();
}

RANKSAFE_EXPORT void ranksafe_set_stream(int device, int64_t stream_id) {
  ranksafe::exchange_stream(c10::Stream(
      c10::Stream::UNSAFE,
      c10::Device(c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(device)),
      stream_id));
}

RANKSAFE_EXPORT const void* ranksafe_default_generator(int device) {
  if (device < 0 || device >= ranksafe::device_count()) {
    return nullptr;
  }
  return &ranksafe::default_generator(static_cast<c10::DeviceIndex>(device));
}
