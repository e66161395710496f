// What the programs believe the devices' memory holds: blocks of CUDA's caching allocator, within a capacity.
#pragma once

#include "caching_allocator.h"
#include "memory_peak.h"

#include <c10/core/Device.h>

#include <cstdint>
#include <string>
#include <vector>

namespace ranksafe {

// A block for `bytes` > 0 on the thread's stream. Raises torch.OutOfMemoryError in CUDA's words when the device is full.
Block* take_block(c10::DeviceIndex device, int64_t bytes);
void give_block_back(c10::DeviceIndex device, Block* block) noexcept;

// Nothing for a device that there cannot be.
AllocatorStatistics memory_statistics(int device);
void reset_peak_memory(int device);
void reset_accumulated_memory(int device);
// Gives back the segments of which nothing is allocated.
void empty_cache(int device);
// Bytes that nobody can have any more: the driver's, the context's and all segments. The context is there from the first
// question on, as cudaMemGetInfo makes it.
int64_t memory_in_use(int device);
// The part of the capacity that this process may use, from 0 to 1.
void set_memory_fraction(int device, double fraction);
double memory_fraction(int device);
// Of all devices, from now on.
void configure_allocators(const AllocatorSettings& settings);

struct BlockOfSegment {
  int64_t segment; // its address
  int64_t address;
  int64_t size;
  int64_t requested; // 0: free
  c10::StreamId stream;
  bool large_pool;
  bool expandable;
};
// By address. Each mapped part of an expandable segment counts as one.
std::vector<BlockOfSegment> memory_blocks(int device);

// Of a forecast; nothing otherwise, and for a device that there cannot be.
struct PeakOfDevice {
  int64_t allocated = 0;
  int64_t reserved = 0;
  int64_t refused = 0; // allocated and wanted together where memory ran out
  int64_t retries = 0; // how often the cache was given back to make room
  int32_t place = -1;
  Phase phase = Phase::no_gradients;
  std::array<PhasePeak, kPhases> by_phase;
};
PeakOfDevice memory_peak(int device);
std::vector<HeldBlock> blocks_at_peak(int device);
std::vector<HeldBlock> blocks_of_history(int device);
struct Moments {
  int64_t now;
  int64_t history_is_whole_since;
};
Moments memory_moments(int device);
void set_purpose(c10::DeviceIndex device, const Block* block, Purpose purpose);

// "1.50 GiB", as c10's format_size writes it.
std::string format_bytes(int64_t bytes);

} // namespace ranksafe
