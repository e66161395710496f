#include "untouched_memory.h"

#include <map>
#include <mutex>

#ifdef _WIN32
#define NOMINMAX
#include <windows.h>
#else
#include <sys/mman.h>
#endif

namespace ranksafe {
namespace {

struct Region {
  std::size_t bytes;
  bool valueless;
};

struct Regions {
  std::mutex mutex;
  std::map<const char*, Region> by_start;
};

Regions& regions() {
  static auto* all = new Regions();
  return *all;
}

void* from_system(std::size_t bytes) {
#ifdef _WIN32
  return VirtualAlloc(nullptr, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
#else
#ifdef MAP_NORESERVE
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
#else
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS;
#endif
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, kFlags, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
#endif
}

void to_system(void* memory, std::size_t bytes) noexcept {
#ifdef _WIN32
  (void)bytes;
  VirtualFree(memory, 0, MEM_RELEASE);
#else
  munmap(memory, bytes);
#endif
}

// The caller holds the lock.
Region* region_around(const void* address) {
  auto found = regions().by_start.upper_bound(static_cast<const char*>(address));
  if (found == regions().by_start.begin()) {
    return nullptr;
  }
  --found;
  return static_cast<const char*>(address) < found->first + found->second.bytes ? &found->second : nullptr;
}

} // namespace

void* reserve_untouched(std::size_t bytes) {
  void* memory = from_system(bytes);
  if (memory != nullptr) {
    const std::lock_guard<std::mutex> lock(regions().mutex);
    regions().by_start[static_cast<char*>(memory)] = {bytes, false};
  }
  return memory;
}

bool release_untouched(void* memory) noexcept {
  std::size_t bytes = 0;
  {
    const std::lock_guard<std::mutex> lock(regions().mutex);
    const auto found = regions().by_start.find(static_cast<char*>(memory));
    if (found == regions().by_start.end()) {
      return false;
    }
    bytes = found->second.bytes;
    regions().by_start.erase(found);
  }
  to_system(memory, bytes);
  return true;
}

void mark_valueless(const void* address) {
  const std::lock_guard<std::mutex> lock(regions().mutex);
  if (Region* region = region_around(address)) {
    region->valueless = true;
  }
}

bool is_valueless(const void* address) {
  const std::lock_guard<std::mutex> lock(regions().mutex);
  const Region* region = region_around(address);
  return region != nullptr && region->valueless;
}

} // namespace ranksafe
