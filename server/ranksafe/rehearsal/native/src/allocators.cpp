#include "allocators.h"

#include "device_state.h"
#include "host_memory.h"
#include "memory_accounts.h"
#include "torch_compatibility.h"

#include <mutex>
#include <unordered_set>

namespace ranksafe {
namespace {

// The context of every data pointer of a simulated device.
struct DeviceBlock {
  void* memory; // null when `adopted` owns the bytes
  int64_t bytes;
  c10::DeviceIndex device;
  c10::Storage adopted;
};

void release_block(void* context) {
  auto* block = static_cast<DeviceBlock*>(context);
  account_release(block->device, block->bytes);
  if (block->memory != nullptr) {
    free_host_memory(block->memory);
  }
  delete block;
}

#if RANKSAFE_DEVICE_ALLOCATOR_INTERFACE
using DeviceAllocatorBase = c10::DeviceAllocator;
#else
using DeviceAllocatorBase = c10::Allocator;
#endif

class SimulatedDeviceAllocator final : public DeviceAllocatorBase {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    require_usable_devices();
    const c10::DeviceIndex index = current_device();
    const c10::Device device(c10::DeviceType::CUDA, index);
    if (bytes == 0) {
      return {nullptr, nullptr, &release_block, device};
    }
    const auto size = static_cast<int64_t>(bytes);
    account_allocation(index, size);
    void* memory = nullptr;
    try {
      memory = allocate_host_memory(bytes);
    } catch (...) {
      account_release(index, size);
      throw;
    }
    return {memory, new DeviceBlock{memory, size, index, {}}, &release_block, device};
  }
  c10::DeleterFnPtr raw_deleter() const override {
    return nullptr;
  }
  void copy_data(void* destination, const void* source, std::size_t bytes) const override {
    default_copy_data(destination, source, bytes);
  }

#if RANKSAFE_DEVICE_ALLOCATOR_INTERFACE
  bool initialized() override {
    return device_count() > 0;
  }
  void emptyCache(c10::MempoolId_t) override {
    for (int device = 0; device < device_count(); ++device) {
      empty_cache(device);
    }
  }
  void recordStream(const c10::DataPtr&, c10::Stream) override {}
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex device) override {
    const MemoryStatistics now = memory_statistics(device);
    c10::CachingDeviceAllocator::DeviceStats statistics;
    constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    const auto fill = [](c10::CachingAllocator::Stat& stat, int64_t current, int64_t peak, int64_t total) {
      stat.current = current;
      stat.peak = peak;
      stat.allocated = total;
      stat.freed = total - current;
    };
    fill(statistics.allocated_bytes[kAll], now.allocated, now.allocated_peak, now.allocated_total);
    fill(statistics.active_bytes[kAll], now.allocated, now.allocated_peak, now.allocated_total);
    fill(statistics.requested_bytes[kAll], now.requested, now.requested_peak, now.requested_total);
    fill(statistics.reserved_bytes[kAll], now.reserved, now.reserved_peak, now.reserved_peak);
    fill(statistics.allocation[kAll], now.blocks, now.blocks_peak, now.blocks_total);
    fill(statistics.active[kAll], now.blocks, now.blocks_peak, now.blocks_total);
    statistics.num_ooms = now.out_of_memory;
    return statistics;
  }
  void resetAccumulatedStats(c10::DeviceIndex device) override {
    reset_accumulated_memory(device);
  }
  void resetPeakStats(c10::DeviceIndex device) override {
    reset_peak_memory(device);
  }
#if RANKSAFE_TORCH_AT_LEAST(2, 10)
  std::pair<std::size_t, std::size_t> getMemoryInfo(c10::DeviceIndex device) override {
    const int64_t total = device_capacity();
    return {static_cast<std::size_t>(total - memory_statistics(device).reserved), static_cast<std::size_t>(total)};
  }
#endif
#endif
};

class PinnedAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    void* memory = allocate_host_memory(bytes == 0 ? 1 : bytes);
    {
      std::lock_guard<std::mutex> lock(mutex_);
      blocks_.insert(memory);
    }
    return {memory, memory, &release, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override {
    return &release;
  }
  void copy_data(void* destination, const void* source, std::size_t bytes) const override {
    default_copy_data(destination, source, bytes);
  }
  bool owns(const void* pointer) {
    std::lock_guard<std::mutex> lock(mutex_);
    return blocks_.count(pointer) > 0;
  }
  static PinnedAllocator& instance() {
    static auto* allocator = new PinnedAllocator();
    return *allocator;
  }

 private:
  static void release(void* memory) {
    {
      std::lock_guard<std::mutex> lock(instance().mutex_);
      instance().blocks_.erase(memory);
    }
    free_host_memory(memory);
  }

  std::mutex mutex_;
  std::unordered_set<const void*> blocks_;
};

SimulatedDeviceAllocator& simulated_allocator() {
  static auto* allocator = new SimulatedDeviceAllocator();
  return *allocator;
}

// Above the priority of any allocator that a torch library registers.
const bool allocator_registered = [] {
  c10::SetAllocator(c10::DeviceType::CUDA, &simulated_allocator(), 100);
  return true;
}();

} // namespace

c10::Allocator* device_allocator() {
  return &simulated_allocator();
}

c10::Allocator* pinned_allocator() {
  return &PinnedAllocator::instance();
}

bool is_pinned(const void* pointer) {
  return PinnedAllocator::instance().owns(pointer);
}

c10::DataPtr adopt_host_storage(const c10::Storage& storage, c10::DeviceIndex device) {
  const auto bytes = static_cast<int64_t>(storage.nbytes());
  account_allocation(device, bytes);
  auto* block = new DeviceBlock{nullptr, bytes, device, storage};
  return {
      const_cast<void*>(storage.data()), block, &release_block, c10::Device(c10::DeviceType::CUDA, device)};
}

} // namespace ranksafe
