"""Detectors for what goes wrong without an error.

What one rank can see alone it writes into its journal as a ``silent-failure`` event. What shows only between ranks is
written down by each rank for itself and compared after the run (``ranksafe.runs.explain.comparisons``): a detector
never communicates, so the script makes the same collectives with and without it.

``cheap`` detectors ride along in real runs; the others compute on the script's tensors and are for rehearsals.
"""

from __future__ import annotations

import functools
from typing import Any, Callable

from ..after_import import Action, after_import
from ..journal import Journal
from .watch import Watch

CHEAP = "cheap"
ALL = "all"


def install(journal: Journal, mode: str) -> None:
    """Watch from now on; ``mode``: ``all``, ``cheap``, anything else for nothing."""
    if mode not in (CHEAP, ALL):
        return
    from . import collectives, files, replicas

    watch = Watch(journal)
    hooks: dict[str, list[Callable[[Any], None]]] = {}
    parts = [
        replicas.hooks(watch),
        collectives.hooks(watch, is_rehearsed=mode == ALL),
        files.hooks(watch),
    ]
    if mode == ALL:
        from . import training

        parts.append(training.hooks(watch))
    for part in parts:
        for name, hook in part.items():
            hooks.setdefault(name, []).append(hook)
    actions: dict[str, Action] = {
        name: functools.partial(_each, watch, tuple(found)) for name, found in hooks.items()
    }
    after_import(actions, watch.problem)


def _each(watch: Watch, hooks: tuple[Callable[[Any], None], ...], module: Any) -> None:
    for hook in hooks:
        watch.attempt(hook, module)
