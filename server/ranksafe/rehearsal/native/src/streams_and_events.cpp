#include "streams_and_events.h"

#include "device_state.h"

#include <c10/util/Exception.h>

#include <array>
#include <atomic>
#include <chrono>

namespace ranksafe {
namespace {

constexpr int kStreamsPerPool = 32;
constexpr int kPriorities = 2;

// The layout of a CUDA stream's number (c10/cuda/CUDAStream.cpp, torch 2.0 to 2.15): the lowest bit says that it is
// not an external stream, four bits its priority from 1, the rest its place in the pool.
c10::StreamId pooled_stream_id(int priority_from_low, int place) {
  return (static_cast<c10::StreamId>(place) << 5) | (static_cast<c10::StreamId>(priority_from_low + 1) << 1) | 1;
}

std::array<std::array<std::atomic<uint32_t>, kPriorities>, kMaxDevices>& pool_counters() {
  static auto* counters = new std::array<std::array<std::atomic<uint32_t>, kPriorities>, kMaxDevices>();
  return *counters;
}

std::array<c10::StreamId, kMaxDevices>& thread_streams() {
  thread_local std::array<c10::StreamId, kMaxDevices> streams{};
  return streams;
}

c10::Device cuda_device(c10::DeviceIndex index) {
  return {c10::DeviceType::CUDA, index};
}

} // namespace

c10::Stream current_stream(c10::DeviceIndex device) {
  return c10::Stream(c10::Stream::UNSAFE, cuda_device(device), thread_streams()[device]);
}

c10::Stream default_stream(c10::DeviceIndex device) {
  return c10::Stream(c10::Stream::DEFAULT, cuda_device(device));
}

c10::Stream stream_from_pool(c10::DeviceIndex device, int priority) {
  const int level = priority < 0 ? 1 : 0;
  const uint32_t place = pool_counters()[device][level].fetch_add(1) % kStreamsPerPool;
  return c10::Stream(c10::Stream::UNSAFE, cuda_device(device), pooled_stream_id(level, static_cast<int>(place)));
}

c10::Stream exchange_stream(c10::Stream stream) {
  const c10::DeviceIndex device = stream.device_index();
  const c10::Stream previous = current_stream(device);
  thread_streams()[device] = stream.id();
  return previous;
}

int64_t monotonic_nanoseconds() {
  static std::atomic<int64_t> last{0};
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  int64_t time = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
  int64_t before = last.load();
  do {
    time = time > before ? time : before + 1;
  } while (!last.compare_exchange_weak(before, time));
  return time;
}

double elapsed_milliseconds(const RecordedEvent* start, const RecordedEvent* end) {
  TORCH_CHECK(
      start != nullptr && end != nullptr && start->nanoseconds != 0 && end->nanoseconds != 0,
      "Both events must be recorded before calculating elapsed time.");
  return static_cast<double>(end->nanoseconds - start->nanoseconds) / 1e6;
}

} // namespace ranksafe
