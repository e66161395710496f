"""Detectors that look at the script's tensors: installed in rehearsals only."""

from __future__ import annotations

from typing import Any, Callable

from . import activity, gradients, optimizers, samples, splits, wrappers
from .watch import Watch


def hooks(watch: Watch) -> dict[str, Callable[[Any], None]]:
    """What to do after which import."""
    known = wrappers.Wrappers(watch)
    modules = [
        samples.hooks(watch, known),
        wrappers.hooks(known),
        optimizers.hooks(watch, known),
        gradients.hooks(watch, known),
        splits.hooks(watch),
        activity.hooks(watch, known),
    ]
    together: dict[str, Callable[[Any], None]] = {}
    for found in modules:
        for name, hook in found.items():
            before = together.get(name)
            together[name] = hook if before is None else _both(before, hook)
    return together


def _both(one: Callable[[Any], None], other: Callable[[Any], None]) -> Callable[[Any], None]:
    def each(module: Any) -> None:
        one(module)
        other(module)

    return each
