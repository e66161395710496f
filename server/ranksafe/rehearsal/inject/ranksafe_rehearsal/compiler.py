"""``torch.compile`` runs the program as it is written: code for CUDA could be made, but not run."""

from __future__ import annotations

import functools
import threading
from types import FunctionType, MethodType
from typing import Any

from . import journal

called = [False]
"""Whether the program has called anything that would have been compiled into kernels; known in a forecast only."""
_MAKES_KERNELS = "inductor"
"""The backend of ``torch.compile`` unless another is asked for; those for debugging run operator by operator."""


class _Here(threading.local):
    depth = 0


_here = _Here()


def is_compiled() -> bool:
    """Whether this thread is in code that would have been compiled into kernels; known in a forecast only."""
    return _here.depth > 0


def install(torch: Any, *, notes_calls: bool) -> None:
    """Replace ``torch.compile``; ``notes_calls``: `is_compiled` is asked."""
    original = torch.compile

    @functools.wraps(original)
    def compile_eagerly(model: Any = None, **options: Any) -> Any:
        journal.modified(
            "torch.compile left the code as it is (eager)",
            "torch.compile 未编译代码，按原样（eager）执行",
            kind="compiler",
        )
        if model is None:
            return functools.partial(compile_eagerly, **options)
        makes_kernels = options.get("backend", _MAKES_KERNELS) == _MAKES_KERNELS
        return _wrapped(torch, model, notes_calls and makes_kernels)

    torch.compile = compile_eagerly


def _wrapped(torch: Any, model: Any, notes_calls: bool) -> Any:
    """A module compiles to an ``OptimizedModule``, whose names of parameters begin with ``_orig_mod.``."""
    if not isinstance(model, torch.nn.Module):
        if notes_calls and isinstance(model, (FunctionType, MethodType)):
            return _noted(model)
        called[0] = called[0] or notes_calls  # another callable, whose calls nobody sees
        return model
    try:
        from torch._dynamo.eval_frame import OptimizedModule, _NullDecorator

        class Compiled(_NullDecorator):
            def __call__(self, function: Any) -> Any:
                return _noted(function) if notes_calls else function

        return OptimizedModule(model, Compiled())
    except Exception as error:  # another version of the compiler
        journal.problem("torch.compile", error)
        return model


def _noted(function: Any) -> Any:
    @functools.wraps(function)
    def call(*arguments: Any, **keywords: Any) -> Any:
        called[0] = True
        _here.depth += 1
        try:
            return function(*arguments, **keywords)
        finally:
            _here.depth -= 1

    return call
