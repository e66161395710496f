// The device guard of the CUDA device type: current device, streams and events for everything in torch.
#include "device_state.h"
#include "streams_and_events.h"

#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace ranksafe {
namespace {

using c10::Device;
using c10::DeviceIndex;
using c10::DeviceType;
using c10::Stream;

class SimulatedDeviceGuard final : public c10::impl::DeviceGuardImplInterface {
 public:
  DeviceType type() const override {
    return DeviceType::CUDA;
  }
  Device exchangeDevice(Device device) const override {
    const Device previous(DeviceType::CUDA, current_device());
    setDevice(device);
    return previous;
  }
  Device getDevice() const override {
    return Device(DeviceType::CUDA, current_device());
  }
  void setDevice(Device device) const override {
    if (device.has_index() && device.index() != current_device()) {
      check_ordinal(device.index());
      set_current_device(device.index());
    }
  }
  void uncheckedSetDevice(Device device) const noexcept override {
    if (device.has_index()) {
      set_current_device(device.index());
    }
  }
  DeviceIndex deviceCount() const noexcept override {
    return static_cast<DeviceIndex>(device_count());
  }

  Stream getStream(Device device) const override {
    return current_stream(index_of(device));
  }
  Stream getDefaultStream(Device device) const override {
    return default_stream(index_of(device));
  }
  Stream getStreamFromGlobalPool(Device device, bool high_priority) const override {
    return stream_from_pool(index_of(device), high_priority ? -1 : 0);
  }
  Stream getNewStream(Device device, int priority) const override {
    return stream_from_pool(index_of(device), priority);
  }
  Stream exchangeStream(Stream stream) const override {
    return exchange_stream(stream);
  }
  bool queryStream(const Stream&) const override {
    return true;
  }
  void synchronizeStream(const Stream&) const override {}
  void synchronizeDevice(const DeviceIndex) const override {}

  void record(void** event, const Stream& stream, const DeviceIndex device, const c10::EventFlag) const override {
    TORCH_CHECK(
        device == -1 || device == stream.device_index(),
        "Event device index ",
        static_cast<int>(device),
        " does not match recording stream's device index ",
        static_cast<int>(stream.device_index()),
        ".");
    if (*event == nullptr) {
      *event = new RecordedEvent();
    }
    static_cast<RecordedEvent*>(*event)->nanoseconds = monotonic_nanoseconds();
  }
  void block(void*, const Stream&) const override {}
  bool queryEvent(void*) const override {
    return true;
  }
  void synchronizeEvent(void*) const override {}
  void destroyEvent(void* event, const DeviceIndex) const noexcept override {
    delete static_cast<RecordedEvent*>(event);
  }
  double elapsedTime(void* start, void* end, const DeviceIndex) const override {
    return elapsed_milliseconds(static_cast<RecordedEvent*>(start), static_cast<RecordedEvent*>(end));
  }
};

C10_REGISTER_GUARD_IMPL(CUDA, SimulatedDeviceGuard)

} // namespace
} // namespace ranksafe
