"""What a known failure looks like, and what it means: one row of the data beside this module."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Final, Literal

from ranksafe.localization import Translated, both
from ranksafe.runs.explain.evidence import Evidence
from ranksafe.runs.explain.locate import place_in_function
from ranksafe.runs.model import Failure, Frame

Confidence = Literal["certain", "likely", "guess"]
_QUOTED: Final = 160
_NOTHING: Final = Translated("", "")


@dataclass(frozen=True, slots=True)
class Example:
    """What a run or a log said that the signature explains, or does not."""

    text: str = ""
    frame: str = ""
    """``path:function``, where the signature needs one."""
    own_line: str = ""
    """``function: source`` of the user's own frame, where the signature needs one."""
    log: str = ""
    """A whole log, where the message alone is not enough."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a failure besides its message."""

    frames: Sequence[Frame] = ()
    user_frame: Frame | None = None
    """The innermost of the user's own."""
    around: Sequence[Frame] = ()
    """Frames of the exceptions that it came of or became, too."""
    evidence: Evidence | None = None
    """None: nothing is known of the rest of the run."""
    facts: str = ""
    """What follows from several lines of it, a line each."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What fulfils a condition: as it is quoted, and the named parts of it."""

    text: str
    groups: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Conditions:
    """What is looked for besides the message."""

    frames: re.Pattern[str] | None = None
    """Searched in the call chain, a line ``path:function`` for each frame, outermost first."""
    own_line: re.Pattern[str] | None = None
    """Searched in the innermost user frame, written ``function: source``."""
    printed: re.Pattern[str] | None = None
    """Searched in what the launcher and the ranks wrote."""
    facts: re.Pattern[str] | None = None

    def __bool__(self) -> bool:
        return any((self.frames, self.own_line, self.printed, self.facts))

    def shown(self, known: Known, frames: Sequence[Frame]) -> Iterator[Shown | None]:
        """For each condition what fulfils it: the innermost place in ``frames``, the first line."""
        if self.frames is not None:
            chain = "\n".join(f"{each.filename}:{each.function}" for each in frames)
            ends = [found.end() for found in self.frames.finditer(chain.replace("\\", "/"))]
            at = frames[chain.count("\n", 0, ends[-1])] if ends else None
            yield None if at is None else Shown(place_in_function(at))
        if self.own_line is not None:
            own = known.user_frame
            line = "" if own is None else f"{own.function}: {own.source}"
            yield Shown(line) if self.own_line.search(line) else None
        everything = known.evidence.everything if known.evidence is not None else str
        for pattern, text_of in ((self.printed, everything), (self.facts, lambda: known.facts)):
            if pattern is not None:
                text = text_of()
                found = pattern.search(text)
                yield None if found is None else Shown(_line_at(text, found), found.groupdict())


@dataclass(frozen=True, slots=True)
class Signature:
    """A failure known by its text, and where needed by what else is known of it."""

    kind: str
    """Of a note, an expression of the kinds that it is about."""
    pattern: re.Pattern[str]
    """Searched in "Type: message" and in launcher output; named groups fill the explanation's placeholders."""
    explanation: Translated
    """With ``{group}`` placeholders; ``[[…]]`` around what is left out where its group took no part in the match."""
    needs: Conditions = Conditions()
    """All must be found; named groups fill placeholders, too."""
    contradicted_by: Conditions = Conditions()
    """None may be found."""
    confidence: Confidence | None = None
    """Where it is given, the explanation quotes what the signature needs, and says how sure it is."""
    action: Translated = _NOTHING
    """What to do, said last; empty: the explanation says it."""
    source: str | None = None
    """Where the message and the behaviour are from, with versions; None: not written down yet."""
    code: str | None = None
    """The rule this failure proves."""
    candidates: tuple[str, ...] = ()
    """Rules that predict this failure where its text alone cannot tell which: the source decides."""
    secondary: bool = False
    """Says only that another rank is gone: never the cause while something else is known."""
    raised_only: bool = False
    """Counts in exceptions only: as a line of a log the words are too common."""
    matters_anyway: bool = False
    """Worth saying even where the run went on."""
    instead: bool = False
    """Of a note: says better what the failure's own explanation says."""
    elaborate: str = ""
    """What makes the explanation, where numbers have to be compared; `explanation` is the least that can be said."""
    plain: bool = False
    """An ordinary error, which one GPU would show too, unless only some ranks met it."""
    example: Example | None = None
    """None: not written down yet."""
    counterexample: Example | None = None
    """The same message, which it must not explain; where it needs more than the message."""

    def is_about(self, failure: Failure) -> bool:
        """Of a note: whether it is about failures of this kind, with such a message."""
        return bool(re.fullmatch(self.kind, failure.kind) and self.pattern.search(failure.message))

    def told(self, text: str, known: Known) -> Translated | None:
        """The explanation of a message; None where it is another failure's, or what is needed is not there."""
        found = self.pattern.search(text)
        if found is None:
            return None
        if any(self.contradicted_by.shown(known, known.around or known.frames)):
            return None
        shown: list[Shown] = []
        for each in self.needs.shown(known, known.frames):
            if each is None:
                return None
            shown.append(each)
        groups = found.groupdict()
        for each in shown:
            groups |= each.groups
        return self.explained(groups, [each.text for each in shown])

    def explained(self, groups: Mapping[str, str | None], shown: Sequence[str] = ()) -> Translated:
        """The explanation with the groups in it; a part in ``[[…]]`` is left out where its groups are.

        ``shown``: what it rests on besides the message.
        """
        values = {name: value for name, value in groups.items() if value}
        meaning = Translated(
            _filled(self.explanation.en, values), _filled(self.explanation.zh_cn, values)
        )
        if self.confidence is not None:
            because = _BECAUSE.filled(shown="; ".join(shown))
            meaning = both(_SURE[self.confidence].filled(meaning=meaning), because)
        return both(meaning, self.action) if self.action.en else meaning


