"""What the driver's tools tell of the node's devices: from the settings, without torch."""

from __future__ import annotations

import sys

from . import visible_devices
from .settings import Settings, current

DRIVER_VERSION = "570.124.06"
DRIVER_CUDA_VERSION = "12.8"
TEMPERATURE = 34
POWER_WATTS = 62
POWER_LIMIT_WATTS = 400
CLOCK_MHZ = 1410


def _settings() -> Settings:
    chosen = current()
    if chosen is None:
        raise RuntimeError("not in a rehearsal")
    return chosen


def count() -> int:
    """Devices of this node."""
    return _settings().devices


def name() -> str:
    """The device model's name."""
    return _settings().device_name


def capability() -> tuple[int, int]:
    """Major and minor."""
    return _settings().capability


def multi_processor_count() -> int:
    """Of each device."""
    return _settings().multi_processor_count


def uuid(device: int) -> str:
    """A device's identity as the driver's tools write it."""
    return f"GPU-{visible_devices.device_uuid(_settings().node, device)}"


def pci_bus(device: int) -> int:
    """The number of the PCI bus that a device sits on."""
    return 16 * (device + 1) % 256


def pci_address(device: int) -> str:
    """Domain, bus, device and function."""
    return f"00000000:{pci_bus(device):02X}:00.0"


def memory_total() -> int:
    """Bytes of each device."""
    return _settings().memory_bytes


def memory_used(device: int) -> int:
    """Bytes that this process holds on a device of the node: other processes' are not known."""
    state = sys.modules.get("ranksafe_rehearsal.state")
    known = None if state is None else state._devices
    if known is None or device not in known.physical:
        return 0
    return int(known.library.memory_in_use(known.physical.index(device)))
