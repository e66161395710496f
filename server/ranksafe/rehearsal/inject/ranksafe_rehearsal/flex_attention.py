"""``flex_attention`` in a forecast: compiled, it is one kernel that keeps no scores.

As it is written it makes the whole matrix of scores, and so it does on a device where nobody compiles it. What the
kernel takes is what torch's own rules for shapes say (torch 2.13, ``torch/_higher_order_ops/flex_attention.py``).
"""

from __future__ import annotations

from typing import Any

from . import compiler, importing
from .settings import COMPUTED_BYTES, Settings


def install(_settings: Settings) -> None:
    """Wait for the module that has the operators."""
    importing.after_import("torch._higher_order_ops.flex_attention", _hook)


def _hook(module: Any) -> None:
    """A release with other rules is left as it is, and then takes too much."""
    compiled = _Compiled()
    for name, shapes in (
        ("flex_attention", "flex_attention_fake_impl"),
        ("flex_attention_backward", "flex_attention_backward_fake_tensor_mode"),
    ):
        compiled.replace(module, getattr(module, name), getattr(module, shapes))


class _Compiled:
    """Whether the program compiles its attention: the backward pass and what is computed again are not called by the
    compiled code itself."""

    def __init__(self) -> None:
        self._was_seen = False

    def replace(self, module: Any, operator: Any, shapes: Any) -> None:
        """Take what ``shapes`` says, instead of computing."""
        key = module.DispatchKey.CompositeExplicitAutograd
        computed = operator.py_kernels[key]

        def run(query: Any, *others: Any, **named: Any) -> Any:
            self._was_seen = self._was_seen or compiler.is_compiled()
            is_large = query.numel() * query.element_size() >= COMPUTED_BYTES
            if self._was_seen and is_large and query.is_cuda:
                return shapes(query, *others, **named)
            return computed(query, *others, **named)

        operator.py_kernels[key] = run
        operator._dispatch_cache.clear()
