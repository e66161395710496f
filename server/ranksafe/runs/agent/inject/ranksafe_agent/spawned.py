"""Processes that ``torch.multiprocessing.spawn`` starts are the ranks; the one that starts them then only waits.

They are new interpreters (``python -c``), so the agent's variables are put back around their start, and which rank one
is becomes known when torch calls the function to be run (torch 2.8 to 2.13, ``multiprocessing/spawn.py``: ``_wrap``).
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Callable

from . import ending, heartbeat, process
from .after_import import after_import
from .journal import Journal

COUNT_VARIABLE = "RANKSAFE_RUN_SPAWNED"
_MODULE = "torch.multiprocessing.spawn"
_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def install(journal: Journal, variables: dict[str, str]) -> None:
    """In a rank that may start others. ``variables``: what lets the agent start in them."""

    def hook(module: Any) -> None:
        start_processes = module.start_processes

        @functools.wraps(start_processes)
        def start(
            fn: Any, args: Any = (), nprocs: int = 1, join: bool = True, *rest: Any, **keywords: Any
        ) -> Any:
            method = keywords.get("start_method", rest[1] if len(rest) > 1 else "spawn")
            if method != "spawn" or nprocs < 2 or "RANK" in os.environ or not journal.is_mine:
                return start_processes(fn, args, nprocs, join, *rest, **keywords)
            heartbeat.stop()
            journal.is_silent = True
            path = os.pathsep.join([_HERE, os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
            with _put_back({**variables, COUNT_VARIABLE: str(nprocs), "PYTHONPATH": path}):
                context = start_processes(fn, args, nprocs, False, *rest, **keywords)
            if not join:
                return context
            while not context.join():
                pass
            journal.is_silent = False
            return None

        module.start_processes = start

    after_import({_MODULE: hook}, lambda text: journal.write("agent-problem", text=text))


def await_number(activate: Callable[[], None], variables: dict[str, str]) -> None:
    """In a process that was spawned: be the rank whose number torch names, from then on."""
    count = int(variables.pop(COUNT_VARIABLE))

    def hook(module: Any) -> None:
        wrap = module._wrap

        @functools.wraps(wrap)
        def run(fn: Any, number: int, args: Any, error_file: str) -> None:
            try:
                with _put_back(variables):
                    process.become(number, count)
                    activate()
            except Exception:  # a broken agent must stay unnoticed by the script
                pass
            wrap(functools.partial(_recorded, fn), number, args, error_file)

        module._wrap = run

    after_import({_MODULE: hook}, lambda text: None)


def _recorded(fn: Any, *arguments: Any) -> Any:
    """torch turns the exception into text for the other process, so that no hook sees it."""
    try:
        return fn(*arguments)
    except Exception as error:
        trace = error.__traceback__
        ending.record(error.with_traceback(trace.tb_next if trace is not None else None))
        raise


@contextmanager
def _put_back(variables: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
