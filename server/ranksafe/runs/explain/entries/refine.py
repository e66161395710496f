"""An entry's meaning in place of what the message alone would say, with the lines of the log that support it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from ranksafe.localization import Translated, both
from ranksafe.runs.explain.entries.entry import Conditions, Entry, entries
from ranksafe.runs.explain.evidence import Evidence
from ranksafe.runs.explain.locate import place_in_function
from ranksafe.runs.explain.what_others_did import everything
from ranksafe.runs.model import Failure, Frame

_QUOTED: Final = 160


def refined(failure: Failure, evidence: Evidence) -> Failure | None:
    """The failure explained by the first entry whose conditions hold; None where there is none."""
    for entry in entries():
        if entry.message.search(failure.message) is None:
            continue
        shown = _support(entry, failure.frames, everything(evidence).split("\n"))
        if shown is not None:
            return replace(failure, explanation=_told(entry, shown))
    return None


def _support(entry: Entry, frames: Sequence[Frame], lines: Sequence[str]) -> list[str] | None:
    """What of the log supports the entry; None where something is missing or speaks against it."""
    against = _found(entry.contradicted_by, frames, lines)
    if any(each is not None for each in against):
        return None
    needed = list(_found(entry.needs, frames, lines))
    shown = [each for each in needed if each is not None]
    return shown if len(shown) == len(needed) else None


def _found(
    conditions: Conditions, frames: Sequence[Frame], lines: Sequence[str]
) -> Iterator[str | None]:
    """For each condition what fulfils it: the innermost frame, the first line."""
    if (of_frame := conditions.frames) is not None:
        places = (frame for frame in reversed(frames) if of_frame.search(_place(frame)))
        yield next(map(place_in_function, places), None)
    if (of_line := conditions.printed) is not None:
        yield next((line.strip()[:_QUOTED] for line in lines if of_line.search(line)), None)


def _place(frame: Frame) -> str:
    return f"{frame.filename}:{frame.function}".replace("\\", "/")


def _told(entry: Entry, shown: Sequence[str]) -> Translated:
    because = _BECAUSE.filled(shown="; ".join(shown))
    meaning = _SURE[entry.confidence].filled(meaning=entry.meaning)
    return both(both(meaning, because), entry.action)


_BECAUSE = Translated(en="The log shows it: {shown}.", zh_cn="日志依据：{shown}。")
_SURE: Final = {
    "certain": Translated(en="{meaning}", zh_cn="{meaning}"),
    "likely": Translated(en="Probably: {meaning}", zh_cn="很可能：{meaning}"),
    "guess": Translated(en="Possibly: {meaning}", zh_cn="可能：{meaning}"),
}
