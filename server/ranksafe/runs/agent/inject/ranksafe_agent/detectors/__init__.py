"""Detectors for what goes wrong without an error.

What one rank can see alone it writes into its journal as a ``silent-failure`` event. What shows only between ranks is
written down by each rank for itself and compared after the run (``ranksafe.runs.compared_ranks``): a detector never
communicates, so the script makes the same collectives with and without it.

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
    from . import collectives, files, in_flight, replicas

    watch = Watch(journal)
    hooks: dict[str, list[Callable[[Any], None]]] = {}
    calls = collectives.Calls(watch, in_flight.InFlight(watch) if mode == ALL else None)
    parts = [replicas.hooks(watch), collectives.hooks(calls), files.hooks(watch)]
    if mode == ALL:
        from . import training, wrapped_models

        parts += [training.hooks(watch), wrapped_models.hooks(calls)]
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
