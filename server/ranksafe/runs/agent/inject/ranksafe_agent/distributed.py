"""What torch.distributed says of the process group, if the script has imported it."""

from __future__ import annotations

import sys

_largest: int | None = None


def group_size() -> int | None:
    """The largest world size an initialised default process group has had so far; None: there was none.

    Never imports torch, never raises.
    """
    global _largest
    try:
        module = sys.modules.get("torch.distributed")
        if module is not None and module.is_available() and module.is_initialized():
            size = int(module.get_world_size())
            _largest = size if _largest is None else max(_largest, size)
    except Exception:  # half-imported torch
        pass
    return _largest


def uses_cuda() -> bool:
    """Whether the script has begun to use CUDA; never imports torch, never raises."""
    try:
        module = sys.modules.get("torch.cuda")
        return module is not None and bool(module.is_initialized())
    except Exception:  # half-imported torch
        return False
