#include "host_memory.h"

#include "allocators.h"
#include "forecast_mode.h"
#include "memory_accounts.h"
#include "simulation_limit.h"
#include "untouched_memory.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <string>

#ifdef __linux__
#include <unistd.h>
#endif

namespace ranksafe {
namespace {

// Below this, asking how much memory is in use costs more than the allocation.
constexpr std::size_t kCheckedAllocation = std::size_t{1} << 20;

std::atomic<int64_t> host_limit{0};

// Bytes of this process that are in real memory; 0 where that is not known.
int64_t resident_bytes() {
#ifdef __linux__
  if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
    long long total = 0;
    long long resident = 0;
    const int fields = std::fscanf(file, "%lld %lld", &total, &resident);
    std::fclose(file);
    if (fields == 2) {
      return static_cast<int64_t>(resident) * sysconf(_SC_PAGESIZE);
    }
  }
#endif
  return 0;
}

[[noreturn]] void raise_host_memory_limit(std::size_t bytes, const std::string& why) {
  raise_limit(
      "host memory: " + why + " while " + format_bytes(static_cast<int64_t>(bytes)) +
      " more were asked for; the simulated devices keep their memory on this machine and hold " +
      format_bytes(simulated_bytes()));
}

void* reserve_untouched_or_raise(std::size_t bytes) {
  void* memory = reserve_untouched(bytes);
  if (memory == nullptr) {
    raise_host_memory_limit(bytes, "this system gives no memory beyond what it has");
  }
  return memory;
}

c10::Allocator* real_allocator = nullptr;

// oneDNN gives back bare pointers, so one function must know both kinds.
void release_either(void* memory) {
  if (!release_untouched(memory)) {
    real_allocator->raw_deleter()(memory);
  }
}

// torch's own allocator for the host with the bound in front, because the CPU kernels that do the devices' work take
// the memory of their results from it.
class BoundedHostAllocator final : public c10::Allocator {
 public:
  explicit BoundedHostAllocator(c10::Allocator* real) : real_(real) {}

  c10::DataPtr allocate(std::size_t bytes) override {
    require_host_memory(bytes);
    if (is_forecast() && bytes >= kLargeBytes) {
      void* memory = reserve_untouched_or_raise(bytes);
      return {memory, memory, &release_either, c10::Device(c10::DeviceType::CPU)};
    }
    try {
      return real_->allocate(bytes);
    } catch (const c10::Error&) {
      raise_host_memory_limit(bytes, "this machine has no more memory");
    }
  }
  c10::DeleterFnPtr raw_deleter() const override {
    return &release_either;
  }
  void copy_data(void* destination, const void* source, std::size_t bytes) const override {
    real_->copy_data(destination, source, bytes);
  }

 private:
  c10::Allocator* real_;
};

} // namespace

void install_host_allocator() {
  static const bool installed = [] {
    real_allocator = c10::GetCPUAllocator();
    // A priority above torch's own (0), so that a later registration does not undo this one.
    c10::SetCPUAllocator(new BoundedHostAllocator(real_allocator), 1);
    return true;
  }();
  (void)installed;
}

void set_host_memory_limit(int64_t bytes) {
  host_limit = bytes;
  install_host_allocator();
}

void require_host_memory(std::size_t bytes) {
  const int64_t limit = host_limit.load(std::memory_order_relaxed);
  if (limit <= 0 || bytes < kCheckedAllocation) {
    return;
  }
  // Pages that nobody has written to yet are not resident, but a program that allocates them means to, unless nothing
  // large is ever computed.
  const int64_t used = is_forecast() ? resident_bytes() : std::max(resident_bytes(), simulated_bytes());
  if (used + (is_forecast() ? 0 : static_cast<int64_t>(bytes)) > limit) {
    raise_host_memory_limit(
        bytes, "this process may use " + format_bytes(limit) + " and uses " + format_bytes(used));
  }
}

void* allocate_host_memory(std::size_t bytes) {
  require_host_memory(bytes);
  if (is_forecast() && bytes >= kLargeBytes) {
    return reserve_untouched_or_raise(bytes);
  }
  try {
    void* memory = c10::alloc_cpu(bytes);
    if (is_forecast()) {
      std::memset(memory, 0, bytes); // what depends on values that nobody has shall not depend on chance
    }
    return memory;
  } catch (const c10::Error&) {
    raise_host_memory_limit(bytes, "this machine has no more memory");
  }
}

void free_host_memory(void* memory) noexcept {
  if (!is_forecast() || !release_untouched(memory)) {
    c10::free_cpu(memory);
  }
}

} // namespace ranksafe
