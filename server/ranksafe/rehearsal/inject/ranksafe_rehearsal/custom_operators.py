"""Operators of ``torch.library.custom_op`` in a forecast: what nothing here can run takes what its fake says.

A fake makes the results' shapes, here on the simulated devices, and so takes their memory (torch 2.13,
``torch/_library/custom_ops.py``). What the kernel itself would take while it runs is not in it.
"""

from __future__ import annotations

import functools
from typing import Any, Callable

from . import importing, journal
from .limits import PREFIX
from .settings import Settings


def install(_settings: Settings) -> None:
    """Wait for the module that registers kernels."""
    importing.after_import("torch._library.custom_ops", _hook)


def _hook(module: Any) -> None:
    owner = module.CustomOpDef
    register = owner.register_kernel

    @functools.wraps(register)
    def register_kernel(self: Any, device_types: Any, fn: Any = None) -> Any:
        if fn is None:
            return functools.partial(register_kernel, self, device_types)
        register(self, device_types, _or_fake(self, fn))
        return fn

    owner.register_kernel = register_kernel


def _or_fake(operator: Any, kernel: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(kernel)
    def run(*arguments: Any, **named: Any) -> Any:
        try:
            return kernel(*arguments, **named)
        except NotImplementedError as error:
            if operator._abstract_fn is None or not str(error).startswith(PREFIX):
                raise
        name = operator._qualname
        journal.modified(
            f"{name} takes its results' memory and computes nothing",
            f"{name} 只占用其结果的显存，不做计算",
        )
        return operator._abstract_fn(*arguments, **named)

    return run
