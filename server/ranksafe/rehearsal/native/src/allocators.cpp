#include "allocators.h"

#include "device_state.h"
#include "host_memory.h"
#include "memory_accounts.h"
#include "torch_compatibility.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_set>

namespace ranksafe {
namespace {

// Of all devices together, as the tensors asked for it.
std::atomic<int64_t> bytes_of_all_devices{0};

// The context of every data pointer of a simulated device.
class DeviceMemory {
 public:
  DeviceMemory(c10::DeviceIndex device, int64_t bytes) : device_(device), block_(take_block(device, bytes)) {
    bytes_of_all_devices.fetch_add(block_->requested, std::memory_order_relaxed);
  }
  ~DeviceMemory() {
    bytes_of_all_devices.fetch_sub(block_->requested, std::memory_order_relaxed);
    give_block_back(device_, block_);
    if (memory_ != nullptr) {
      free_host_memory(memory_);
    }
  }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  void* allocate_on_host() {
    memory_ = allocate_host_memory(static_cast<std::size_t>(block_->requested));
    return memory_;
  }
  void adopt(const c10::Storage& storage) {
    adopted_ = storage;
  }
  void set_purpose(Purpose purpose) const {
    ranksafe::set_purpose(device_, block_, purpose);
  }
  static void release(void* context) {
    delete static_cast<DeviceMemory*>(context);
  }

 private:
  c10::DeviceIndex device_;
  Block* block_;
  void* memory_ = nullptr; // null when `adopted_` owns the bytes
  c10::Storage adopted_;
};

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
      return {nullptr, nullptr, &DeviceMemory::release, device};
    }
    auto memory = std::make_unique<DeviceMemory>(index, static_cast<int64_t>(bytes));
    void* address = memory->allocate_on_host();
    return {address, memory.release(), &DeviceMemory::release, device};
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
    const AllocatorStatistics now = memory_statistics(device);
    c10::CachingDeviceAllocator::DeviceStats statistics;
    const auto fill = [](c10::CachingAllocator::StatArray& target, const StatisticByPool& source) {
      for (std::size_t pool = 0; pool < source.size(); ++pool) {
        target[pool].current = source[pool].current;
        target[pool].peak = source[pool].peak;
        target[pool].allocated = source[pool].allocated;
        target[pool].freed = source[pool].freed;
      }
    };
    fill(statistics.allocation, now.allocation);
    fill(statistics.segment, now.segment);
    fill(statistics.active, now.allocation);
    fill(statistics.inactive_split, now.inactive_split);
    fill(statistics.allocated_bytes, now.allocated_bytes);
    fill(statistics.reserved_bytes, now.reserved_bytes);
    fill(statistics.active_bytes, now.allocated_bytes);
    fill(statistics.inactive_split_bytes, now.inactive_split_bytes);
    fill(statistics.requested_bytes, now.requested_bytes);
    statistics.num_alloc_retries = now.num_alloc_retries;
    statistics.num_ooms = now.num_ooms;
    statistics.num_sync_all_streams = now.num_sync_all_streams;
    statistics.num_device_alloc = now.num_device_alloc;
    statistics.num_device_free = now.num_device_free;
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
    const int64_t total = device_capacity().memory;
    return {static_cast<std::size_t>(total - memory_in_use(device)), static_cast<std::size_t>(total)};
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
  const c10::Device place(c10::DeviceType::CUDA, device);
  if (storage.nbytes() == 0) {
    return {nullptr, nullptr, &DeviceMemory::release, place};
  }
  auto memory = std::make_unique<DeviceMemory>(device, static_cast<int64_t>(storage.nbytes()));
  memory->adopt(storage);
  return {const_cast<void*>(storage.data()), memory.release(), &DeviceMemory::release, place};
}

void set_purpose(const c10::StorageImpl& storage, Purpose purpose) {
  const c10::DataPtr& data = storage.data_ptr();
  if (data.get_deleter() == &DeviceMemory::release && data.get_context() != nullptr) {
    static_cast<const DeviceMemory*>(data.get_context())->set_purpose(purpose);
  }
}

int64_t simulated_bytes() {
  return bytes_of_all_devices.load(std::memory_order_relaxed);
}

} // namespace ranksafe
