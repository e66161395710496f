"""Settings of PYTORCH_ALLOC_CONF and PYTORCH_CUDA_ALLOC_CONF: what they say of the devices' memory.

Read when CUDA is initialized, as torch does (c10/core/AllocatorConfig.h and c10/cuda/CUDAAllocatorConfig.h of 2.13).
"""

from __future__ import annotations

import os
import re
from typing import NoReturn

from .. import journal
from ..state import devices

_VARIABLES = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")
_MEBIBYTE = 1 << 20
_SHARED_SEGMENT = 20 * _MEBIBYTE
_UNLIMITED = (1 << 63) - 1
_INTERVALS = 16
_ELSEWHERE = (
    "backend", "release_lock_on_cudamalloc", "release_lock_on_hipmalloc", "throw_on_cudamalloc_oom",
    "graph_capture_record_stream_reuse", "pinned_use_cuda_host_register",
    "pinned_use_hip_host_register", "pinned_num_register_threads", "pinned_use_background_threads",
    "pinned_reserve_segment_size_mb", "pinned_max_round_threshold_mb", "pinned_max_cached_size_mb",
    "pinned_free_catch_all",
)  # fmt: skip
"""Known to torch, without effect on what a device holds, but for one value of the first."""


class _Settings:
    """torch's defaults."""

    def __init__(self) -> None:
        self.text = ""
        self.begun = False
        self.expandable = False
        self.unsplit_rounding = self.shared_segment = _SHARED_SEGMENT
        self.reset()

    def reset(self) -> None:
        """What torch forgets whenever a new text comes."""
        self.largest_split = _UNLIMITED
        self.threshold = 0.0
        self.divisions = [0] * _INTERVALS


_current = _Settings()


def told() -> str:
    """The settings as they were given last."""
    return _current.text


def largest_split() -> int:
    """In bytes; -1 where every block may be split."""
    return -1 if _current.largest_split == _UNLIMITED else _current.largest_split


def begin() -> None:
    """Take the settings of the environment. Raises torch's ValueError for what it does not understand."""
    if _current.begun:
        return
    _current.begun = True
    for name in _VARIABLES:
        text = os.environ.get(name)
        if text is not None:
            change(text)
            return


def change(text: str) -> None:
    """``torch._C._accelerator_setAllocatorSettings``. Raises torch's ValueError for what it does not understand."""
    begin()
    _current.text = text
    _current.reset()
    for name, value in _pairs(text):
        _set(name, value)
    devices().library.allocator_settings(
        _current.expandable,
        (_current.largest_split, _current.unsplit_rounding, _current.shared_segment),
        _current.threshold,
        _current.divisions,
    )


def _pairs(text: str) -> list[tuple[str, str]]:
    """``a:1,b:[2:3,>:4]`` as names and values."""
    found = re.findall(r"([^,:]+)(?::(\[[^\]]*\]|[^,]*))?", re.sub(r"\s", "", text))
    return [(name, value) for name, value in found]


def _set(name: str, value: str) -> None:
    if name == "expandable_segments":
        if value not in ("True", "False"):
            _reject(f"Expected 'True' or 'False' in ConfigTokenizer but got '{value}'")
        _current.expandable = value == "True"
    elif name == "max_split_size_mb":
        _current.largest_split = _size(name, value)
    elif name == "max_non_split_rounding_mb":
        _current.unsplit_rounding = _size(name, value)
    elif name == "large_segment_size_mb":
        _current.shared_segment = int(value) * _MEBIBYTE
    elif name == "garbage_collection_threshold":
        _current.threshold = float(value)
        if not 0 < _current.threshold < 1:
            _reject("garbage_collect_threshold is invalid, set it in (0.0, 1.0)")
    elif name == "roundup_power2_divisions":
        _set_divisions(value)
    elif name == "per_process_memory_fraction":
        for device in range(len(devices().physical)):
            devices().library.set_memory_fraction(device, float(value))
    elif name not in _ELSEWHERE or (name, value) == ("backend", "cudaMallocAsync"):
        journal.modified(
            f"{name}:{value} of PYTORCH_CUDA_ALLOC_CONF is not modelled: memory is given out as without it",
            f"未模拟 PYTORCH_CUDA_ALLOC_CONF 的 {name}:{value}：按没有该设置分配显存",
        )


def _size(name: str, value: str) -> int:
    size = int(value) * _MEBIBYTE
    if size < _current.shared_segment:
        least = _current.shared_segment // _MEBIBYTE
        _reject(f"CachingAllocator option {name} too small, must be >= {least}")
    return size


def _set_divisions(value: str) -> None:
    """``4``, or ``[256:1,512:2,>:4]``: of sizes from so many MiB on, ``>`` of all larger ones."""
    known = _current.divisions
    if not value.startswith("["):
        known[:] = [int(value)] * _INTERVALS
        return
    last = 0
    for number, pair in enumerate(value[1:-1].split(",")):
        interval, _, count = pair.partition(":")
        if interval == ">":
            known[last:] = [int(count)] * (_INTERVALS - last)
            continue
        last = min(int(interval).bit_length() - 1, _INTERVALS - 1)
        if number == 0:
            known[:last] = [int(count)] * last
        known[last] = int(count)


def _reject(text: str) -> NoReturn:
    raise ValueError(text)
