// Memory of the simulated devices and pinned memory of the host, as torch's allocators.
#pragma once

#include "memory_peak.h"

#include <c10/core/Allocator.h>
#include <c10/core/Storage.h>

namespace ranksafe {

// Allocates on the thread's current device.
c10::Allocator* device_allocator();
c10::Allocator* pinned_allocator();
bool is_pinned(const void* pointer);

// Memory of a host tensor, entered in the device's account from now on. Raises torch.OutOfMemoryError.
c10::DataPtr adopt_host_storage(const c10::Storage& storage, c10::DeviceIndex device);

// Says what tensors in this storage are for, unless that was said before; storages of the host are passed over.
void set_purpose(const c10::StorageImpl& storage, Purpose purpose);

// Bytes of all devices' tensors together.
int64_t simulated_bytes();

} // namespace ranksafe
