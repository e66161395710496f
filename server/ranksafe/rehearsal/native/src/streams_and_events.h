// Streams and events as real objects. Work is done at once, in order: a stream has never anything left to do.
#pragma once

#include <c10/core/Stream.h>

#include <cstdint>

namespace ranksafe {

c10::Stream current_stream(c10::DeviceIndex device);
c10::Stream default_stream(c10::DeviceIndex device);
// The next stream of the device's pool of 32, as CUDA hands them out. `priority` below 0 is high.
c10::Stream stream_from_pool(c10::DeviceIndex device, int priority);
// Makes `stream` the current one of its device in this thread and returns the one before.
c10::Stream exchange_stream(c10::Stream stream);

// When something was recorded. Owned by the torch event that asked for it.
struct RecordedEvent {
  int64_t nanoseconds = 0;
};

// Now, on a clock that never stands still between two calls: two events never have the same time.
int64_t monotonic_nanoseconds();
// Milliseconds from one event to the other. Raises CUDA's text when one has not been recorded.
double elapsed_milliseconds(const RecordedEvent* start, const RecordedEvent* end);

} // namespace ranksafe
