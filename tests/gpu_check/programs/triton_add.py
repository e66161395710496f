"""One kernel, for `calls.py`."""

import torch
import triton
import triton.language as tl


@triton.jit
def _add(left, right, result, count: tl.constexpr):  # type: ignore[no-untyped-def]
    places = tl.arange(0, count)
    tl.store(result + places, tl.load(left + places) + tl.load(right + places))


def add(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    result = torch.empty_like(left)
    _add[(1,)](left, right, result, left.numel())
    return result
