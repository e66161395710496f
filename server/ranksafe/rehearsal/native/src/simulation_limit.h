// What the simulation cannot do. A limit must never look like the user's own mistake.
#pragma once

#include <string>

namespace ranksafe {

// Every text of a limit starts with these words; the processes and the explanation of a run recognise them.
inline constexpr const char* kLimitPrefix = "ranksafe simulation limit: ";

// Raises NotImplementedError (Python's too) with `kLimitPrefix` before `message`.
[[noreturn]] void raise_limit(const std::string& message);

// The text of the last limit that was raised in this process, "" when there was none.
const char* last_limit();

} // namespace ranksafe
