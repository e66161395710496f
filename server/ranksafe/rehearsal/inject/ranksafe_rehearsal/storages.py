"""Storages on simulated devices: making, resizing and moving them, which torch does outside its dispatcher."""

from __future__ import annotations

import functools
from typing import Any

import torch

from . import checkpoints, settings
from .limits import refuse
from .state import devices


def install() -> None:
    """Teach ``torch.UntypedStorage`` the simulated devices."""
    storage: Any = torch.UntypedStorage
    storage.__new__ = staticmethod(_making(storage.__new__))
    storage.resize_ = _resizing(storage.resize_)
    storage.to = _moving(storage.to)
    storage.cuda, storage.cpu = _to_cuda(storage.cuda), _to_cpu(storage.cpu)
    storage._share_cuda_ = _share
    storage._new_shared_cuda = staticmethod(_share)


def _making(make: Any) -> Any:
    def new(cls: Any, *arguments: Any, **keywords: Any) -> Any:
        device = keywords.get("device")
        wanted = None if device is None else torch.device(device)
        if wanted is None or wanted.type != "cuda":
            return make(cls, *arguments, **keywords)
        if arguments and not isinstance(arguments[0], int):
            content = torch.tensor(arguments[0], dtype=torch.uint8, device=wanted)
        else:
            size = arguments[0] if arguments else keywords.get("size", 0)
            content = torch.empty(size, dtype=torch.uint8, device=wanted)
        return content.untyped_storage()

    return new


def _resizing(resize: Any) -> Any:
    @functools.wraps(resize)
    def resize_storage(self: Any, size: int) -> Any:
        if self.device.type != "cuda":
            return resize(self, size)
        if not devices().library.resize_storage(self._cdata, int(size)):
            # The allocator has its own words for it; the library could only say that there are some.
            torch.empty(int(size), dtype=torch.uint8, device=self.device)
        return self

    return resize_storage


def _moving(move: Any) -> Any:
    @functools.wraps(move)
    def to(self: Any, *arguments: Any, **keywords: Any) -> Any:
        target = torch.device(keywords.get("device", arguments[0] if arguments else "cpu"))
        if target.type == "cuda" and target.index is None:
            target = torch.device("cuda", torch.cuda.current_device())
        if "cuda" not in (target.type, self.device.type):
            return move(self, *arguments, **keywords)
        if target == self.device:
            return self
        chosen = settings.current()
        if chosen is not None and chosen.forecast:
            return checkpoints.copied(self, target)
        content = torch.empty(0, dtype=torch.uint8, device=self.device).set_(self)
        return content.to(target).untyped_storage()

    return to


def _to_cuda(original: Any) -> Any:
    @functools.wraps(original)
    def cuda(self: Any, device: Any = None, non_blocking: bool = False) -> Any:
        index = torch.cuda._utils._get_device_index(device, optional=True)
        return self.to(torch.device("cuda", index))

    return cuda


def _to_cpu(keep: Any) -> Any:
    @functools.wraps(keep)
    def cpu(self: Any) -> Any:
        return self.to(torch.device("cpu")) if self.device.type == "cuda" else keep(self)

    return cpu


def _share(*_: Any, **__: Any) -> None:
    refuse(
        "shared-memory",
        "torch.UntypedStorage._share_cuda_",
        "a CUDA tensor cannot be sent to another process on simulated GPUs",
        "模拟 GPU 无法在进程之间传递 CUDA 张量",
    )
