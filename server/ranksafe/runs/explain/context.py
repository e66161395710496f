"""What the rest of a run's evidence adds to one failure: better words elsewhere, facts of other ranks, a note."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from dataclasses import replace

from ranksafe.runs.explain.evidence import Evidence
from ranksafe.runs.explain.launcher_report import LauncherReport
from ranksafe.runs.explain.signatures import match, signatures_about, with_notes
from ranksafe.runs.explain.what_others_did import (
    compared,
    with_places,
)
from ranksafe.runs.model import Failure

OF_TWO_RANKS = frozenset({"collective-shape-mismatch", "collective-mismatch"})
"""Kinds of failure in which two ranks have a part."""
_CRASH = "fatal-signal"
_TIMEOUT = "collective-timeout"
_TERMINATED = re.compile(
    r"terminate called after throwing an instance of '[^']+'\s*\n\s*what\(\):\s+(?P<what>[^\n]+)"
)
"""libstdc++'s words for an exception that nothing caught."""


def in_context(failure: Failure, evidence: Evidence, report: LauncherReport) -> Failure:
    """The failure with what only the whole run can tell."""
    if failure.kind == _CRASH and failure.rank in _aborted(report):
        failure = _uncaught_in_cpp(failure, evidence)
    failure = _said_elsewhere(failure, evidence)
    failure = with_notes(failure, "notes", _facts(failure, evidence, report), evidence)
    if failure.kind == _TIMEOUT:
        return compared(failure, evidence, report)
    return with_places(failure, evidence) if failure.kind in OF_TWO_RANKS else failure


def _said_elsewhere(failure: Failure, evidence: Evidence) -> Failure:
    """What the kernel, a scheduler, NCCL or a worker had printed of it, as far as that is known.

    The rows name the kinds that only say that something ended, where its cause is printed, and the message that it is
    read as.
    """
    printed = evidence.everything()
    for row in signatures_about("elsewhere"):
        looked_for = row.needs.printed
        if looked_for is None or not row.is_about(failure):
            continue
        for found in looked_for.finditer(printed):
            known = match(row.explained(found.groupdict()).en, printed=True)
            if known is not None and not known[0].secondary:
                code = known[0].code or failure.code
                return replace(failure, kind=known[0].kind, code=code, explanation=known[1])
    return failure


def _uncaught_in_cpp(failure: Failure, evidence: Evidence) -> Failure:
    """The failure by the C++ exception that nothing caught, if all that were printed are known as the same."""
    whats = _whats(evidence)
    known = [(what, *found) for what in whats if (found := match(what)) is not None]
    if len(known) < len(whats) or len({row.kind for _, row, _ in known}) != 1:
        return failure
    what, row, meaning = known[0]
    if row.secondary:
        return failure
    return replace(failure, kind=row.kind, code=row.code, message=what, explanation=meaning)


def _aborted(report: LauncherReport) -> list[int]:
    return [rank for rank, status in report.exits.items() if status == -signal.SIGABRT]


def _whats(evidence: Evidence) -> list[str]:
    return [found["what"].strip() for found in _TERMINATED.finditer(evidence.everything())]


def _facts(failure: Failure, evidence: Evidence, report: LauncherReport) -> Iterator[str]:
    """What several lines or other ranks tell, a line each, for the notes to ask for."""
    rank = failure.rank
    if set(report.exits) <= {rank}:
        yield "no other rank ended"
    if rank is not None and report.local_ranks.get(rank, rank) != rank:
        yield f"rank {rank} is local rank {report.local_ranks[rank]}"
    aborted = _aborted(report)
    if rank in aborted:
        yield "aborted"
        if len(aborted) == 1:
            yield "aborted alone"
        whats = _whats(evidence)
        if len(set(whats)) == 1 and match(whats[0]) is None:
            yield f"aborted by an exception: {whats[0]}"
