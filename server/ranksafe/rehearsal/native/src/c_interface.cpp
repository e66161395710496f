// What the Python half calls, through ctypes. Sizes are bytes, devices are indices from 0.
//
//   ranksafe_configure(device_count, capability, memory, driver, context)   before torch is imported: 10 times major plus
//       minor, then bytes of each device, of the driver and of CUDA's context; returns the number of devices
//   ranksafe_begin_forecast(unbounded)                   large floating tensors have no values from now on; 1: devices take
//       more than they hold
//   ranksafe_forecast_places(place)                      place() numbers the line of the program that is at work; may be 0
//   ranksafe_forecast_optimizer(at_work)                 a step begins (1) or ends (0)
//   ranksafe_forecast_purpose(storage_impls, count, purpose)   what their tensors are for: Purpose of memory_peak.h
//   ranksafe_forecast_peak(device, values)               fills 16 numbers: the peaks of allocated and reserved bytes, what
//       was allocated and wanted where memory ran out, the retries, the peak's place and phase (memory_peak.h), then
//       allocated and reserved peaks of each phase
//   ranksafe_forecast_blocks(device, values, capacity)   fills 4 numbers for each block at the peak: size, purpose, phase
//       and place (-1: not asked); returns the number of blocks, of which only those that fit are written
//   ranksafe_forecast_history(device, values, capacity)  the same for each block that there ever was, with the moments when
//       it was taken and given back (0: never) behind it
//   ranksafe_forecast_moments(device, values)            fills 2 numbers: this moment, and that from which the history is whole
//   ranksafe_device_count, ranksafe_current_device, ranksafe_set_device(device) -> 0, or 101 for a wrong ordinal
//   ranksafe_in_bad_fork()                               1 in a process forked from one that used the devices
//   ranksafe_use_devices()                               notes that this process uses its devices (torch.cuda.init)
//   ranksafe_memory_statistics(device, values)           fills 89 numbers: for allocation, segment, inactive_split,
//       allocated_bytes, reserved_bytes, inactive_split_bytes and requested_bytes in all, small and large pools the current,
//       peak, allocated and freed amount; then num_alloc_retries, num_ooms, num_sync_all_streams, num_device_alloc,
//       num_device_free
//   ranksafe_memory_blocks(device, values, capacity)     fills 7 numbers for each block: its segment's address, its own,
//       size, requested bytes (0: free), stream, 1 in the large pool, 1 in an expandable segment; returns the number of blocks, of which only those
//       that fit `capacity` blocks are written
//   ranksafe_allocator_settings(expandable, sizes, threshold, divisions)   of all devices' allocators; sizes are those of
//       max_split_size_mb, max_non_split_rounding_mb and large_segment_size_mb in bytes, divisions are 16
//   ranksafe_memory_reset_peak(device), ranksafe_memory_reset_accumulated(device)
//   ranksafe_memory_total(), ranksafe_memory_in_use(device)   bytes
//   ranksafe_empty_cache(device), ranksafe_set_memory_fraction(device, fraction), ranksafe_memory_fraction(device)
//   ranksafe_clear_workspaces()                          gives back what CUDA's libraries have taken
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
#include "forecast_mode.h"
#include "generators.h"
#include "host_execution.h"
#include "host_memory.h"
#include "library_workspaces.h"
#include "memory_accounts.h"
#include "simulation_limit.h"
#include "streams_and_events.h"

#include <ATen/native/Resize.h>

#include <algorithm>

#ifdef _WIN32
#define RANKSAFE_EXPORT extern "C" __declspec(dllexport)
#else
#define RANKSAFE_EXPORT extern "C" __attribute__((visibility("default")))
#endif

RANKSAFE_EXPORT int ranksafe_configure(
    int device_count, int capability, int64_t memory, int64_t driver, int64_t context) {
  ranksafe::configure_devices(device_count, capability, {memory, driver, context});
  return ranksafe::device_count();
}

RANKSAFE_EXPORT void ranksafe_begin_forecast(int unbounded) {
  ranksafe::begin_forecast(unbounded != 0);
}

RANKSAFE_EXPORT void ranksafe_forecast_places(int32_t (*place)()) {
  ranksafe::watch_places(place);
}

RANKSAFE_EXPORT void ranksafe_forecast_optimizer(int at_work) {
  ranksafe::set_optimizer_at_work(at_work != 0);
}

RANKSAFE_EXPORT void ranksafe_forecast_purpose(const uint64_t* storage_impls, int64_t count, int purpose) {
  for (int64_t index = 0; index < count; ++index) {
    ranksafe::set_purpose(
        *reinterpret_cast<const c10::StorageImpl*>(storage_impls[index]), static_cast<ranksafe::Purpose>(purpose));
  }
}

