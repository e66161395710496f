"""Stands in for ``pynvml``, installed or not: the real one needs the driver's library.

What it is asked for by torch, accelerate, transformers, lightning, deepspeed, wandb, gpustat and codecarbon is
answered;
any other function says, as a driver would, that the device does not support it. Like NVML it knows every device of the
node, whatever ``CUDA_VISIBLE_DEVICES`` says.
"""

# ruff: noqa: N801, N815, N816 - the names are NVML's
from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any, NamedTuple

node_devices: Any = import_module("ranksafe_rehearsal.node_devices")

NVML_SUCCESS = 0
NVML_ERROR_UNINITIALIZED = 1
NVML_ERROR_INVALID_ARGUMENT = 2
NVML_ERROR_NOT_SUPPORTED = 3
NVML_ERROR_NOT_FOUND = 6
NVML_ERROR_DRIVER_NOT_LOADED = 9
NVML_ERROR_LIBRARY_NOT_FOUND = 12
NVML_TEMPERATURE_GPU = 0
NVML_CLOCK_GRAPHICS, NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_CLOCK_VIDEO = range(4)
NVML_PCIE_UTIL_TX_BYTES, NVML_PCIE_UTIL_RX_BYTES = range(2)
NVML_FEATURE_DISABLED, NVML_FEATURE_ENABLED = range(2)
NVML_P2P_CAPS_INDEX_READ, NVML_P2P_CAPS_INDEX_WRITE, NVML_P2P_CAPS_INDEX_NVLINK = range(3)
NVML_P2P_STATUS_OK = 0
NVML_NVLINK_MAX_LINKS = 18
NVML_VALUE_NOT_AVAILABLE = -1

_TEXTS = {
    NVML_ERROR_UNINITIALIZED: "Uninitialized",
    NVML_ERROR_INVALID_ARGUMENT: "Invalid Argument",
    NVML_ERROR_NOT_SUPPORTED: "Not Supported",
    NVML_ERROR_NOT_FOUND: "Not Found",
    NVML_ERROR_DRIVER_NOT_LOADED: "Driver Not Loaded",
    NVML_ERROR_LIBRARY_NOT_FOUND: "NVML Shared Library Not Found",
}


class NVMLError(Exception):
    """An NVML error code with its text."""

    def __init__(self, value: int = NVML_ERROR_NOT_SUPPORTED) -> None:
        super().__init__(value)
        self.value = value

    def __str__(self) -> str:
        return _TEXTS.get(self.value, f"NVML Error with code {self.value}")


class NVMLError_Uninitialized(NVMLError):
    """Not initialized."""


class NVMLError_InvalidArgument(NVMLError):
    """A wrong argument."""


class NVMLError_NotSupported(NVMLError):
    """The device cannot do this."""


class NVMLError_NotFound(NVMLError):
    """No such device."""


class NVMLError_DriverNotLoaded(NVMLError):
    """No driver: never raised here."""


class NVMLError_LibraryNotFound(NVMLError):
    """No library: never raised here."""


class _Device:
    """The handle of a device."""

    def __init__(self, index: int) -> None:
        self.index = index


class c_nvmlMemory_t(NamedTuple):
    """Bytes of a device's memory."""

    total: int
    free: int
    used: int
    reserved: int = 0
    version: int = 2


class c_nvmlUtilization_t(NamedTuple):
    """Percentages."""

    gpu: int
    memory: int


class nvmlPciInfo_t(NamedTuple):
    """Where a device sits."""

    busId: str
    domain: int
    bus: int
    device: int
    pciDeviceId: int = 0
    pciSubSystemId: int = 0


class c_nvmlProcessInfo_t(NamedTuple):
    """A process that uses a device."""

    pid: int
    usedGpuMemory: int


def nvmlInit() -> None:
    """Nothing has to be opened."""


nvmlInitWithFlags = nvmlInit_v2 = lambda *_: None
nvmlShutdown = nvmlInit


def nvmlSystemGetDriverVersion() -> str:
    """The driver that the devices pretend to have."""
    return node_devices.DRIVER_VERSION


def nvmlSystemGetNVMLVersion() -> str:
    """As the driver's, with the number of NVML's interface."""
    return "12." + node_devices.DRIVER_VERSION


def nvmlSystemGetCudaDriverVersion() -> int:
    """The newest CUDA that the driver knows, as 1000 times major plus 10 times minor."""
    major, minor = node_devices.DRIVER_CUDA_VERSION.split(".")
    return int(major) * 1000 + int(minor) * 10


nvmlSystemGetCudaDriverVersion_v2 = nvmlSystemGetCudaDriverVersion


def nvmlDeviceGetCount() -> int:
    """Devices of the node."""
    return node_devices.count()


nvmlDeviceGetCount_v2 = nvmlDeviceGetCount


def nvmlDeviceGetHandleByIndex(index: int) -> _Device:
    """Raises NVMLError_InvalidArgument for a device that the node has not."""
    if not 0 <= int(index) < node_devices.count():
        raise NVMLError_InvalidArgument(NVML_ERROR_INVALID_ARGUMENT)
    return _Device(int(index))


nvmlDeviceGetHandleByIndex_v2 = nvmlDeviceGetHandleByIndex


def nvmlDeviceGetHandleByUUID(uuid: str | bytes) -> _Device:
    """Raises NVMLError_NotFound for an unknown identity."""
    text = uuid.decode() if isinstance(uuid, bytes) else uuid
    for index in range(node_devices.count()):
        if node_devices.uuid(index) == text:
            return _Device(index)
    raise NVMLError_NotFound(NVML_ERROR_NOT_FOUND)


