"""Records how one rank of a run lives and ends. Standard library only, CPython 3.8+, every hook guarded."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .journal import Journal


_OURS = "RANKSAFE_RUN_"
_prepared: Journal | None = None
"""Of a process that was forked from one in which the imports are watched already."""


def activate(inject_directory: str) -> None:
    """Start recording if this process is a rank of a run; called once, before the user's script."""
    if os.environ.get("RANKSAFE_RUN_TEMPLATE"):
        _prepare()
        return
    directory = os.environ.get("RANKSAFE_RUN_DIRECTORY")
    if not directory:
        return
    from . import process

    script = os.environ.get("RANKSAFE_RUN_SCRIPT", "")
    rank = process.current_rank(script, os.environ.get("RANKSAFE_RUN_MODULE", ""))
    variables = {name: os.environ[name] for name in os.environ if name.startswith(_OURS)}
    if rank is None:
        if "RANKSAFE_RUN_SPAWNED" in variables:
            from . import spawned

            _leave_no_trace(inject_directory)
            spawned.await_number(lambda: activate(inject_directory), variables)
        return
    steps, is_short = _steps()
    reports_all = _detectors() == "all"
    is_debugged = os.environ.get("RANKSAFE_RUN_DEBUGGED_RANK") == str(rank)
    debugpy = os.environ.get("RANKSAFE_RUN_DEBUGPY")
    process.redirect_output(directory, rank, variables.get("RANKSAFE_RUN_OUTPUT"))

    from . import fatal, heartbeat, reached, spawned

    book = _prepared or _prepare()
    _leave_no_trace(inject_directory)
    book.open(directory, rank, process.description(rank))
    installers: list[Callable[[], None]] = [
        lambda: fatal.install(directory, rank),
        lambda: spawned.install(book, variables),
        lambda: heartbeat.install(book, directory, rank, is_debugged=is_debugged),
    ]
    if reports_all:
        installers.append(
            lambda: reached.install(book, directory, rank, script, is_short or steps is not None)
        )
    if is_debugged:
        installers.append(lambda: _debug(book, debugpy))
    _install(book, installers)


def _prepare() -> Journal:
    """Watch imports and the end, the same for every rank; what is written is held back until the rank is known."""
    global _prepared
    from . import ending, journal, parameter_names
    from . import steps as step_counter

    book = _prepared = journal.Journal()
    (steps, is_short), wanted_detectors = _steps(), _detectors()
    installers = [
        # First, so that it hears of the end last.
        lambda: ending.install(book),
        lambda: parameter_names.install(book),
        # Before the step counter, which ends a smoke run where the last step would still be looked at.
        lambda: _detect(book, wanted_detectors),
        lambda: step_counter.install(book, steps, until_enough=is_short),
    ]
    _install(book, installers)
    return book


def _install(book: Journal, installers: list[Callable[[], None]]) -> None:
    for install in installers:
        try:
            install()
        except Exception as error:  # one hook that fails must not cost the others
            book.write("agent-problem", text=repr(error))


def _steps() -> tuple[int | None, bool]:
    """After how many the run is stopped, and whether it is stopped once it has shown what it does."""
    wanted = os.environ.get("RANKSAFE_RUN_STEPS")
    return _positive(wanted), wanted == "auto"


def _detectors() -> str:
    return os.environ.get("RANKSAFE_RUN_DETECTORS", "off")


def _debug(book: Journal, libraries: str | None) -> None:
    from . import debugger

    debugger.wait(book, libraries)


def _detect(book: Journal, wanted: str) -> None:
    from . import detectors

    detectors.install(book, wanted)


def _positive(text: str | None) -> int | None:
    try:
        number = int(text or "")
    except ValueError:
        return None
    return number if number > 0 else None


def _leave_no_trace(inject_directory: str) -> None:
    """Make the script, and whatever it starts, see the paths and variables it would see without us."""
    sys.path[:] = [entry for entry in sys.path if entry != inject_directory]
    for name in [name for name in os.environ if name.startswith(_OURS)]:
        del os.environ[name]
    entries = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    rest = [entry for entry in entries if entry != inject_directory]
    if any(rest):
        os.environ["PYTHONPATH"] = os.pathsep.join(rest)
    else:
        os.environ.pop("PYTHONPATH", None)
