"""One meaning of a failure, with what a log must show for it and what speaks against it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from ranksafe.localization import Translated

Confidence = Literal["certain", "likely", "guess"]


@dataclass(frozen=True, slots=True)
class Conditions:
    """What is looked for in a log besides the failure's message."""

    frames: re.Pattern[str] | None
    """Searched in each frame of the failure, written ``path:function`` with forward slashes."""
    printed: re.Pattern[str] | None
    """Searched in each line that the launcher or a rank wrote."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A meaning as data."""

    name: str
    source: str
    """Where the message and the behaviour are from, with versions."""
    message: re.Pattern[str]
    """Searched in the failure's message."""
    needs: Conditions
    """All must be found."""
    contradicted_by: Conditions
    """None may be found."""
    confidence: Confidence
    meaning: Translated
    """One sentence."""
    action: Translated
    """One sentence."""
    example: str
    """A log that the entry explains."""
    counterexample: str
    """A log with the same message that it must not explain."""


@cache
def entries() -> tuple[Entry, ...]:
    """All entries, those tried first in front; read when the first failure asks."""
    text = files(__package__).joinpath("entries.json").read_text("utf-8")
    return tuple(_entry(name, value) for name, value in json.loads(text).items())


def _entry(name: str, value: dict[str, Any]) -> Entry:
    return Entry(
        name=name,
        source=value["source"],
        message=re.compile(value["message"]),
        needs=_conditions(value["needs"]),
        contradicted_by=_conditions(value.get("contradicted_by", {})),
        confidence=value["confidence"],
        meaning=Translated(**value["meaning"]),
        action=Translated(**value["action"]),
        example="\n".join(value["example"]),
        counterexample="\n".join(value["counterexample"]),
    )


def _conditions(value: dict[str, str]) -> Conditions:
    return Conditions(_pattern(value.get("frames")), _pattern(value.get("printed")))


def _pattern(text: str | None) -> re.Pattern[str] | None:
    return None if text is None else re.compile(text)