@cache
def signatures_about(subject: str) -> tuple[Signature, ...]:
    """One file of the data, those tried first in front; read when the first failure asks."""
    text = files(__package__).joinpath(f"{subject}.json").read_text("utf-8")
    return tuple(map(_signature, json.loads(text)["signatures"]))


def sentences(subject: str, facts: Iterable[str]) -> list[Translated]:
    """What the rows of a file say of facts, in the order of the rows."""
    return [told for _, told in rows_that_hold(subject, Known(facts="\n".join(facts)))]


def rows_that_hold(
    subject: str, known: Known, text: str = ""
) -> Iterator[tuple[Signature, Translated]]:
    """The rows of a file whose conditions hold, and what they say of a message."""
    for row in signatures_about(subject):
        told = row.told(text, known)
        if told is not None:
            yield row, told


def _signature(value: dict[str, Any]) -> Signature:
    return Signature(
        kind=value["kind"],
        pattern=re.compile(value.get("message", ""), re.MULTILINE),
        explanation=Translated(**value["meaning"]),
        needs=_conditions(value.get("needs", {})),
        contradicted_by=_conditions(value.get("contradicted_by", {})),
        confidence=value.get("confidence"),
        action=Translated(**value["action"]) if "action" in value else _NOTHING,
        source=value.get("source"),
        code=value.get("code"),
        candidates=tuple(value.get("candidates", ())),
        elaborate=value.get("elaborate", ""),
        example=_example(value.get("example")),
        counterexample=_example(value.get("counterexample")),
        **dict.fromkeys(value.get("is", ()), True),
    )


def _conditions(value: dict[str, str]) -> Conditions:
    return Conditions(**{name: re.compile(text, re.MULTILINE) for name, text in value.items()})


def _example(value: dict[str, Any] | None) -> Example | None:
    if value is None:
        return None
    return Example(**{**value, "log": "\n".join(value.get("log", ()))})


def _line_at(text: str, found: re.Match[str]) -> str:
    begin = text.rfind("\n", 0, found.start()) + 1
    return text[begin:].split("\n", 1)[0].strip()[:_QUOTED]


def _filled(text: str, values: Mapping[str, str]) -> str:
    def part(found: re.Match[str]) -> str:
        names = _NAMES.findall(found["text"])
        return found["text"] if all(name in values for name in names) else ""

    return _OPTIONAL.sub(part, text).format(**values)


_BECAUSE = Translated(en="The log shows it: {shown}.", zh_cn="日志依据：{shown}。")
_SURE: Final = {
    "certain": Translated(en="{meaning}", zh_cn="{meaning}"),
    "likely": Translated(en="Probably: {meaning}", zh_cn="很可能：{meaning}"),
    "guess": Translated(en="Possibly: {meaning}", zh_cn="可能：{meaning}"),
}
_OPTIONAL = re.compile(r"\[\[(?P<text>(?:(?!\[\[).)*?)\]\]")
_NAMES = re.compile(r"(?<!\{)\{(\w+)\}")
