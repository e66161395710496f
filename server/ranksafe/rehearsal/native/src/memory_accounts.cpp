#include "memory_accounts.h"

#include "device_state.h"
#include "torch_compatibility.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <mutex>

namespace ranksafe {
namespace {

struct Account {
  std::mutex mutex;
  MemoryStatistics statistics;
  int64_t small_bytes = 0;
  int64_t shared_bytes = 0;
  int64_t large_bytes = 0;
  double fraction = 1.0;
};

std::array<Account, kMaxDevices>& accounts() {
  static auto* all = new std::array<Account, kMaxDevices>();
  return *all;
}

std::atomic<int64_t> bytes_of_all_devices{0};

int64_t rounded_up(int64_t bytes, int64_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

// What CUDA would be asked for, were nothing cached: the size that its out-of-memory message names.
int64_t segment_bytes(int64_t block) {
  if (block <= kSmallAllocation) {
    return kSmallSegment;
  }
  return block < kSharedSegmentLimit ? kSharedSegment : rounded_up(block, kSmallSegment);
}

int64_t& pool_of(Account& account, int64_t block) {
  if (block <= kSmallAllocation) {
    return account.small_bytes;
  }
  return block < kSharedSegmentLimit ? account.shared_bytes : account.large_bytes;
}

int64_t segments_in_use(const Account& account) {
  return rounded_up(account.small_bytes, kSmallSegment) + rounded_up(account.shared_bytes, kSharedSegment) +
      rounded_up(account.large_bytes, kSmallSegment);
}

[[noreturn]] void raise_out_of_memory(c10::DeviceIndex device, int64_t block, const MemoryStatistics& statistics, int64_t limit) {
  const int64_t total = device_capacity();
  // CUDA's allocator gives its cache back before it gives up.
  const int64_t reserved = std::clamp(statistics.reserved, statistics.allocated, std::max(limit, statistics.allocated));
  const int64_t free = std::max<int64_t>(total - reserved, 0);
  const std::string allowed = limit < total ? format_bytes(limit) + " allowed; " : "";
  TORCH_CHECK_WITH(
      OutOfMemoryError,
      false,
      "CUDA out of memory. Tried to allocate ",
      format_bytes(segment_bytes(block)),
      ". GPU ",
      static_cast<int>(device),
      " has a total capacity of ",
      format_bytes(total),
      " of which ",
      format_bytes(free),
      " is free. Including non-PyTorch memory, this process has ",
      format_bytes(reserved),
      " memory in use. ",
      allowed,
      "Of the allocated memory ",
      format_bytes(statistics.allocated),
      " is allocated by PyTorch, and ",
      format_bytes(reserved - statistics.allocated),
      " is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting "
      "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for Memory Management  "
      "(" RANKSAFE_MEMORY_DOCUMENTATION ")");
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

void account_allocation(c10::DeviceIndex device, int64_t bytes) {
  if (bytes <= 0) {
    return;
  }
  const int64_t block = rounded_up(bytes, kBlockBytes);
  Account& account = accounts()[device];
  MemoryStatistics at_failure;
  int64_t limit = 0;
  {
    std::lock_guard<std::mutex> lock(account.mutex);
    MemoryStatistics& now = account.statistics;
    limit = static_cast<int64_t>(static_cast<double>(device_capacity()) * account.fraction);
    if (now.allocated + block <= limit) {
      now.allocated += block;
      now.allocated_total += block;
      now.allocated_peak = std::max(now.allocated_peak, now.allocated);
      now.requested += bytes;
      now.requested_total += bytes;
      now.requested_peak = std::max(now.requested_peak, now.requested);
      now.blocks += 1;
      now.blocks_total += 1;
      now.blocks_peak = std::max(now.blocks_peak, now.blocks);
      pool_of(account, block) += block;
      now.reserved = std::min(std::max(now.reserved, segments_in_use(account)), std::max(limit, now.allocated));
      now.reserved_peak = std::max(now.reserved_peak, now.reserved);
      bytes_of_all_devices.fetch_add(block, std::memory_order_relaxed);
      return;
    }
    now.out_of_memory += 1;
    at_failure = now;
  }
  raise_out_of_memory(device, block, at_failure, limit);
}

void account_release(c10::DeviceIndex device, int64_t bytes) noexcept {
  if (bytes <= 0) {
    return;
  }
  const int64_t block = rounded_up(bytes, kBlockBytes);
  Account& account = accounts()[device];
  std::lock_guard<std::mutex> lock(account.mutex);
  account.statistics.allocated -= block;
  account.statistics.requested -= bytes;
  account.statistics.blocks -= 1;
  pool_of(account, block) -= block;
  bytes_of_all_devices.fetch_sub(block, std::memory_order_relaxed);
}

MemoryStatistics memory_statistics(int device) {
  if (device < 0 || device >= kMaxDevices) {
    return {};
  }
  Account& account = accounts()[device];
  std::lock_guard<std::mutex> lock(account.mutex);
  return account.statistics;
}

void reset_peak_memory(int device) {
  Account& account = accounts().at(device);
  std::lock_guard<std::mutex> lock(account.mutex);
  MemoryStatistics& now = account.statistics;
  now.allocated_peak = now.allocated;
  now.requested_peak = now.requested;
  now.reserved_peak = now.reserved;
  now.blocks_peak = now.blocks;
}

void reset_accumulated_memory(int device) {
  Account& account = accounts().at(device);
  std::lock_guard<std::mutex> lock(account.mutex);
  account.statistics.allocated_total = 0;
  account.statistics.requested_total = 0;
  account.statistics.blocks_total = 0;
  account.statistics.out_of_memory = 0;
}

void empty_cache(int device) {
  Account& account = accounts().at(device);
  std::lock_guard<std::mutex> lock(account.mutex);
  account.statistics.reserved = segments_in_use(account);
}

void set_memory_fraction(int device, double fraction) {
  Account& account = accounts().at(device);
  std::lock_guard<std::mutex> lock(account.mutex);
  account.fraction = std::clamp(fraction, 0.0, 1.0);
}

double memory_fraction(int device) {
  Account& account = accounts().at(device);
  std::lock_guard<std::mutex> lock(account.mutex);
  return account.fraction;
}

int64_t simulated_bytes() {
  return bytes_of_all_devices.load(std::memory_order_relaxed);
}

} // namespace ranksafe
