"""Numbers that stand for the content of tensors: equal content, equal number, on every device and in every process.

Computed on the bits with integers that wrap around, so that no rounding and no order of summation matters. Large
tensors are sampled at even distances.
"""

from __future__ import annotations

import sys
from typing import Any, Iterator

_SAMPLE = 2048
_SAMPLE_OF_ROW = 64
_BITS = {1: "int8", 2: "int16", 4: "int32", 8: "int64"}
_MASK = (1 << 64) - 1
_weights: dict[int, Any] = {}


def is_plain(tensor: Any) -> bool:
    """Whether the tensor holds all of its numbers here: no shard (DTensor), no fake, no meta, no wrapper tensor."""
    torch = sys.modules["torch"]
    kinds = (torch.Tensor, torch.nn.Parameter)
    return (
        type(tensor) in kinds
        and not tensor.is_meta
        and tensor.layout is torch.strided
        and not tensor.is_quantized
    )


def digest(tensor: Any) -> int:
    """One number for all of ``tensor``; it must be `is_plain`."""
    torch = sys.modules["torch"]
    with torch.no_grad():
        flat = tensor.detach().reshape(-1)
        step = max(1, flat.numel() // _SAMPLE)
        bits = _as_integers(flat[::step][:_SAMPLE])
        return int((bits * _weights_of(bits.numel())).sum().item()) & _MASK


def row_digests(batch: Any) -> list[int]:
    """One number per row for all tensors of ``batch`` that have as many rows as the first; empty: no rows."""
    torch = sys.modules["torch"]
    total: Any = None
    with torch.no_grad():
        for index, tensor in enumerate(tensors_in(batch)):
            if tensor.dim() < 1 or (total is not None and tensor.size(0) != total.numel()):
                continue
            rows = tensor.detach().reshape(tensor.size(0), -1)
            if rows.size(1) == 0 or rows.size(0) == 0:
                continue
            step = max(1, rows.size(1) // _SAMPLE_OF_ROW)
            bits = _as_integers(rows[:, ::step][:, :_SAMPLE_OF_ROW])
            mixed = (bits * _weights_of(bits.size(1))).sum(dim=1) * (2 * index + 1)
            total = mixed if total is None else total + mixed
        return [] if total is None else [int(number) & _MASK for number in total.tolist()]


def tensors_in(value: Any, depth: int = 0) -> Iterator[Any]:
    """Every plain tensor in nested containers, in their order."""
    torch = sys.modules["torch"]
    if isinstance(value, torch.Tensor):
        if is_plain(value):
            yield value
    elif depth < 6:
        parts: Any = ()
        if isinstance(value, (list, tuple)):
            parts = value
        elif hasattr(value, "keys") and hasattr(value, "values"):
            parts = value.values()
        for part in parts:
            yield from tensors_in(part, depth + 1)


def _as_integers(tensor: Any) -> Any:
    """The bits as int64 on the CPU."""
    torch = sys.modules["torch"]
    tensor = tensor.contiguous().cpu()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor).flatten(-2)
    if tensor.dtype is torch.bool:
        return tensor.to(torch.int64)
    return tensor.view(getattr(torch, _BITS[tensor.element_size()])).to(torch.int64)


def _weights_of(length: int) -> Any:
    """Odd multipliers without pattern, so that exchanged elements show."""
    if length not in _weights:
        torch = sys.modules["torch"]
        index = torch.arange(1, length + 1, dtype=torch.int64)
        _weights[length] = (index * 0x1E3779B97F4A7C15) ^ (index << 31) | 1
    return _weights[length]
