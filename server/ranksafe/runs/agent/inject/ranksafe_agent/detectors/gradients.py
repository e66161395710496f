"""Gradients that DDP has averaged already and that the script sums over the ranks once more.

Certain within one rank: where the sum is exactly world size times what was there before, every rank had the same
gradient, so it had been averaged; and where the optimizer then steps with that sum, it steps world size times too far.
"""

from __future__ import annotations

import functools
import sys
from typing import Any, Callable

from . import collectives, digests
from .watch import Watch, stack
from .wrappers import Wrappers

_SAMPLE = 256
_MOST_SUMS = 64


class _Gradients:
    def __init__(self, watch: Watch, known: Wrappers) -> None:
        self.watch = watch
        self.known = known
        self.summed: dict[int, tuple[Any, Any, int, list[dict[str, Any]]]] = {}
        self.sums = 0

    def heard(self, name: str, tensor: Any) -> Any:
        """A collective begins; what is returned is called after it."""
        if name != "all_reduce" or tensor is None or self.sums >= _MOST_SUMS:
            return None
        return self.watch.attempt(self._begin, tensor)

    def _begin(self, tensor: Any) -> Any:
        found = self._parameter_of(tensor)
        if found is None:
            return None
        parameter, size = found
        before = _sample(tensor)
        if not bool(before.abs().sum() > 0):
            return None
        self.sums += 1
        frames = stack()

        def end(work: Any) -> None:
            if work is None and _is_multiple(_sample(tensor), before, size):
                self.summed[id(parameter)] = (parameter, before, size, frames)

        return end

    def _parameter_of(self, tensor: Any) -> tuple[Any, int] | None:
        """The parameter of a DDP model whose whole gradient ``tensor`` is, and DDP's world size."""
        address = tensor.data_ptr()
        for wrapper in list(self.known.all.values()):
            if len(wrapper.ranks) < 2:
                continue
            for parameter in wrapper.parameters:
                gradient = parameter.grad
                if gradient is None or not digests.is_plain(gradient):
                    continue
                if gradient.data_ptr() == address and gradient.numel() == tensor.numel():
                    return parameter, len(wrapper.ranks)
        return None

    def before_step(self, optimizer: Any, *_: Any) -> None:
        """Whether what is stepped with is still the sum."""
        if not self.summed:
            return
        mine = {id(each) for group in optimizer.param_groups for each in group["params"]}
        for key in mine & set(self.summed):
            parameter, before, size, frames = self.summed.pop(key)
            if parameter.grad is None or not _is_multiple(_sample(parameter.grad), before, size):
                continue
            self.watch.silent_failure(
                "scaled-gradients",
                None,
                (
                    f"DistributedDataParallel had averaged this gradient over {size} ranks already; the sum made here "
                    f"is {size} times the right value, and the optimizer steps with it",
                    f"DistributedDataParallel 已经在 {size} 个 rank 间平均过该梯度；此处再次求和得到正确值的 "
                    f"{size} 倍，优化器用它更新",
                ),
                frames,
            )


def hooks(watch: Watch, known: Wrappers) -> dict[str, Callable[[Any], None]]:
    """What to do after which import."""
    gradients = _Gradients(watch, known)
    collectives.listeners.append(gradients.heard)
    return {"torch.optim.optimizer": functools.partial(_hook, gradients)}


def _hook(gradients: _Gradients, module: Any) -> None:
    def before(optimizer: Any, *_: Any) -> None:
        gradients.watch.attempt(gradients.before_step, optimizer)

    module.register_optimizer_step_pre_hook(before)


def _sample(tensor: Any) -> Any:
    torch = sys.modules["torch"]
    with torch.no_grad():
        flat = tensor.detach().reshape(-1)
        step = max(1, flat.numel() // _SAMPLE)
        return flat[::step][:_SAMPLE].clone().cpu().to(torch.float64)


def _is_multiple(after: Any, before: Any, size: int) -> bool:
    torch = sys.modules["torch"]
    return bool(torch.allclose(after, before * size, rtol=1e-3, atol=1e-12))
