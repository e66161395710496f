// What the programs believe the devices' memory holds: bytes per device, CUDA's caching behaviour, the capacity.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <string>

namespace ranksafe {

// Rounding and segments of CUDA's caching allocator, torch 2.0 to 2.15.
inline constexpr int64_t kBlockBytes = 512;
inline constexpr int64_t kSmallAllocation = int64_t{1} << 20;
inline constexpr int64_t kSmallSegment = int64_t{2} << 20;
inline constexpr int64_t kSharedSegmentLimit = int64_t{10} << 20;
inline constexpr int64_t kSharedSegment = int64_t{20} << 20;

// Bytes and counts of one device; "current" unless the name says otherwise.
struct MemoryStatistics {
  int64_t allocated = 0; // in blocks of `kBlockBytes`
  int64_t allocated_peak = 0;
  int64_t allocated_total = 0;
  int64_t requested = 0;
  int64_t requested_peak = 0;
  int64_t requested_total = 0;
  int64_t reserved = 0; // what a caching allocator would hold, estimated from the same segment sizes
  int64_t reserved_peak = 0;
  int64_t blocks = 0;
  int64_t blocks_peak = 0;
  int64_t blocks_total = 0;
  int64_t out_of_memory = 0;
};

// Enters an allocation. Raises torch.OutOfMemoryError in CUDA's words when the device is full.
void account_allocation(c10::DeviceIndex device, int64_t bytes);
void account_release(c10::DeviceIndex device, int64_t bytes) noexcept;

MemoryStatistics memory_statistics(int device);
void reset_peak_memory(int device);
void reset_accumulated_memory(int device);
// Gives back what is reserved and not allocated.
void empty_cache(int device);
// The part of the capacity that this process may use, from 0 to 1.
void set_memory_fraction(int device, double fraction);
double memory_fraction(int device);
// Of all devices together, as allocated.
int64_t simulated_bytes();

// "1.50 GiB", as c10's format_size writes it.
std::string format_bytes(int64_t bytes);

} // namespace ranksafe
