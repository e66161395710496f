"""An exception that ends the program is looked at once more: was it a limit of the simulation, does it touch one?

Limits that C++ raises, and imports of packages that cannot work here, are noted only where nothing caught them.
"""

from __future__ import annotations

import atexit
import functools
import sys
from typing import Any, NoReturn

from . import importing, journal, packages, touched
from .limits import PREFIX, SimulationLimit, note
from .settings import Settings

_seen: list[int] = []
"""Identities of the exceptions that were looked at; ``sys.last_value`` and the hooks' callers keep them alive."""


def install(settings: Settings) -> None:
    """Look before the hook that is there already; where a library replaces that (rich does), at the end."""
    previous = sys.excepthook

    def hook(kind: Any, error: BaseException, trace: Any) -> None:
        look_at(error)
        previous(kind, error, trace)

    sys.excepthook = hook
    _hook_exit()
    atexit.register(lambda: look_at(getattr(sys, "last_value", None)))
    importing.after_import("torch.multiprocessing.spawn", _hook_spawned)


def look_at(error: BaseException | None) -> None:
    """Write down what ``error`` came of and touches; never raises."""
    if error is None or id(error) in _seen or isinstance(error, (SystemExit, KeyboardInterrupt)):
        return
    _seen.append(id(error))
    try:
        note_limit(error)
        found = touched.touched_by(error)
        journal.write("uncaught", type=type(error).__qualname__, touches=found)
    except Exception as problem:
        journal.problem("uncaught", problem)


def _hook_exit() -> None:
    """A script that gives up by itself raises SystemExit, which no hook hears of."""
    leave = sys.exit

    @functools.wraps(leave)
    def exit(status: Any = None, /) -> NoReturn:  # noqa: A001 - stands in for sys.exit
        if status not in (None, 0):
            try:
                found = touched.touched_by(sys.exc_info()[1], ends_at=sys._getframe(1))
                journal.write("uncaught", type="SystemExit", touches=found)
            except Exception as problem:
                journal.problem("uncaught", problem)
        leave(status)

    sys.exit = exit


def _hook_spawned(module: Any) -> None:
    """Processes that ``torch.multiprocessing.spawn`` starts hand their exception over as text (2.13, ``_wrap``)."""
    wrap = module._wrap

    @functools.wraps(wrap)
    def watched(fn: Any, *arguments: Any, **keywords: Any) -> Any:
        return wrap(functools.partial(_watched_call, fn), *arguments, **keywords)

    module._wrap = watched


def _watched_call(fn: Any, *arguments: Any) -> Any:
    try:
        return fn(*arguments)
    except Exception as error:
        look_at(error)
        raise


def note_limit(error: BaseException) -> None:
    """Write the limit that caused ``error`` into the journal, if one did and it is not there yet."""
    for one in touched.chain(error):
        if isinstance(one, SimulationLimit):
            return
        text = str(one)
        if PREFIX in text:
            message = text.split(PREFIX, 1)[1].splitlines()[0]
            note("missing-kernel", _operator(message), message, f"模拟设备的限制：{message}")
            return
        if isinstance(one, ImportError):
            package = packages.named_in(getattr(one, "name", None), text)
            if package is not None:
                packages.note_missing(package)
                return


def _operator(message: str) -> str:
    words = [word.strip("`'\".,:;") for word in message.split()]
    return next((word for word in words if "::" in word), message[:80])
