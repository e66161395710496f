"""What a known failure looks like, and what it means. The tables beside this module are data."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ranksafe.localization import Translated


@dataclass(frozen=True, slots=True)
class Signature:
    """A failure known by its text, and where needed by the frames it comes through."""

    kind: str
    pattern: re.Pattern[str]
    """Searched in "Type: message" and in launcher output; named groups fill the explanation's placeholders."""
    explanation: Translated
    code: str | None = None
    """The rule this failure proves."""
    candidates: tuple[str, ...] = ()
    """Rules that predict this failure where its text alone cannot tell which: the source decides."""
    frames: re.Pattern[str] | None = None
    """Must be found in one of the frames, written ``path:function``."""
    user_frame: re.Pattern[str] | None = None
    """Must be found in the innermost user frame, written ``function: source``."""
    secondary: bool = False
    """Says only that another rank is gone: never the cause while something else is known."""
    defaults: dict[str, str] = field(default_factory=dict)
    """For named groups that are optional in the pattern."""


def signature(
    kind: str,
    pattern: str,
    *,
    en: str,
    zh: str,
    code: str | None = None,
    candidates: tuple[str, ...] = (),
    frames: str | None = None,
    user_frame: str | None = None,
    secondary: bool = False,
    **defaults: str,
) -> Signature:
    """A `Signature` from plain strings, so that a table reads as one."""
    return Signature(
        kind=kind,
        pattern=re.compile(pattern, re.MULTILINE),
        explanation=Translated(en, zh),
        code=code,
        candidates=candidates,
        frames=re.compile(frames) if frames else None,
        user_frame=re.compile(user_frame) if user_frame else None,
        secondary=secondary,
        defaults=defaults,
    )
