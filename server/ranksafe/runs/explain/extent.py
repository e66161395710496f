"""How many of a run's ranks met a failure: only what all of them met may be called independent of the ranks."""

from __future__ import annotations

from collections.abc import Sequence

from ranksafe.runs.explain.alike import said_alike
from ranksafe.runs.explain.deaths import Death, Ending
from ranksafe.runs.explain.evidence import LOOSE, Evidence, Raised
from ranksafe.runs.explain.failures import blamed
from ranksafe.runs.explain.launcher_report import LauncherReport
from ranksafe.runs.explain.locate import innermost_user_frame, place
from ranksafe.runs.explain.ordinary import (
    has_empty_size,
    is_in_parallel_code,
    is_ordinary,
    may_be_about_ranks,
)
from ranksafe.runs.explain.signatures import with_notes
from ranksafe.runs.model import Failure

_QUOTED = 200
_OF_NO_RANK = frozenset(
    {
        *("trainer-settings", "deepspeed-settings", "configuration", "version-requirement"),
        *("binary-mismatch", "missing-library"),
        *("server-unreachable", "no-network", "tracker-lost", "missing-credentials"),
    }
)
"""Kinds that no rank's data has a part in: that one rank met it first says nothing."""


def known_ranks(evidence: Evidence, report: LauncherReport) -> int:
    """How many ranks the run is known to have had; 0: it does not tell."""
    stopped = report.stopped_pids - set(report.pids.values())
    numbers = [number for number in (*evidence.ranks, *report.exits) if number >= 0]
    sizes = [rank.world_size for rank in evidence.ranks.values()]
    known = max(
        evidence.expected_ranks or 0,
        len(evidence.ranks),
        # The launcher stops ranks because another one failed.
        max(len(report.exits), 1) + len(stopped) if stopped else len(report.exits),
        *(number + 1 for number in numbers if number > 0),
        *(size for size in sizes if size > 1),
    )
    return 0 if known == 1 and evidence.open_ended else known


def with_extent(
    failure: Failure,
    root: Death,
    deaths: Sequence[Death],
    evidence: Evidence,
    report: LauncherReport,
) -> Failure:
    """The failure with what may be said of it because every rank met it, or because only one did."""
    raised = root.raised
    if raised is None or failure.kind != (root.known[0].kind if root.known else "exception"):
        return failure
    origin = blamed(raised)
    plain = root.known[0].plain if root.known else is_ordinary(origin)
    plain = plain and not has_empty_size(origin.message)
    alike = [
        death
        for death in deaths
        if death.ending is Ending.RAISED and death.raised and said_alike(death.raised, raised)
    ]
    met, ranks = max(len(alike), evidence.alike), known_ranks(evidence, report)
    if ranks > 1 and met >= ranks:
        if root.known is not None:
            return _without_ranks(failure, origin, known=True) if plain else failure
        of_ranks = may_be_about_ranks(failure.message, failure.frames)
        if of_ranks or is_in_parallel_code(failure.frames) or has_empty_size(origin.message):
            return failure
        return _said_also(failure, "every rank failed alike")
    others = [
        death
        for death in deaths
        if death.ending is Ending.RAISED and death.rank.rank >= 0 and death not in alike
    ]
    if others and root in alike and not evidence.going_on:
        return _said_also(failure, _another(others[0]))
    if 1 < len(alike) < ranks and met < ranks and not evidence.going_on:
        numbers = sorted(death.rank.rank for death in alike)
        if numbers[0] >= 0:
            listed = ", ".join(map(str, numbers))
            return _said_also(failure, f"ranks {listed} met it")
    alone = ranks > 1 and met == 1 and root.rank.raised_at != LOOSE
    # While the run goes on, the others may meet it yet.
    alone = alone and not evidence.going_on and bool(failure.frames)
    if plain and ranks == 1:
        return _without_ranks(failure, origin, known=root.known is not None)
    if not alone or (root.known is not None and (not plain or failure.kind in _OF_NO_RANK)):
        return failure
    return _said_also(failure, "only this rank met it")


def _another(death: Death) -> str:
    """What another rank raised by itself."""
    assert death.raised is not None
    origin = blamed(death.raised)
    text = origin.text.strip().split("\n", 1)[0][:_QUOTED]
    frame = innermost_user_frame(origin.frames)
    where = "" if frame is None else f" ({place(frame)})"
    return f"rank {death.rank.rank} raised: {text}{where}"


def _without_ranks(failure: Failure, origin: Raised, *, known: bool) -> Failure:
    if is_in_parallel_code(failure.frames):
        return failure
    return _said_also(
        failure, "no rank has a part in it" if known else f"an ordinary {origin.type}"
    )


def _said_also(failure: Failure, fact: str) -> Failure:
    return with_notes(failure, "extent", [fact])
