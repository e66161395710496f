"""``torch._C._CudaDeviceProperties`` of the simulated devices."""

from __future__ import annotations

import uuid
from typing import Any

from .. import node_devices, visible_devices
from ..state import devices

_SHARED_MEMORY_OPT_IN = {
    (7, 0): 98304,
    (7, 5): 65536,
    (8, 0): 166912,
    (8, 6): 101376,
    (8, 9): 101376,
}
"""Largest shared memory of one block in bytes, by capability (CUDA C++ Programming Guide, technical specifications)."""
_HOPPER_AND_LATER = 232448
_L2_CACHE = {(7, 0): 6, (7, 5): 4, (8, 0): 40, (8, 6): 6, (8, 9): 72, (9, 0): 50}
"""In MiB, of each capability's best known model."""


class _CUuuid:
    """A device's identity as torch prints it: without the ``GPU-`` that the driver's tools put before it."""

    def __init__(self, value: uuid.UUID) -> None:
        self._value = value

    @property
    def bytes(self) -> list[int]:
        """The sixteen bytes as integers."""
        return list(self._value.bytes)

    def __str__(self) -> str:
        return str(self._value)

    __repr__ = __str__


class _CudaDeviceProperties:
    """Attributes and text of torch 2.13's ``cudaDeviceProp`` binding."""

    def __init__(self, device: int) -> None:
        known = devices()
        settings, physical = known.settings, known.physical[device]
        capability = settings.capability
        opt_in = _SHARED_MEMORY_OPT_IN.get(capability, _HOPPER_AND_LATER)
        self.name = settings.device_name
        self.major, self.minor = capability
        self.is_multi_gpu_board = 0
        self.is_integrated = 0
        self.multi_processor_count = settings.multi_processor_count
        self.total_memory = known.library.memory_total()
        self.max_threads_per_multi_processor = 1024 if capability == (7, 5) else 2048
        if capability in ((8, 6), (8, 9), (12, 0)):
            self.max_threads_per_multi_processor = 1536
        self.max_threads_per_block = 1024
        self.warp_size = 32
        self.regs_per_multiprocessor = 65536
        self.shared_memory_per_block = 49152
        self.shared_memory_per_block_optin = opt_in
        self.shared_memory_per_multiprocessor = opt_in + 1024
        self.gcnArchName = settings.device_name
        self.L2_cache_size = _L2_CACHE.get(capability, 50) << 20
        self.clock_rate = 1410000
        self.memory_clock_rate = 1593000
        self.memory_bus_width = 5120
        self.uuid = _CUuuid(visible_devices.device_uuid(settings.node, physical))
        self.pci_bus_id = node_devices.pci_bus(physical)
        self.pci_device_id = 0
        self.pci_domain_id = 0

    def __repr__(self) -> str:
        return (
            f"_CudaDeviceProperties(name='{self.name}', major={self.major}, minor={self.minor}, "
            f"total_memory={self.total_memory >> 20}MB, "
            f"multi_processor_count={self.multi_processor_count}, uuid={self.uuid}, "
            f"pci_bus_id={self.pci_bus_id}, pci_device_id={self.pci_device_id}, "
            f"pci_domain_id={self.pci_domain_id}, L2_cache_size={self.L2_cache_size >> 20}MB)"
        )


_properties: dict[int, _CudaDeviceProperties] = {}


def get_device_properties(device: int) -> _CudaDeviceProperties:
    """Properties of a visible device: the same object each time, as in torch."""
    if device not in _properties:
        _properties[device] = _CudaDeviceProperties(device)
    return _properties[device]


def bindings() -> dict[str, Any]:
    """Names for ``torch._C``."""
    return {"_CudaDeviceProperties": _CudaDeviceProperties, "_CUuuid": _CUuuid}
