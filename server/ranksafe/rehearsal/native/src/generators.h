// Random numbers of the simulated devices: one generator per device, with CUDA's state of seed and offset.
#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/Device.h>

#include <cstdint>

namespace ranksafe {

const at::Generator& default_generator(c10::DeviceIndex device);
at::Generator new_generator(c10::DeviceIndex device);

// A generator of the host for one operator call, whose numbers depend on the seed and on how many calls came before.
// `chosen` is what the caller passed, may be undefined; raises torch's text when it belongs to another device type.
at::Generator host_generator_for_call(const at::Generator& chosen, c10::DeviceIndex device);

} // namespace ranksafe
