"""Memory statistics: what tensors hold is counted exactly, what a caching allocator would keep is estimated."""

from __future__ import annotations

import os
from typing import Any

from .. import journal
from ..limits import refuse
from ..state import devices
from .current_device import initialize_lazily

_SEGMENT = 2 << 20
"""Small tensors share segments of two MiB (c10/cuda/CUDACachingAllocator.cpp of torch 2.13, ``kSmallBuffer``)."""
_metadata = [""]


def _held(device: int, name: str) -> int:
    return devices().library.memory_statistic(device, name)


def _stat(current: int, peak: int, allocated: int) -> dict[str, int]:
    return {
        "current": current,
        "peak": peak,
        "allocated": allocated,
        "freed": allocated - current,
    }


def _pools(stat: dict[str, int]) -> dict[str, dict[str, int]]:
    """Everything is counted as one pool: the division by size says nothing about a simulation."""
    return {"all": stat, "large_pool": stat, "small_pool": _stat(0, 0, 0)}


def _counted(device: int, name: str) -> dict[str, dict[str, int]]:
    peak = _held(device, f"{name}_peak")
    total = _held(device, f"{name}_total")
    return _pools(_stat(_held(device, name), peak, peak if total < 0 else total))


def memory_stats(device: int) -> dict[str, Any]:
    """``torch._C._cuda_memoryStats``, keys of torch 2.13."""
    blocks, held = _counted(device, "blocks"), _counted(device, "allocated")
    reserved = _counted(device, "reserved")
    segments = reserved["all"]["current"] // _SEGMENT
    refused = _held(device, "out_of_memory")
    nothing = _stat(0, 0, 0)
    return {
        "num_alloc_retries": refused,
        "num_ooms": refused,
        "max_split_size": -1,
        "num_sync_all_streams": 0,
        "num_device_alloc": segments,
        "num_device_free": 0,
        "allocation": blocks,
        "segment": _pools(_stat(segments, segments, segments)),
        "active": blocks,
        "inactive_split": _pools(nothing),
        "allocated_bytes": held,
        "reserved_bytes": reserved,
        "active_bytes": held,
        "inactive_split_bytes": _pools(nothing),
        "requested_bytes": _counted(device, "requested"),
        "oversize_allocations": nothing,
        "oversize_segments": nothing,
    }


def reset_peak_stats(device: int) -> None:
    """``torch._C._cuda_resetPeakMemoryStats``."""
    devices().library.reset_peak(device)


def reset_accumulated_stats(device: int) -> None:
    """``torch._C._cuda_resetAccumulatedMemoryStats``."""
    devices().library.reset_accumulated(device)


def empty_cache(*_: Any) -> None:
    """``torch._C._cuda_emptyCache``."""
    for device in range(len(devices().physical)):
        devices().library.empty_cache(device)


def memory_info(device: Any = None) -> tuple[int, int]:
    """``cudaMemGetInfo``: free and total bytes of a device."""
    library = devices().library
    index = library.current_device() if device is None else int(device)
    total = library.memory_total()
    return max(0, total - _held(index, "reserved")), total


def set_fraction(fraction: float, device: int) -> None:
    """``torch._C._cuda_setMemoryFraction``: this process may use only a part of the device."""
    devices().library.set_memory_fraction(device, fraction)


def snapshot(*_: Any) -> dict[str, Any]:
    """``torch._C._cuda_memorySnapshot``: one segment for each device that holds tensors."""
    segments = []
    for device in range(len(devices().physical)):
        held = _held(device, "allocated")
        if held:
            segments.append(_segment(device, held))
    return {
        "segments": segments,
        "device_traces": [[] for _device in devices().physical],
        "allocator_settings": {
            "PYTORCH_CUDA_ALLOC_CONF": os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "")
        },
        "external_annotations": [],
    }


def _segment(device: int, held: int) -> dict[str, Any]:
    block = {
        "address": 0,
        "size": held,
        "requested_size": held,
        "state": "active_allocated",
        "frames": [],
    }
    return {
        "device": device,
        "address": 0,
        "total_size": _held(device, "reserved"),
        "allocated_size": held,
        "active_size": held,
        "requested_size": held,
        "stream": 0,
        "segment_type": "large",
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "frames": [],
        "blocks": [block],
    }


def record_history(*_: Any, **__: Any) -> None:
    """``torch._C._cuda_record_memory_history``: allocations are not traced."""
    journal.modified(
        "The memory history is not recorded on simulated GPUs",
        "模拟 GPU 不记录显存分配历史",
    )


