// The real memory behind the simulated devices. It runs out as a simulation limit, never as CUDA's out of memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ranksafe {

// What this process may hold of the machine's memory, in bytes; 0 or less: not bounded.
void set_host_memory_limit(int64_t bytes);

// Puts our allocator before torch's for the host, once.
void install_host_allocator();

// Raises the limit when `bytes` more would exceed the bound.
void require_host_memory(std::size_t bytes);

// Aligned memory, never null for bytes > 0. Raises the limit when the machine has none left.
void* allocate_host_memory(std::size_t bytes);
void free_host_memory(void* memory) noexcept;

} // namespace ranksafe
