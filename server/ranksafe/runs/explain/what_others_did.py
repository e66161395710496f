"""What the other ranks did while one waited: the lines they were at, which of them still ran, its last words."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from dataclasses import replace

from ranksafe.runs.explain.evidence import Evidence
from ranksafe.runs.explain.launcher_report import LauncherReport
from ranksafe.runs.explain.locate import innermost_user_frame, place
from ranksafe.runs.explain.signatures import match, with_notes
from ranksafe.runs.explain.timeouts import compare_timeouts, named_missing
from ranksafe.runs.model import Failure, Frame

_ROWS = "other_ranks"
_TWO_PLACES = 2


def compared(failure: Failure, evidence: Evidence, report: LauncherReport) -> Failure:
    """A timeout next to those of other ranks, told of the rank that was missing where the others tell which.

    That rank's own line is not known: the one shown is where another waited for it.
    """
    named = named_missing(failure.message)
    if named:
        return replace(failure, rank=named[0] if len(named) == 1 else None)
    said, ranks = evidence.everything(), [number for number in evidence.ranks if number >= 0]
    aborted = {
        rank for rank, status in report.exits.items() if status == -signal.SIGABRT and rank >= 0
    }
    told = compare_timeouts(said, ranks, aborted)
    if not told.facts and (places := _places(failure, evidence)):
        return _at_different_lines(failure, places)
    facts = told.facts or tuple(_of_the_silent(failure, evidence, report))
    rank = failure.rank if told.missing is None or failure.frames else told.missing
    return with_notes(replace(failure, rank=rank), _ROWS, facts)


def with_places(failure: Failure, evidence: Evidence) -> Failure:
    """A mismatch of two ranks with the lines at which the ranks that have one were when it broke their connection."""
    places = _places(failure, evidence)
    facts = [f"were at different lines: {_all_shown(places)}"] if places else []
    return with_notes(failure, _ROWS, facts)


def _places(failure: Failure, evidence: Evidence) -> dict[int, Frame]:
    """Where each rank waited: until the timeout, or until it lost one that had."""
    places: dict[int, Frame] = {}
    for number, rank in sorted(evidence.ranks.items()):
        known = match(rank.raised.text) if rank.raised is not None else None
        frame = innermost_user_frame(rank.raised.frames) if rank.raised is not None else None
        waited = known is not None and known[0].kind in (failure.kind, "peer-lost")
        if waited and frame is not None:
            places[number] = frame
    return places if len({place(frame) for frame in places.values()}) > 1 else {}


def _at_different_lines(failure: Failure, places: Mapping[int, Frame]) -> Failure:
    """The timeout of ranks that waited at different lines; drawn on that of the one rank that none of the others is
    with, if these are several."""
    facts = [f"waited at different lines: {_all_shown(places)}"]
    shown = [place(frame) for frame in places.values()]
    alone = [rank for rank, frame in places.items() if shown.count(place(frame)) == 1]
    if len(alone) == 1 and len(set(shown)) == _TWO_PLACES and len(shown) > _TWO_PLACES:
        facts.append(f"only rank {alone[0]} was there")
        failure = replace(failure, rank=alone[0]).at(places[alone[0]])
    return with_notes(failure, _ROWS, facts)


def _all_shown(places: Mapping[int, Frame]) -> str:
    return ", ".join(f"rank {number}: {place(frame)}" for number, frame in places.items())


def _of_the_silent(failure: Failure, evidence: Evidence, report: LauncherReport) -> Iterator[str]:
    """The only rank that was still running when the launcher stopped it: the one that did not come."""
    spoke = {number for number, rank in evidence.ranks.items() if rank.raised is not None}
    stopped = [rank for rank, status in report.exits.items() if status == -signal.SIGTERM]
    silent = [rank for rank in stopped if rank not in spoke]
    if len(silent) == 1 and failure.rank not in (None, silent[0]):
        line = evidence.last_lines.get(silent[0])
        yield f"rank {silent[0]} still ran" + (f" and printed last: {line}" if line else "")