def raw_allocate(size: int, stream: int) -> int:
    """``torch._C._cuda_cudaCachingAllocator_raw_alloc``."""
    import torch

    initialize_lazily()
    tensor = torch.empty(int(size), dtype=torch.uint8, device="cuda")
    address = int(tensor.data_ptr())
    _raw[address] = tensor
    return address


def raw_delete(address: int) -> None:
    """``torch._C._cuda_cudaCachingAllocator_raw_delete``."""
    _raw.pop(address, None)


_raw: dict[int, Any] = {}


class _MemPool:
    """A pool that nothing is taken from: memory of a simulated device is never cached."""

    _made = 0

    def __init__(self, allocator: Any = None, *_: Any, **__: Any) -> None:
        _MemPool._made += 1
        self._number = _MemPool._made
        self._allocator = allocator
        self.device = devices().library.current_device()

    @property
    def id(self) -> tuple[int, int]:
        """What the pool is called by."""
        return (0, self._number)

    @property
    def allocator(self) -> Any:
        """The allocator that the pool was made with."""
        return self._allocator

    def use_count(self) -> int:
        """How many users the pool has."""
        return 1

    def snapshot(self, *_: Any) -> list[Any]:
        """Nothing is in the pool."""
        return []


class _Allocator:
    """The allocator object that a program may pass around, but not replace."""


def _no_custom_allocator(*_: Any) -> None:
    refuse(
        "missing-function",
        "torch.cuda.memory.CUDAPluggableAllocator",
        "a CUDA allocator of the program's own cannot be used on simulated GPUs",
        "模拟 GPU 无法使用程序自带的 CUDA 显存分配器",
    )


def _nothing(*_: Any, **__: Any) -> None:
    """What has no effect on a simulated device."""


def bindings() -> dict[str, Any]:
    """Names for ``torch._C``."""
    host = {"num_host_alloc": 0, "num_host_free": 0}
    return {
        "_MemPool": _MemPool,
        "_cuda_CUDAAllocator": _Allocator,
        "_cuda_getAllocator": _Allocator,
        "_cuda_customAllocator": _no_custom_allocator,
        "_cuda_changeCurrentAllocator": _no_custom_allocator,
        "_cuda_memoryStats": memory_stats,
        "_cuda_resetAccumulatedMemoryStats": reset_accumulated_stats,
        "_cuda_resetPeakMemoryStats": reset_peak_stats,
        "_cuda_hostMemoryStats": lambda: dict(host),
        "_cuda_resetAccumulatedHostMemoryStats": _nothing,
        "_cuda_resetPeakHostMemoryStats": _nothing,
        "_cuda_emptyCache": empty_cache,
        "_host_emptyCache": _nothing,
        "_accelerator_emptyCache": empty_cache,
        "_accelerator_emptyHostCache": _nothing,
        "_accelerator_isAllocatorInitialized": lambda: True,
        "_accelerator_getDeviceStats": memory_stats,
        "_accelerator_resetAccumulatedStats": reset_accumulated_stats,
        "_accelerator_resetPeakStats": reset_peak_stats,
        "_accelerator_getMemoryInfo": memory_info,
        "_cuda_setMemoryFraction": set_fraction,
        "_cuda_getMemoryFraction": lambda device: devices().library.memory_fraction(device),
        "_cuda_memorySnapshot": snapshot,
        "_cuda_record_memory_history": record_history,
        "_cuda_record_memory_history_legacy": record_history,
        "_cuda_isHistoryEnabled": lambda: False,
        "_cuda_allocationTraceback": _nothing,
        "_cuda_setMemoryMetadata": lambda text: _metadata.__setitem__(0, text),
        "_cuda_getMemoryMetadata": lambda: _metadata[0],
        "_cuda_attach_out_of_memory_observer": _nothing,
        "_cuda_getAllocatorBackend": lambda: "native",
        "_cuda_cudaCachingAllocator_raw_alloc": raw_allocate,
        "_cuda_cudaCachingAllocator_raw_delete": raw_delete,
        "_cuda_cudaCachingAllocator_enable": _nothing,
        "_cuda_cudaCachingAllocator_is_enabled": lambda: True,
        "_cuda_cudaCachingAllocator_set_allocator_settings": _nothing,
        "_cuda_cudaHostAllocator": lambda: 0,
        "_cuda_beginAllocateToPool": _nothing,
        "_cuda_beginAllocateCurrentStreamToPool": _nothing,
        "_cuda_beginAllocateCurrentThreadToPool": _nothing,
        "_cuda_endAllocateToPool": _nothing,
        "_cuda_releasePool": _nothing,
        "_cuda_checkPoolLiveAllocations": lambda *_: True,
        "_cuda_ipc_collect": _nothing,
        "_cuda_lock_mutex": _nothing,
        "_cuda_unlock_mutex": _nothing,
    }
