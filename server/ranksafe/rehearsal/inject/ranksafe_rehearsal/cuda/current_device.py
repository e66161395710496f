"""Counting and choosing devices, initialization, and what a forked child must not do."""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Any

from ..state import devices
from . import allocator_settings
from .generators import default_generator
from .properties import get_device_properties

_INVALID_ORDINAL = (
    "CUDA error: invalid device ordinal\n"
    "GPU device may be out of range, do you have enough GPUs?\n"
    "CUDA kernel errors might be asynchronously reported at some other API call, "
    "so the stacktrace below might be incorrect.\n"
    "For debugging consider passing CUDA_LAUNCH_BLOCKING=1\n"
    "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n"
)
"""``c10::cuda::c10_cuda_check_implementation`` of torch 2.13 and 2.15 for error 101."""
_CUDA_DEVICE_TYPE = 1
"""``c10::DeviceType::CUDA``."""


def _torch() -> Any:
    return sys.modules["torch"]


def initialize_lazily() -> None:
    """What every call that needs a context does first."""
    _torch().cuda._lazy_init()


def invalid_ordinal() -> Exception:
    """The error of a device index that no device has."""
    kind = getattr(sys.modules["torch._C"], "AcceleratorError", RuntimeError)
    error: Exception = kind(_INVALID_ORDINAL)
    return error


def get_device_count() -> int:
    """``torch._C._cuda_getDeviceCount``: visible devices; forked children can no longer use CUDA."""
    return devices().settle()


def is_in_bad_fork() -> bool:
    """``torch._C._cuda_isInBadFork``."""
    return devices().forked


def init() -> None:
    """``torch._C._cuda_init``. Raises RuntimeError where no device is visible."""
    known = devices()
    if known.settle() == 0:
        raise RuntimeError("No CUDA GPUs are available")
    allocator_settings.begin()
    cuda = _torch().cuda
    cuda._get_device_properties = get_device_properties
    cuda.default_generators = tuple(
        default_generator(index) for index in range(len(known.physical))
    )


def set_device(device: int) -> None:
    """``torch._C._cuda_setDevice``. Raises torch's error for an index that no device has."""
    initialize_lazily()
    if not devices().library.set_device(int(device)):
        raise invalid_ordinal()


def get_device() -> int:
    """``torch._C._cuda_getDevice``."""
    initialize_lazily()
    return devices().library.current_device()


def exchange_device(device: int) -> int:
    """``torch._C._cuda_exchangeDevice``: set a device and return the one before; -1 changes nothing."""
    if device < 0:
        return -1
    initialize_lazily()
    previous = devices().library.current_device()
    if previous != device:
        set_device(device)
    return previous


def require_initialization_after_fork() -> None:
    """Let torch's C++ side ask ``torch.cuda._lazy_init`` again in a forked child, which then refuses.

    In a build with CUDA ``forked_child`` of torch/csrc/cuda/Module.cpp does this; the function exists in every build
    since torch 2.3, under its C++ name.
    """
    if not hasattr(os, "register_at_fork"):
        return
    library = ctypes.CDLL(sys.modules["torch._C"].__file__)
    name = "_ZN5torch5utils24set_requires_device_initEN3c1010DeviceTypeEb"
    function = getattr(library, name, None)
    if function is None:
        return
    function.restype, function.argtypes = None, [ctypes.c_int8, ctypes.c_bool]

    def in_child() -> None:
        if devices().forked:
            function(_CUDA_DEVICE_TYPE, True)

    os.register_at_fork(after_in_child=in_child)


def has_primary_context(device: int) -> bool:
    """``torch._C._cuda_hasPrimaryContext``: whether anything was put on the device."""
    allocations = devices().library.memory_statistics(device)[:4]
    return any(allocations)


def bindings() -> dict[str, Any]:
    """Names for ``torch._C``."""
    return {
        "_cuda_getDeviceCount": get_device_count,
        "_cuda_isInBadFork": is_in_bad_fork,
        "_cuda_init": init,
        "_cuda_setDevice": set_device,
        "_cuda_getDevice": get_device,
        "_cuda_exchangeDevice": exchange_device,
        "_cuda_maybeExchangeDevice": exchange_device,
        "_cuda_canDeviceAccessPeer": lambda device, peer: device != peer,
        "_cuda_hasPrimaryContext": has_primary_context,
    }
