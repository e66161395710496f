// How many simulated devices there are, which one is current in this thread, and whether this process may use them.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>

namespace ranksafe {

inline constexpr int kMaxDevices = 64;

// Bytes of each device.
struct DeviceCapacity {
  int64_t memory; // all that torch reports
  int64_t driver; // what the driver keeps of it
  int64_t context; // what CUDA itself takes in each process that uses the device
};

// Called once, before torch looks for devices. Values out of range are clamped. `capability`: 10 times major plus minor.
void configure_devices(int count, int capability, const DeviceCapacity& capacity);

int device_count();
int device_capability();
DeviceCapacity device_capacity();

c10::DeviceIndex current_device();
// No check: the caller has made one or got the index from this library.
void set_current_device(c10::DeviceIndex index) noexcept;

// Raises torch.AcceleratorError with CUDA's text (error 101) for an ordinal that does not exist.
void check_ordinal(int64_t index);
// `device` with the current index where it has none; checks the ordinal.
c10::DeviceIndex index_of(c10::Device device);

// Notes that this process uses its devices. Raises CUDA's text in a process forked from one that did.
void require_usable_devices();
// For work on tensors that a forked process inherited: CUDA reports an initialization error there.
void require_no_fork();
bool in_bad_fork();

// Makes a device current for a scope, as CUDA's device guard does.
class CurrentDevice {
 public:
  explicit CurrentDevice(c10::DeviceIndex index) : previous_(current_device()) {
    set_current_device(index);
  }
  ~CurrentDevice() {
    set_current_device(previous_);
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  c10::DeviceIndex previous_;
};

} // namespace ranksafe
