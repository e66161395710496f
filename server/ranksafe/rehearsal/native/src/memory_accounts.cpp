#include "memory_accounts.h"

#include "device_state.h"
#include "forecast_mode.h"
#include "streams_and_events.h"
#include "torch_compatibility.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <mutex>
#include <optional>

namespace ranksafe {
namespace {

constexpr int64_t kUnboundedAddresses = int64_t{1} << 44;

struct Account {
  std::mutex mutex;
  CachingAllocator allocator;
  MemoryPeak peak; // of a forecast
  std::optional<double> fraction; // none until somebody chooses one

  int64_t reserved() const {
    return allocator.statistics().reserved_bytes[kBothPools].current;
  }
};

std::array<Account, kMaxDevices>& accounts() {
  static auto* all = new std::array<Account, kMaxDevices>();
  return *all;
}

std::optional<int64_t> allowed_bytes(const Account& account) {
  if (!account.fraction.has_value()) {
    return std::nullopt;
  }
  return static_cast<int64_t>(*account.fraction * static_cast<double>(device_capacity().memory));
}

Room room_of(const Account& account) {
  if (is_forecast_unbounded()) {
    return {std::numeric_limits<int64_t>::max() / 2, allowed_bytes(account), kUnboundedAddresses};
  }
  const DeviceCapacity capacity = device_capacity();
  const int64_t left = capacity.memory - capacity.driver - capacity.context;
  // 1 1/8 of the memory, as torch reserves of addresses.
  return {left, allowed_bytes(account), capacity.memory + capacity.memory / 8};
}

// The text of torch 2.11 on an H100 (tests/gpu_check/measured).
std::string out_of_memory_text(c10::DeviceIndex device, int64_t bytes, const Account& account) {
  const DeviceCapacity capacity = device_capacity();
  const int64_t allocated = account.allocator.statistics().allocated_bytes[kBothPools].current;
  const int64_t of_process = capacity.context + account.reserved();
  const std::optional<int64_t> allowed = allowed_bytes(account);
  return "CUDA out of memory. Tried to allocate " + format_bytes(account.allocator.segment_bytes(bytes)) + ". GPU " +
      std::to_string(static_cast<int>(device)) + " has a total capacity of " + format_bytes(capacity.memory) +
      " of which " + format_bytes(std::max<int64_t>(capacity.memory - capacity.driver - of_process, 0)) +
      " is free. Including non-PyTorch memory, this process has " + format_bytes(of_process) + " memory in use. " +
      (allowed.has_value() ? format_bytes(*allowed) + " allowed; " : "") + "Of the allocated memory " +
      format_bytes(allocated) + " is allocated by PyTorch, and " + format_bytes(account.reserved() - allocated) +
      " is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting "
      "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for Memory "
      "Management  (" RANKSAFE_MEMORY_DOCUMENTATION ")";
}

} // namespace

std::string format_bytes(int64_t bytes) {
  char text[64];
  const auto size = static_cast<double>(bytes);
  if (bytes <= 1024) {
    std::snprintf(text, sizeof(text), "%lld bytes", static_cast<long long>(bytes));
  } else if (bytes <= int64_t{1} << 20) {
    std::snprintf(text, sizeof(text), "%.2f KiB", size / 1024.0);
  } else if (bytes <= int64_t{1} << 30) {
    std::snprintf(text, sizeof(text), "%.2f MiB", size / 1048576.0);
  } else {
    std::snprintf(text, sizeof(text), "%.2f GiB", size / 1073741824.0);
  }
  return text;
}

Block* take_block(c10::DeviceIndex device, int64_t bytes) {
  Account& account = accounts()[device];
  const c10::StreamId stream = current_stream(device).id();
  Block* block = nullptr;
  bool asks_for_place = false;
  std::string full;
  {
    std::lock_guard<std::mutex> lock(account.mutex);
    block = account.allocator.take(bytes, stream, room_of(account));
    if (block == nullptr) {
      full = out_of_memory_text(device, bytes, account);
      account.peak.refuse(bytes, account.allocator.statistics());
    } else if (is_forecast()) {
      asks_for_place = account.peak.take(block, current_phase(), account.allocator.statistics());
    }
  }
  TORCH_CHECK_WITH(OutOfMemoryError, block != nullptr, full);
  if (asks_for_place) {
    const int32_t place = current_place(); // runs Python
    std::lock_guard<std::mutex> lock(account.mutex);
    account.peak.set_place(block, place);
  }
  return block;
}

void give_block_back(c10::DeviceIndex device, Block* block) noexcept {
  Account& account = accounts()[device];
  std::lock_guard<std::mutex> lock(account.mutex);
  if (is_forecast()) {
    account.peak.give_back(block);
  }
  account.allocator.give_back(block);
}

AllocatorStatistics memory_statistics(int device) {
  if (device < 0 || device >= kMaxDevices) {
    return {};
  }
  Account& account = accounts()[device];
  std::lock_guard<std::mutex> lock(account.mutex);
  return account.allocator.statistics();
}

void reset_peak_memory(int device) {
  Account& account = accounts().at(device);
  std::lock_guard<std::mutex> lock(account.mutex);
  account.allocator.reset_peaks();
}

void reset_accumulated_memory(int device) {
  Account& account = accounts().at(device);
  std::lock_guard<std::mutex> lock(account.mutex);
  account.allocator.reset_sums();
}

void empty_cache(int device) {
  Account& account = accounts().at(device);
  std::lock_guard<std::mutex> lock(account.mutex);
  account.allocator.release_free_segments();
}

int64_t memory_in_use(int device) {
  const int64_t reserved = memory_statistics(device).reserved_bytes[kBothPools].current;
  return device_capacity().driver + device_capacity().context + reserved;
}

void set_memory_fraction(int device, double fraction) {
  Account& account = accounts().at(device);
  std::lock_guard<std::mutex> lock(account.mutex);
  account.fraction = std::clamp(fraction, 0.0, 1.0);
}

double memory_fraction(int device) {
  Account& account = accounts().at(device);
  std::lock_guard<std::mutex> lock(account.mutex);
  return account.fraction.value_or(1.0);
}

void configure_allocators(const AllocatorSettings& settings) {
  for (Account& account : accounts()) {
    std::lock_guard<std::mutex> lock(account.mutex);
    account.allocator.configure(settings);
  }
}

std::vector<BlockOfSegment> memory_blocks(int device) {
  Account& account = accounts().at(device);
  std::lock_guard<std::mutex> lock(account.mutex);
  std::vector<BlockOfSegment> blocks;
  for (const Block* first : account.allocator.segments()) {
    int64_t segment = first->address;
    for (const Block* block = first; block != nullptr; block = block->next) {
      if (!block->mapped) {
        segment = block->address + block->size;
        continue;
      }
      blocks.push_back(
          {segment,
           block->address,
           block->size,
           block->requested,
           block->stream,
           block->pool == kLargePool,
           block->expandable != nullptr});
    }
  }
  return blocks;
}

PeakOfDevice memory_peak(int device) {
  PeakOfDevice told;
  if (device < 0 || device >= kMaxDevices) {
    return told;
  }
  Account& account = accounts()[device];
  std::lock_guard<std::mutex> lock(account.mutex);
  told.allocated = account.peak.allocated();
  told.refused = account.peak.refused();
  told.retries = account.allocator.statistics().num_alloc_retries;
  told.place = account.peak.place();
  told.phase = account.peak.phase();
  told.by_phase = account.peak.by_phase();
  for (const PhasePeak& of_phase : told.by_phase) {
    told.reserved = std::max(told.reserved, of_phase.reserved);
  }
  return told;
}

std::vector<HeldBlock> blocks_at_peak(int device) {
  Account& account = accounts().at(device);
  std::lock_guard<std::mutex> lock(account.mutex);
  return account.peak.blocks();
}

std::vector<HeldBlock> blocks_of_history(int device) {
  Account& account = accounts().at(device);
  std::lock_guard<std::mutex> lock(account.mutex);
  return account.peak.history();
}

Moments memory_moments(int device) {
  Account& account = accounts().at(device);
  std::lock_guard<std::mutex> lock(account.mutex);
  return {account.peak.moment(), account.peak.is_whole_since()};
}

void set_purpose(c10::DeviceIndex device, const Block* block, Purpose purpose) {
  Account& account = accounts()[device];
  std::lock_guard<std::mutex> lock(account.mutex);
  account.peak.set_purpose(block, purpose);
}

} // namespace ranksafe
