"""Optimizers whose parameters are not, or no longer, those that are trained.

torch's optimizers pass over parameters without a gradient, all of them if need be, and say nothing.
"""

from __future__ import annotations

import functools
import weakref
from typing import Any, Callable

from .watch import Watch, stack
from .wrappers import Wrappers

_ENOUGH_STEPS = 2


class _Optimizers:
    def __init__(self, watch: Watch, known: Wrappers) -> None:
        self.watch = watch
        self.known = known
        self.places: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self.empty: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self.before: weakref.WeakKeyDictionary[Any, bool] = weakref.WeakKeyDictionary()
        self.backwards = 0
        self.seen: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()

    def made(self, optimizer: Any) -> None:
        """Remember where an optimizer was made."""
        self.places[optimizer] = stack()

    def backward(self) -> None:
        """A backward pass begins."""
        self.backwards += 1

    def before_step(self, optimizer: Any, *_: Any) -> None:
        """What is to be stepped."""
        if self.empty.get(optimizer, 0) >= 0:
            self.before[optimizer] = _has_gradient(optimizer)

    def after_step(self, optimizer: Any, *_: Any) -> None:
        """Count steps that had nothing to do although gradients were computed; one that had something ends it."""
        count = self.empty.get(optimizer, 0)
        if count < 0 or optimizer not in self.before:
            return
        if self.before[optimizer] or _has_gradient(optimizer) or not _is_trainable(optimizer):
            self.empty[optimizer] = -1
            return
        if self.backwards <= self.seen.get(optimizer, 0):
            return  # no backward pass since its last step: a step made to please a scheduler
        self.seen[optimizer] = self.backwards
        self.empty[optimizer] = count + 1
        if count + 1 == _ENOUGH_STEPS:
            self._tell(optimizer)

    def _tell(self, optimizer: Any) -> None:
        self.empty[optimizer] = -1
        name = type(optimizer).__name__
        self.watch.silent_failure(
            "optimizer-without-gradients",
            None,
            (
                f"none of this {name}'s parameters ever had a gradient when it stepped, although backward was called: "
                "it trains nothing. It was made from parameters that the model no longer has (before the model was "
                "wrapped or sharded, or from another copy of it)",
                f"{name} 更新时，它的所有参数从未有过梯度，而 backward 已被调用：它没有训练任何东西。"
                "它是用模型已不再使用的参数创建的（在包装或分片模型之前创建，或来自另一份副本）",
            ),
            self.places.get(optimizer),
        )


def hooks(watch: Watch, known: Wrappers) -> dict[str, Callable[[Any], None]]:
    """What to do after which import."""
    optimizers = _Optimizers(watch, known)
    return {
        "torch.optim.optimizer": functools.partial(_hook_optimizer, optimizers),
        "torch.autograd": functools.partial(_hook_backward, optimizers),
    }


def _hook_optimizer(optimizers: _Optimizers, module: Any) -> None:
    watch = optimizers.watch
    kind = module.Optimizer
    initialise = kind.__init__

    @functools.wraps(initialise)
    def watched_init(self: Any, *arguments: Any, **keywords: Any) -> None:
        initialise(self, *arguments, **keywords)
        watch.attempt(optimizers.made, self)

    def before(optimizer: Any, *_: Any) -> None:
        watch.attempt(optimizers.before_step, optimizer)

    def after(optimizer: Any, *_: Any) -> None:
        watch.attempt(optimizers.after_step, optimizer)

    kind.__init__ = watched_init
    module.register_optimizer_step_pre_hook(before)
    module.register_optimizer_step_post_hook(after)


def _hook_backward(optimizers: _Optimizers, module: Any) -> None:
    """``Tensor.backward`` looks ``torch.autograd.backward`` up when it is called (torch 2.13.0, ``_tensor.py``)."""
    backward = module.backward

    @functools.wraps(backward)
    def watched_backward(*arguments: Any, **keywords: Any) -> Any:
        optimizers.watch.attempt(optimizers.backward)
        return backward(*arguments, **keywords)

    module.backward = watched_backward


def _has_gradient(optimizer: Any) -> bool:
    return any(
        parameter.grad is not None
        for group in optimizer.param_groups
        for parameter in group["params"]
    )


def _is_trainable(optimizer: Any) -> bool:
    """A rank whose share of a sharded parameter is empty has nothing to step."""
    return any(
        parameter.requires_grad and parameter.numel() > 0
        for group in optimizer.param_groups
        for parameter in group["params"]
    )
