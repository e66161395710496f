"""What the simulation cannot do is said in words of its own, and never as an error of the user's program."""

from __future__ import annotations

from typing import NoReturn

from . import journal

PREFIX = "ranksafe simulation limit: "
"""How the message of every limit begins, also of those that the C++ parts raise."""


class SimulationLimit(NotImplementedError):
    """The simulated devices cannot do this; nothing is known of what real ones would have done."""


def note(kind: str, what: str, english: str, chinese: str) -> None:
    """Write a limit into the journal."""
    journal.write("limit", kind=kind, what=what, message={"en": english, "zh_cn": chinese})


def refuse(kind: str, what: str, english: str, chinese: str) -> NoReturn:
    """Write a limit into the journal and raise it."""
    note(kind, what, english, chinese)
    raise SimulationLimit(PREFIX + english)


def refuse_function(name: str) -> NoReturn:
    """Raise the limit for a function of the CUDA build that has no stand-in. ``name``: as torch calls it."""
    refuse(
        "missing-function",
        name,
        f"`{name}` is not simulated",
        f"模拟设备不支持 `{name}`",
    )
