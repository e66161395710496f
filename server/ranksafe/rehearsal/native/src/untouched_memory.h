// Memory that takes no real memory until somebody writes to it, and reads as zeros.
#pragma once

#include <cstddef>

namespace ranksafe {

// Null where the system refuses: it may forbid promising more than it has.
void* reserve_untouched(std::size_t bytes);
// False where `memory` is not the start of such memory.
bool release_untouched(void* memory) noexcept;

// Whether the tensors over this memory have no values; `address` may point anywhere into it. Ignored for other memory.
void mark_valueless(const void* address);
bool is_valueless(const void* address);

} // namespace ranksafe
