"""Memory statistics: what CUDA's caching allocator would hold (native/src/caching_allocator.h)."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from .. import journal
from ..limits import refuse
from ..state import devices
from . import allocator_settings
from .current_device import initialize_lazily

_BY_POOL = (
    "allocation",
    "segment",
    "inactive_split",
    "allocated_bytes",
    "reserved_bytes",
    "inactive_split_bytes",
    "requested_bytes",
)
_POOLS = ("all", "small_pool", "large_pool")
_AMOUNTS = ("current", "peak", "allocated", "freed")
_COUNTS = (
    "num_alloc_retries",
    "num_ooms",
    "num_sync_all_streams",
    "num_device_alloc",
    "num_device_free",
)
_metadata = [""]


def memory_stats(device: int) -> dict[str, Any]:
    """``torch._C._cuda_memoryStats``, keys of torch 2.13."""
    values = iter(devices().library.memory_statistics(device))
    told: dict[str, Any] = {
        name: {pool: {amount: next(values) for amount in _AMOUNTS} for pool in _POOLS}
        for name in _BY_POOL
    }
    told.update((name, next(values)) for name in _COUNTS)
    nothing = dict.fromkeys(_AMOUNTS, 0)
    # No work is ever pending on a block; blocks that are kept whole for their size are not counted.
    return {
        **told,
        "active": told["allocation"],
        "active_bytes": told["allocated_bytes"],
        "max_split_size": allocator_settings.largest_split(),
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
    return max(0, total - library.memory_in_use(index)), total


def set_fraction(fraction: float, device: int) -> None:
    """``torch._C._cuda_setMemoryFraction``: this process may use only a part of the device."""
    devices().library.set_memory_fraction(device, fraction)


def snapshot(*_: Any) -> dict[str, Any]:
    """``torch._C._cuda_memorySnapshot``: segments and blocks, without the history."""
    return {
        "segments": [
            _segment(device, list(blocks))
            for device in range(len(devices().physical))
            for _address, blocks in groupby(
                devices().library.memory_blocks(device), key=lambda block: block[0]
            )
        ],
        "device_traces": [[] for _device in devices().physical],
        "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": allocator_settings.told()},
        "external_annotations": [],
    }


def _segment(device: int, rows: list[list[int]]) -> dict[str, Any]:
    segment, _, _, _, stream, is_large, is_expandable = rows[0]
    blocks: list[dict[str, Any]] = [
        {
            "address": address,
            "size": size,
            "requested_size": requested,
            "state": "active_allocated" if requested else "inactive",
            "frames": [],
        }
        for _, address, size, requested, *_ in rows
    ]
    allocated = sum(size for _, _, size, requested, *_ in rows if requested)
    return {
        "device": device,
        "address": segment,
        "total_size": sum(row[2] for row in rows),
        "allocated_size": allocated,
        "active_size": allocated,
        "requested_size": sum(row[3] for row in rows),
        "stream": stream,
        "segment_type": "large" if is_large else "small",
        "segment_pool_id": (0, 0),
        "is_expandable": bool(is_expandable),
        "frames": [],
        "blocks": blocks,
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
    """A pool that nothing is taken from: every block comes from the allocator's own pools."""

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
        "_cuda_cudaCachingAllocator_set_allocator_settings": allocator_settings.change,
        "_accelerator_setAllocatorSettings": allocator_settings.change,
        "_accelerator_getAllocatorSettings": allocator_settings.told,
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
