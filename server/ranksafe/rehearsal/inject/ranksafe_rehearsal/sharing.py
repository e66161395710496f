"""CUDA tensors on their way to another process: copies travel, because simulated memory is the process's own."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

from . import importing, journal
from .settings import Settings


def install(settings: Settings) -> None:
    """Wait for torch's part of pickling between processes."""
    importing.after_import("torch.multiprocessing.reductions", _send_copies)


def _send_copies(module: Any) -> None:
    original = module.reduce_tensor

    @functools.wraps(original)
    def reduce_tensor(tensor: Any) -> Any:
        # torch itself refuses what is not a leaf, in words of its own.
        if tensor.device.type != "cuda" or (tensor.requires_grad and not tensor.is_leaf):
            return original(tensor)
        journal.modified(
            "CUDA tensors that were sent to another process are copies there",
            "发送到其他进程的 CUDA 张量在那里是副本",
            kind="shared-memory",
        )
        is_parameter = isinstance(tensor, module.torch.nn.Parameter)
        host = tensor.detach().cpu().contiguous()
        # Inside the message: shared memory would ask the sender to live until it is read.
        content = ctypes.string_at(host.data_ptr(), host.nbytes)
        description = (host.dtype, tuple(host.shape), str(tensor.device))
        return _rebuild, (content, *description, bool(tensor.requires_grad), is_parameter)

    module.reduce_tensor = reduce_tensor


def _rebuild(
    content: bytes,
    dtype: Any,
    shape: tuple[int, ...],
    device: str,
    requires_grad: bool,
    is_parameter: bool,
) -> Any:
    import torch

    if content:
        host = torch.frombuffer(bytearray(content), dtype=dtype).reshape(shape)
    else:
        host = torch.empty(shape, dtype=dtype)
    tensor = host.to(device)
    if is_parameter:
        return torch.nn.Parameter(tensor, requires_grad=requires_grad)
    return tensor.requires_grad_(requires_grad)
