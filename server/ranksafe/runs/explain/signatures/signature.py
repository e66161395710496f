"""What a known failure looks like, and what it means: one row of the data beside this module."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Final

from ranksafe.localization import Translated
from ranksafe.runs.explain.signatures.gpu_memory import explain_gpu_memory
from ranksafe.runs.explain.signatures.unused_parameters import explain_unused
from ranksafe.runs.explain.timeouts import explain_timeout


@dataclass(frozen=True, slots=True)
class Example:
    """What a run or a log said that the signature explains."""

    text: str
    frame: str = ""
    """``path:function``, where the signature needs one."""
    own_line: str = ""
    """``function: source`` of the user's own frame, where the signature needs one."""


@dataclass(frozen=True, slots=True)
class Signature:
    """A failure known by its text, and where needed by the frames it comes through."""

    kind: str
    pattern: re.Pattern[str]
    """Searched in "Type: message" and in launcher output; named groups fill the explanation's placeholders."""
    explanation: Translated
    """With ``{group}`` placeholders; ``[[…]]`` around what is left out where its group took no part in the match."""
    source: str | None = None
    """Where the message and the behaviour are from, with versions; None: not written down yet."""
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
    raised_only: bool = False
    """Counts in exceptions only: as a line of a log the words are too common."""
    matters_anyway: bool = False
    """Worth saying even where the run went on."""
    elaborate: Callable[[str], Translated] | None = None
    """Makes the explanation from the whole message, where numbers have to be compared; `explanation` is the least
    that can be said."""
    plain: bool = False
    """An ordinary error, which one GPU would show too, unless only some ranks met it."""
    defaults: dict[str, str] = field(default_factory=dict)
    """For named groups that are optional in the pattern."""
    example: Example | None = None
    """None: not written down yet."""

    def explained(self, groups: Mapping[str, str | None]) -> Translated:
        """The explanation with the pattern's groups in it; a part in ``[[…]]`` is left out where its groups are."""
        values = {**self.defaults, **{name: value for name, value in groups.items() if value}}
        return Translated(
            _filled(self.explanation.en, values), _filled(self.explanation.zh_cn, values)
        )


@cache
def signatures_about(subject: str) -> tuple[Signature, ...]:
    """One file of the data, those tried first in front; read when the first failure asks."""
    text = files(__package__).joinpath(f"{subject}.json").read_text("utf-8")
    return tuple(map(_signature, json.loads(text)["signatures"]))


def _signature(value: dict[str, Any]) -> Signature:
    return Signature(
        kind=value["kind"],
        pattern=re.compile(value["message"], re.MULTILINE),
        explanation=Translated(**value["meaning"]),
        source=value.get("source"),
        code=value.get("code"),
        candidates=tuple(value.get("candidates", ())),
        frames=_pattern(value.get("frames")),
        user_frame=_pattern(value.get("own_line")),
        elaborate=_ELABORATE[value["elaborate"]] if "elaborate" in value else None,
        defaults=value.get("defaults", {}),
        example=Example(**value["example"]) if "example" in value else None,
        **dict.fromkeys(value.get("is", ()), True),
    )


def _pattern(text: str | None) -> re.Pattern[str] | None:
    return None if text is None else re.compile(text)


def _filled(text: str, values: Mapping[str, str]) -> str:
    def part(found: re.Match[str]) -> str:
        names = _NAMES.findall(found["text"])
        return found["text"] if all(name in values for name in names) else ""

    return _OPTIONAL.sub(part, text).format(**values)


_ELABORATE: Final[Mapping[str, Callable[[str], Translated]]] = {
    "gpu memory": explain_gpu_memory,
    "timeout": explain_timeout,
    "unused parameters": explain_unused,
}
_OPTIONAL = re.compile(r"\[\[(?P<text>.*?)\]\]")
_NAMES = re.compile(r"(?<!\{)\{(\w+)\}")
