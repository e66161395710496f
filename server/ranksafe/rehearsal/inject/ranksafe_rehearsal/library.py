"""The compiled library with the simulated devices, by its C interface."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from typing import Any

INVALID_DEVICE = 101
"""What CUDA calls ``cudaErrorInvalidDevice``."""
MEMORY_STATISTICS = 7 * 3 * 4 + 5
_BLOCK_NUMBERS = 7
FORECAST_NUMBERS = 6 + 5 * 2
_FORECAST_BLOCK_NUMBERS = 4


class DeviceLibrary:
    """Typed calls of the ``ranksafe_*`` functions. Device indices are those of this process, from 0."""

    def __init__(self, path: str) -> None:
        """Load the library for everybody: torch's own libraries must find its symbols. Raises OSError."""
        self._library = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
        self._functions: dict[str, Any] = {}
        self._place: Any = None

    def _function(self, name: str, result: Any, *arguments: Any) -> Any:
        function = self._functions.get(name)
        if function is None:
            function = getattr(self._library, name)
            function.restype, function.argtypes = result, list(arguments)
            self._functions[name] = function
        return function

    def configure(
        self, devices: int, capability: int, memory: int, driver: int, context: int
    ) -> None:
        """Say how many devices there are and, in bytes, the capacity of each, the driver's part and CUDA's context;
        ``capability`` is 10 times major plus minor. Before the first of them is used.
        """
        sizes = ctypes.c_int64, ctypes.c_int64, ctypes.c_int64
        call = self._function(
            "ranksafe_configure", ctypes.c_int, ctypes.c_int, ctypes.c_int, *sizes
        )
        call(devices, capability, memory, driver, context)

    def begin_forecast(self, unbounded: bool) -> None:
        """Give no values to large floating tensors from now on; before the program makes its first tensor.

        ``unbounded``: devices take more than they hold.
        """
        self._function("ranksafe_begin_forecast", None, ctypes.c_int)(unbounded)

    def forecast_places(self, place: Callable[[], int] | None) -> None:
        """Ask ``place`` for a number of the line that is at work, wherever much memory is taken; None: no more."""
        kind = ctypes.CFUNCTYPE(ctypes.c_int32)
        self._place = kind() if place is None else kind(place)
        self._function("ranksafe_forecast_places", None, kind)(self._place)

    def kernel_calls(self) -> int:
        """How many operators were called so far."""
        return int(self._function("ranksafe_kernel_calls", ctypes.c_int64)())

    def forecast_optimizer(self, at_work: bool) -> None:
        """An optimizer's step begins or ends."""
        self._function("ranksafe_forecast_optimizer", None, ctypes.c_int)(at_work)

    def forecast_purpose(self, storages: Sequence[int], purpose: int) -> None:
        """Say what tensors in the storages, whose implementations are at these addresses, are for."""
        call = self._function(
            "ranksafe_forecast_purpose",
            None,
            ctypes.POINTER(ctypes.c_uint64),
            ctypes.c_int64,
            ctypes.c_int,
        )
        call((ctypes.c_uint64 * len(storages))(*storages), len(storages), purpose)

    def forecast_peak(self, device: int) -> list[int]:
        """What a device held at most, in the order of native/src/c_interface.cpp."""
        call = self._function(
            "ranksafe_forecast_peak", None, ctypes.c_int, ctypes.POINTER(ctypes.c_int64)
        )
        values = (ctypes.c_int64 * FORECAST_NUMBERS)()
        call(device, values)
        return list(values)

    def forecast_blocks(self, device: int) -> list[list[int]]:
        """The blocks at a device's peak, each as four numbers, in the order of native/src/c_interface.cpp."""
        return self._rows("ranksafe_forecast_blocks", device, _FORECAST_BLOCK_NUMBERS)

    def forecast_history(self, device: int) -> list[list[int]]:
        """All blocks that a device ever held, each as six numbers, in the order of native/src/c_interface.cpp."""
        return self._rows("ranksafe_forecast_history", device, _FORECAST_BLOCK_NUMBERS + 2)

    def forecast_moments(self, device: int) -> tuple[int, int]:
        """This moment, as a count of blocks taken and given back, and that from which the history is whole."""
        call = self._function(
            "ranksafe_forecast_moments", None, ctypes.c_int, ctypes.POINTER(ctypes.c_int64)
        )
        values = (ctypes.c_int64 * 2)()
        call(device, values)
        return values[0], values[1]

    def load_device_checks(self, path: str) -> bool:
        """Read which operators check their devices, and under which name; False where it cannot be read."""
        call = self._function("ranksafe_load_device_checks", ctypes.c_int, ctypes.c_char_p)
        return int(call(os.fsencode(path))) == 0

    def limit_host_memory(self, size: int) -> None:
        """Bound the real memory, in bytes, that all simulated devices of this process may take."""
        self._function("ranksafe_host_memory_limit", None, ctypes.c_int64)(size)

    def device_count(self) -> int:
        """How many devices this process sees."""
        return int(self._function("ranksafe_device_count", ctypes.c_int)())

    def current_device(self) -> int:
        """The calling thread's device."""
        return int(self._function("ranksafe_current_device", ctypes.c_int)())

    def set_device(self, device: int) -> bool:
        """Make ``device`` the calling thread's; False where there is no such device."""
        return int(self._function("ranksafe_set_device", ctypes.c_int, ctypes.c_int)(device)) == 0

    def memory_total(self) -> int:
        """Capacity of each device in bytes."""
        return int(self._function("ranksafe_memory_total", ctypes.c_int64)())

    def use_devices(self) -> None:
        """Note that this process uses its devices: those forked from it may not."""
        self._function("ranksafe_use_devices", ctypes.c_int)()

    def memory_in_use(self, device: int) -> int:
        """Bytes of a device that nobody can have: segments, CUDA's context, the driver's."""
        return int(self._function("ranksafe_memory_in_use", ctypes.c_int64, ctypes.c_int)(device))

    def memory_statistics(self, device: int) -> list[int]:
        """All numbers of a device's allocator, in the order of native/src/c_interface.cpp."""
        call = self._function(
            "ranksafe_memory_statistics", None, ctypes.c_int, ctypes.POINTER(ctypes.c_int64)
        )
        values = (ctypes.c_int64 * MEMORY_STATISTICS)()
        call(device, values)
        return list(values)

    def memory_blocks(self, device: int) -> list[list[int]]:
        """All blocks by address, each as seven numbers, in the order of native/src/c_interface.cpp."""
        return self._rows("ranksafe_memory_blocks", device, _BLOCK_NUMBERS)

    def _rows(self, function: str, device: int, numbers: int) -> list[list[int]]:
        call = self._function(
            function,
            ctypes.c_int64,
            ctypes.c_int,
            ctypes.POINTER(ctypes.c_int64),
            ctypes.c_int64,
        )
        capacity = 0
        while True:
            values = (ctypes.c_int64 * (numbers * capacity))()
            count = int(call(device, values, capacity))
            if count <= capacity:
                return [
                    list(values[at : at + numbers]) for at in range(0, count * numbers, numbers)
                ]
            capacity = count + 1024

    def clear_workspaces(self) -> None:
        """Give back what CUDA's libraries have taken for themselves."""
        self._function("ranksafe_clear_workspaces", None)()

    def reset_peak(self, device: int) -> None:
        """Let the peaks begin anew at what is held now."""
        self._function("ranksafe_memory_reset_peak", None, ctypes.c_int)(device)

    def reset_accumulated(self, device: int) -> None:
        """Let the totals begin anew."""
        self._function("ranksafe_memory_reset_accumulated", None, ctypes.c_int)(device)

    def empty_cache(self, device: int) -> None:
        """Give back what is reserved and not allocated."""
        self._function("ranksafe_empty_cache", None, ctypes.c_int)(device)

    def allocator_settings(
        self, expandable: bool, sizes: Sequence[int], threshold: float, divisions: Sequence[int]
    ) -> None:
        """Say by which settings all devices' memory is given out, in the form of native/src/c_interface.cpp."""
        numbers = ctypes.POINTER(ctypes.c_int64)
        call = self._function(
            "ranksafe_allocator_settings", None, ctypes.c_int, numbers, ctypes.c_double, numbers
        )
        as_numbers = ctypes.c_int64 * len(sizes), ctypes.c_int64 * len(divisions)
        call(expandable, as_numbers[0](*sizes), threshold, as_numbers[1](*divisions))

    def memory_fraction(self, device: int) -> float:
        """The part of a device's memory that this process may use."""
        call = self._function("ranksafe_memory_fraction", ctypes.c_double, ctypes.c_int)
        return float(call(device))

    def set_memory_fraction(self, device: int, fraction: float) -> None:
        """Let this process use only a part of a device's memory."""
        self._function("ranksafe_set_memory_fraction", None, ctypes.c_int, ctypes.c_double)(
            device, fraction
        )

    def resize_storage(self, storage: int, size: int) -> bool:
        """Resize the storage whose implementation is at address ``storage``; False where memory ran out."""
        call = self._function(
            "ranksafe_storage_resize", ctypes.c_int, ctypes.c_uint64, ctypes.c_int64
        )
        return int(call(storage, size)) == 0

    def default_generator(self, device: int) -> int:
        """Address of the ``at::Generator`` that random kernels use when none is given."""
        return int(
            self._function("ranksafe_default_generator", ctypes.c_void_p, ctypes.c_int)(device)
        )

    def new_stream(self, device: int, priority: int) -> int:
        """Number of the next stream of a device's pool."""
        return int(
            self._function("ranksafe_new_stream", ctypes.c_int64, ctypes.c_int, ctypes.c_int)(
                device, priority
            )
        )

    def current_stream(self, device: int) -> int:
        """Number of the calling thread's stream on a device; 0 is the default stream."""
        return int(self._function("ranksafe_current_stream", ctypes.c_int64, ctypes.c_int)(device))

    def set_current_stream(self, device: int, stream: int) -> None:
        """Make a stream the calling thread's on a device."""
        self._function("ranksafe_set_stream", None, ctypes.c_int, ctypes.c_int64)(device, stream)
