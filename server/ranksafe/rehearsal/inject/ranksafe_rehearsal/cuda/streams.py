"""``torch._C._CudaStreamBase`` and ``_CudaEventBase``: work is done at once, so waiting is never needed.

Imported once ``torch._C`` exists.
"""

from __future__ import annotations

import sys
import time
from typing import Any

from torch._C import Event, Stream

from ..state import devices
from .current_device import initialize_lazily, set_device

_CUDA_DEVICE_TYPE = 1
_GREATEST_PRIORITY = -5
_FIRST_HANDLE = 0x5EED0000
"""Handles look like addresses; nothing may follow them."""
_FIRST_EXTERNAL = 1 << 40


def _handle(stream_id: int) -> int:
    """The ``cudaStream_t`` of a stream; the default stream's is the null pointer."""
    if stream_id == 0:
        return 0
    if stream_id >= _FIRST_EXTERNAL:
        return stream_id - _FIRST_EXTERNAL
    return _FIRST_HANDLE + 64 * stream_id


_priorities: dict[int, int] = {}
"""Of the streams that were asked for with one."""


class _CudaStreamBase(Stream):
    """A stream of a simulated device."""

    def __new__(
        cls,
        priority: int = 0,
        stream_id: int = 0,
        device_index: int = 0,
        device_type: int = 0,
        stream_ptr: int = 0,
    ) -> Any:
        """A stream of the pool, or the one that the other arguments describe."""
        initialize_lazily()
        current = devices().library.current_device()
        if stream_ptr:
            stream_id, device_index = _FIRST_EXTERNAL + stream_ptr, current
        elif not (stream_id or device_index or device_type):
            stream_id, device_index = devices().library.new_stream(current, priority), current
            _priorities[stream_id] = max(_GREATEST_PRIORITY, min(0, priority))
        return Stream.__new__(
            cls, stream_id=stream_id, device_index=device_index, device_type=_CUDA_DEVICE_TYPE
        )

    @property
    def cuda_stream(self) -> int:
        """The handle, as a number."""
        return _handle(self.stream_id)

    @property
    def priority(self) -> int:
        """Lower is more urgent."""
        return _priorities.get(self.stream_id, 0)

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """Least and greatest priority of current devices."""
        return (0, _GREATEST_PRIORITY)

    def query(self) -> bool:
        """Whether all work is done: always."""
        return True

    def synchronize(self) -> None:
        """Wait for the work: there is none."""

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Stream)
            and self.stream_id == other.stream_id
            and self.device_index == other.device_index
        )

    def __hash__(self) -> int:
        return hash((self.stream_id, self.device_index))


class _CudaEventBase(Event):
    """An event of a simulated device: remembers when it was recorded."""

    _timed: bool
    _recorded_at: float | None
    _recorded_on: int | None

    def __new__(
        cls,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
        external: bool = False,
    ) -> Any:
        """An event that is not recorded yet."""
        device = sys.modules["torch"].device("cuda")
        event: Any = Event.__new__(cls, device, enable_timing=enable_timing)
        event._timed = bool(enable_timing)
        event._recorded_at = None
        event._recorded_on = None
        return event

    @property
    def device(self) -> Any:
        """The device of the stream that recorded the event; None before."""
        if self._recorded_on is None:
            return None
        return sys.modules["torch"].device("cuda", self._recorded_on)

    @property
    def cuda_event(self) -> int:
        """The handle, as a number; zero before the event was recorded."""
        return id(self) if self._recorded_at is not None else 0

    @property
    def event_id(self) -> int:
        """The same, by the name of ``torch.Event``."""
        return self.cuda_event

    def record(self, stream: Any) -> None:
        """Remember the time. Raises RuntimeError for a stream of another device than before."""
        device = stream.device_index
        if self._recorded_on is not None and self._recorded_on != device:
            raise RuntimeError(
                f"Event device {self._recorded_on} does not match recording stream's device {device}."
            )
        self._recorded_on = device
        self._recorded_at = time.perf_counter()

    def wait(self, stream: Any) -> None:
        """Let a stream wait: what it would wait for is done."""

    def query(self) -> bool:
        """Whether the work before the event is done: always."""
        return True

    def synchronize(self) -> None:
        """Wait for the event: nothing to wait for."""

    def elapsed_time(self, end_event: Any) -> float:
        """Milliseconds from this event to another. Raises RuntimeError in torch's words where they have none."""
        if not (self._timed and end_event._timed):
            raise RuntimeError("Both events must be created with argument 'enable_timing=True'.")
        if self._recorded_at is None or end_event._recorded_at is None:
            raise RuntimeError("Both events must be recorded before calculating elapsed time.")
        return float(1000.0 * (end_event._recorded_at - self._recorded_at))

    def ipc_handle(self) -> bytes:
        """Something of the size of a ``cudaIpcEventHandle_t``."""
        return id(self).to_bytes(64, "little")

    @classmethod
    def from_ipc_handle(cls, device: Any, handle: bytes) -> Any:
        """An event of another process, which counts as recorded."""
        event = cls(interprocess=True)
        event._recorded_on, event._recorded_at = device.index or 0, time.perf_counter()
        return event


def _described(stream_id: int, device: int) -> tuple[int, int, int]:
    return stream_id, device, _CUDA_DEVICE_TYPE


def get_current_stream(device: int) -> tuple[int, int, int]:
    """``torch._C._cuda_getCurrentStream``: number, device and device type."""
    index = device if device >= 0 else devices().library.current_device()
    return _described(devices().library.current_stream(index), index)


def get_default_stream(device: int) -> tuple[int, int, int]:
    """``torch._C._cuda_getDefaultStream``."""
    return _described(0, device if device >= 0 else devices().library.current_device())


def get_current_raw_stream(device: int) -> int:
    """``torch._C._cuda_getCurrentRawStream``: the handle."""
    return _handle(get_current_stream(device)[0])


def get_stream_from_external(pointer: int, device: int) -> tuple[int, int, int]:
    """``torch._C._cuda_getStreamFromExternal``."""
    return _described(_FIRST_EXTERNAL + pointer if pointer else 0, device)


def set_stream(stream_id: int = 0, device_index: int = 0, device_type: int = 0) -> None:
    """``torch._C._cuda_setStream``: makes the stream and its device current."""
    if devices().library.current_device() != device_index:
        set_device(device_index)
    devices().library.set_current_stream(device_index, stream_id)


def bindings() -> dict[str, Any]:
    """Names for ``torch._C``."""
    return {
        "_CudaStreamBase": _CudaStreamBase,
        "_CudaEventBase": _CudaEventBase,
        "_cuda_getCurrentStream": get_current_stream,
        "_cuda_getDefaultStream": get_default_stream,
        "_cuda_getCurrentRawStream": get_current_raw_stream,
        "_cuda_getStreamFromExternal": get_stream_from_external,
        "_cuda_setStream": set_stream,
        "_cuda_synchronize": lambda: None,
        "_cuda_sleep": lambda cycles: None,
        "_cuda_isCurrentStreamCapturing": lambda: False,
    }
