"""CUDA tensors on their way to another process: copies travel, because simulated memory is the process's own."""

from __future__ import annotations

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
        host = tensor.detach().cpu()
        tensor._sent_copy = host  # its memory must outlive the message
        return _rebuild, (host, str(tensor.device), bool(tensor.requires_grad), is_parameter)

    module.reduce_tensor = reduce_tensor


def _rebuild(host: Any, device: str, requires_grad: bool, is_parameter: bool) -> Any:
    import torch

    tensor = host.to(device)
    if is_parameter:
        return torch.nn.Parameter(tensor, requires_grad=requires_grad)
    return tensor.requires_grad_(requires_grad)
