"""An exception that ends the program is looked at once more: was it a limit of the simulation?

Limits that C++ raises, and imports of packages that cannot work here, are noted only where nothing caught them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from . import journal, packages
from .limits import PREFIX, SimulationLimit, note
from .settings import Settings


def install(settings: Settings) -> None:
    """Look before the hook that is there already."""
    previous = sys.excepthook

    def hook(kind: Any, error: BaseException, trace: Any) -> None:
        try:
            note_limit(error)
        except Exception as problem:
            journal.problem("uncaught", problem)
        previous(kind, error, trace)

    sys.excepthook = hook


def note_limit(error: BaseException) -> None:
    """Write the limit that caused ``error`` into the journal, if one did and it is not there yet."""
    for one in _chain(error):
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


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__
