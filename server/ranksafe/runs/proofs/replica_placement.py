"""Which emulated device a tensor belongs to, and the error torch raises when two meet.

Runs inside the program that is proved (standard library and torch only). On the CPU nothing stops replica 1 from using
a weight of the original module, which on GPUs is the failure "Expected all tensors to be on the same device". So every
tensor that `emulated_data_parallel` hands to a replica is marked with the replica's device, results inherit the mark,
and an operation in a replica that meets tensors of two devices raises that error (text imitated from torch 2.13).

An unmarked tensor existed before the replica started and belongs to device 0, where a program puts its model. In a
replica, ``cuda`` and ``cpu`` without an index mean the replica's own device: every tensor calls its device ``cpu``
here, so ``x.device`` could not be told from a literal. 0-d tensors mix with everything, as 0-d CPU tensors do.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_MARK = "_emulated_device"
_MAY_MIX = frozenset({"to", "copy_", "cuda", "type_as", "__get__", "__set__"})
_thread = threading.local()


def placed(tensor: torch.Tensor, device: int) -> torch.Tensor:
    """``tensor`` itself, marked as belonging to ``device``."""
    setattr(tensor, _MARK, device)
    return tensor


def current_device() -> int:
    """The device of the replica that this thread computes; 0 outside replicas."""
    return getattr(_thread, "device", 0)


@contextlib.contextmanager
def on_device(device: int) -> Iterator[None]:
    """Compute as the replica on ``device``."""
    _thread.device = device
    try:
        with _Replica(device):
            yield
    finally:
        _thread.device = 0


def emulate_moves() -> None:
    """Let ``.cuda()`` and ``.to()`` change marks instead of memory, for tensors and modules."""

    def cuda(self: torch.Tensor, device: object = None, *args: Any, **kwargs: Any) -> torch.Tensor:
        return _moved(self, _index(device))

    def stay(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self

    real_to: Any = torch.Tensor.to
    real_module_to: Any = torch.nn.Module.to

    def to(self: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        target = next(filter(_names_device, (*args, *kwargs.values())), None)
        result = real_to(self, *_on_cpu(args), **dict(zip(kwargs, _on_cpu(kwargs.values()))))
        return result if target is None else _moved(result, _index(target))

    def module_to(self: Any, *args: Any, **kwargs: Any) -> Any:
        return real_module_to(self, *_on_cpu(args), **dict(zip(kwargs, _on_cpu(kwargs.values()))))

    torch.Tensor.cuda, torch.Tensor.to = cuda, to
    torch.nn.Module.cuda, torch.nn.Module.to = stay, module_to


class _Replica(TorchFunctionMode):
    def __init__(self, device: int) -> None:
        super().__init__()
        self.device = device

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = dict(kwargs or {})
        marks = {_mark(tensor) for tensor in _tensors((args, kwargs)) if tensor.dim() > 0}
        if len(marks) > 1 and getattr(func, "__name__", "") not in _MAY_MIX:
            first, second = sorted(marks)[:2]
            raise RuntimeError(
                "Expected all tensors to be on the same device, but found at least two devices, "
                f"cuda:{first} and cuda:{second}!"
            )
        device = marks.pop() if len(marks) == 1 else self.device
        if _names_device(kwargs.get("device")):
            device = _index(kwargs["device"])
            kwargs["device"] = "cpu"
        result = func(*args, **kwargs)
        for tensor in _tensors(result):
            if not isinstance(tensor, torch.nn.Parameter) and not hasattr(tensor, _MARK):
                placed(tensor, device)
        return result


def _mark(tensor: torch.Tensor) -> int:
    return getattr(tensor, _MARK, 0)


def _moved(tensor: torch.Tensor, device: int) -> torch.Tensor:
    if _mark(tensor) == device:
        return tensor
    return placed(tensor.view_as(tensor), device)


def _names_device(value: object) -> bool:
    if isinstance(value, str):
        return value.split(":")[0] in ("cuda", "cpu")
    is_index = isinstance(value, int) and not isinstance(value, bool)
    return is_index or isinstance(value, (torch.device, torch.Tensor))


def _index(value: object) -> int:
    if isinstance(value, torch.Tensor):
        return _mark(value)
    if isinstance(value, int):
        return value
    index = torch.device(value).index if value is not None else None
    return current_device() if index is None else index


def _on_cpu(values: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(
        "cpu" if _names_device(value) and not isinstance(value, torch.Tensor) else value
        for value in values
    )


def _tensors(value: object) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _tensors(item)