RANKSAFE_EXPORT void ranksafe_forecast_peak(int device, int64_t* values) {
  const ranksafe::PeakOfDevice peak = ranksafe::memory_peak(device);
  for (const int64_t value :
       {peak.allocated,
        peak.reserved,
        peak.refused,
        peak.retries,
        int64_t{peak.place},
        static_cast<int64_t>(peak.phase)}) {
    *values++ = value;
  }
  for (const ranksafe::PhasePeak& of_phase : peak.by_phase) {
    *values++ = of_phase.allocated;
    *values++ = of_phase.reserved;
  }
}

namespace {

int64_t write_blocks(
    const std::vector<ranksafe::HeldBlock>& blocks, bool with_moments, int64_t* values, int64_t capacity) {
  for (const ranksafe::HeldBlock& block : blocks) {
    if (capacity-- <= 0) {
      break;
    }
    for (const int64_t value :
         {block.size, static_cast<int64_t>(block.purpose), static_cast<int64_t>(block.phase), int64_t{block.place}}) {
      *values++ = value;
    }
    if (with_moments) {
      *values++ = block.taken_at;
      *values++ = block.gone_at;
    }
  }
  return static_cast<int64_t>(blocks.size());
}

} // namespace

RANKSAFE_EXPORT int64_t ranksafe_forecast_blocks(int device, int64_t* values, int64_t capacity) {
  return write_blocks(ranksafe::blocks_at_peak(device), false, values, capacity);
}

RANKSAFE_EXPORT int64_t ranksafe_forecast_history(int device, int64_t* values, int64_t capacity) {
  return write_blocks(ranksafe::blocks_of_history(device), true, values, capacity);
}

RANKSAFE_EXPORT void ranksafe_forecast_moments(int device, int64_t* values) {
  const ranksafe::Moments moments = ranksafe::memory_moments(device);
  values[0] = moments.now;
  values[1] = moments.history_is_whole_since;
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

RANKSAFE_EXPORT void ranksafe_memory_statistics(int device, int64_t* values) {
  const ranksafe::AllocatorStatistics now = ranksafe::memory_statistics(device);
  for (const ranksafe::StatisticByPool& by_pool :
       {now.allocation,
        now.segment,
        now.inactive_split,
        now.allocated_bytes,
        now.reserved_bytes,
        now.inactive_split_bytes,
        now.requested_bytes}) {
    for (const ranksafe::Statistic& statistic : by_pool) {
      for (const int64_t value : {statistic.current, statistic.peak, statistic.allocated, statistic.freed}) {
        *values++ = value;
      }
    }
  }
  for (const int64_t value :
       {now.num_alloc_retries, now.num_ooms, now.num_sync_all_streams, now.num_device_alloc, now.num_device_free}) {
    *values++ = value;
  }
}

RANKSAFE_EXPORT int64_t ranksafe_memory_blocks(int device, int64_t* values, int64_t capacity) {
  const auto blocks = ranksafe::memory_blocks(device);
  for (const ranksafe::BlockOfSegment& block : blocks) {
    if (capacity-- <= 0) {
      break;
    }
    for (const int64_t value :
         {block.segment,
          block.address,
          block.size,
          block.requested,
          block.stream,
          int64_t{block.large_pool},
          int64_t{block.expandable}}) {
      *values++ = value;
    }
  }
  return static_cast<int64_t>(blocks.size());
}

RANKSAFE_EXPORT void ranksafe_memory_reset_peak(int device) {
  ranksafe::reset_peak_memory(device);
}

RANKSAFE_EXPORT void ranksafe_memory_reset_accumulated(int device) {
  ranksafe::reset_accumulated_memory(device);
}

RANKSAFE_EXPORT int64_t ranksafe_memory_total() {
  return ranksafe::device_capacity().memory;
}

RANKSAFE_EXPORT int64_t ranksafe_memory_in_use(int device) {
  return ranksafe::memory_in_use(device);
}

RANKSAFE_EXPORT void ranksafe_empty_cache(int device) {
  ranksafe::empty_cache(device);
}

RANKSAFE_EXPORT void ranksafe_set_memory_fraction(int device, double fraction) {
  ranksafe::set_memory_fraction(device, fraction);
}

RANKSAFE_EXPORT void ranksafe_allocator_settings(
    int expandable, const int64_t* sizes, double threshold, const int64_t* divisions) {
  ranksafe::AllocatorSettings settings{expandable != 0, sizes[0], sizes[1], sizes[2], threshold};
  std::copy_n(divisions, settings.divisions.size(), settings.divisions.begin());
  ranksafe::configure_allocators(settings);
}

RANKSAFE_EXPORT double ranksafe_memory_fraction(int device) {
  return ranksafe::memory_fraction(device);
}

RANKSAFE_EXPORT void ranksafe_clear_workspaces() {
  ranksafe::clear_library_workspaces();
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