def nvmlDeviceGetHandleByPciBusId(address: str | bytes) -> _Device:
    """Raises NVMLError_NotFound for an unknown address."""
    text = address.decode() if isinstance(address, bytes) else address
    for index in range(node_devices.count()):
        if node_devices.pci_address(index).lower().endswith(text.lower()):
            return _Device(index)
    raise NVMLError_NotFound(NVML_ERROR_NOT_FOUND)


nvmlDeviceGetHandleByPciBusId_v2 = nvmlDeviceGetHandleByPciBusId


def nvmlDeviceGetIndex(handle: _Device) -> int:
    """The device's number on the node."""
    return handle.index


def nvmlDeviceGetMinorNumber(handle: _Device) -> int:
    """As in ``/dev/nvidiaN``."""
    return handle.index


def nvmlDeviceGetName(handle: _Device) -> str:
    """The device model."""
    return node_devices.name()


def nvmlDeviceGetUUID(handle: _Device) -> str:
    """With the ``GPU-`` before it."""
    return node_devices.uuid(handle.index)


def nvmlDeviceGetSerial(handle: _Device) -> str:
    """A made-up number."""
    return f"{handle.index:013d}"


def nvmlDeviceGetPciInfo(handle: _Device) -> nvmlPciInfo_t:
    """Domain, bus and device."""
    bus = node_devices.pci_bus(handle.index)
    return nvmlPciInfo_t(node_devices.pci_address(handle.index), 0, bus, 0)


nvmlDeviceGetPciInfo_v3 = nvmlDeviceGetPciInfo


def nvmlDeviceGetCudaComputeCapability(handle: _Device) -> tuple[int, int]:
    """Major and minor."""
    return node_devices.capability()


def nvmlDeviceGetMemoryInfo(handle: _Device, version: int | None = None) -> c_nvmlMemory_t:
    """What this process uses is all that is known to be used."""
    total, used = node_devices.memory_total(), node_devices.memory_used(handle.index)
    return c_nvmlMemory_t(total, total - used, used)


def nvmlDeviceGetUtilizationRates(handle: _Device) -> c_nvmlUtilization_t:
    """A simulated device is never busy."""
    return c_nvmlUtilization_t(0, 0)


def nvmlDeviceGetTemperature(handle: _Device, sensor: int = NVML_TEMPERATURE_GPU) -> int:
    """Degrees Celsius."""
    return node_devices.TEMPERATURE


def nvmlDeviceGetPowerUsage(handle: _Device) -> int:
    """Milliwatts."""
    return node_devices.POWER_WATTS * 1000


def nvmlDeviceGetEnforcedPowerLimit(handle: _Device) -> int:
    """Milliwatts."""
    return node_devices.POWER_LIMIT_WATTS * 1000


nvmlDeviceGetPowerManagementLimit = nvmlDeviceGetEnforcedPowerLimit
nvmlDeviceGetPowerManagementDefaultLimit = nvmlDeviceGetEnforcedPowerLimit


def nvmlDeviceGetTotalEnergyConsumption(handle: _Device) -> int:
    """Millijoules."""
    return 0


def nvmlDeviceGetClockInfo(handle: _Device, kind: int = NVML_CLOCK_GRAPHICS) -> int:
    """MHz."""
    return node_devices.CLOCK_MHZ


nvmlDeviceGetMaxClockInfo = nvmlDeviceGetApplicationsClock = nvmlDeviceGetClockInfo


def nvmlDeviceGetNumGpuCores(handle: _Device) -> int:
    """64 for each multiprocessor of a data centre device."""
    return 64 * node_devices.multi_processor_count()


def nvmlDeviceGetComputeRunningProcesses(handle: _Device) -> list[c_nvmlProcessInfo_t]:
    """This process, if it uses the device."""
    used = node_devices.memory_used(handle.index)
    return [c_nvmlProcessInfo_t(os.getpid(), used)] if used else []


nvmlDeviceGetComputeRunningProcesses_v2 = nvmlDeviceGetComputeRunningProcesses
nvmlDeviceGetComputeRunningProcesses_v3 = nvmlDeviceGetComputeRunningProcesses


def nvmlDeviceGetGraphicsRunningProcesses(handle: _Device) -> list[c_nvmlProcessInfo_t]:
    """None."""
    return []


def nvmlDeviceGetCpuAffinity(handle: _Device, words: int) -> list[int]:
    """Every processor is near, as a mask of 64-bit words."""
    processors = os.cpu_count() or 1
    mask = (1 << processors) - 1
    return [(mask >> (64 * word)) & (1 << 64) - 1 for word in range(int(words))]


def nvmlDeviceGetP2PStatus(one: _Device, other: _Device, kind: int) -> int:
    """All devices of a node reach one another."""
    return NVML_P2P_STATUS_OK


def nvmlDeviceGetNvLinkState(handle: _Device, link: int) -> int:
    """All links are up."""
    return NVML_FEATURE_ENABLED


def nvmlDeviceGetMigMode(handle: _Device) -> list[int]:
    """Now and after a restart: off."""
    return [0, 0]


def nvmlDeviceGetComputeMode(handle: _Device) -> int:
    """Default."""
    return 0


def __getattr__(name: str) -> Any:
    """A function that this module lacks says so when it is called; a constant is zero."""
    if name.startswith("NVML_"):
        return 0
    if name.startswith("NVMLError_"):
        kind = type(name, (NVMLError,), {})
        setattr(sys.modules[__name__], name, kind)
        return kind
    if name.startswith("nvml"):

        def unsupported(*_: Any, **__: Any) -> None:
            raise NVMLError_NotSupported(NVML_ERROR_NOT_SUPPORTED)

        return unsupported
    raise AttributeError(f"module 'pynvml' has no attribute {name!r}")
