"""What a known failure looks like, and what it means. The tables beside this module are data."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ranksafe.localization import Translated


@dataclass(frozen=True, slots=True)
class Signature:
    """A failure known by its text, and where needed by the frames it comes through."""

    kind: str
    pattern: re.Pattern[str]
    """Searched in "Type: message" and in launcher output; named groups fill the explanation's placeholders."""
    explanation: Translated
    """With ``{group}`` placeholders; ``[[…]]`` around what is left out where its group took no part in the match."""
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

    def explained(self, groups: Mapping[str, str | None]) -> Translated:
        """The explanation with the pattern's groups in it; a part in ``[[…]]`` is left out where its groups are."""
        values = {**self.defaults, **{name: value for name, value in groups.items() if value}}
        return Translated(
            _filled(self.explanation.en, values), _filled(self.explanation.zh_cn, values)
        )


def _filled(text: str, values: Mapping[str, str]) -> str:
    def part(found: re.Match[str]) -> str:
        names = _NAMES.findall(found["text"])
        return found["text"] if all(name in values for name in names) else ""

    return _OPTIONAL.sub(part, text).format(**values)


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
    raised_only: bool = False,
    matters_anyway: bool = False,
    elaborate: Callable[[str], Translated] | None = None,
    plain: bool = False,
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
        raised_only=raised_only,
        matters_anyway=matters_anyway,
        elaborate=elaborate,
        plain=plain,
        defaults=defaults,
    )


def ordinary(
    kind: str, pattern: str, *, en: str, zh: str, frames: str | None = None, plain: bool = True
) -> Signature:
    """A `Signature` of an exception that has nothing to do with ranks, unless ``plain`` is False."""
    return signature(kind, pattern, en=en, zh=zh, frames=frames, plain=plain, raised_only=True)


_OPTIONAL = re.compile(r"\[\[(?P<text>.*?)\]\]")
_NAMES = re.compile(r"(?<!\{)\{(\w+)\}")
