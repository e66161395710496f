"""What the other ranks did while one waited: the lines they were at, which of them still ran, its last words."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from ranksafe.localization import Translated, both
from ranksafe.runs.explain.evidence import Evidence
from ranksafe.runs.explain.launcher_report import LauncherReport
from ranksafe.runs.explain.locate import innermost_user_frame
from ranksafe.runs.explain.signatures import match
from ranksafe.runs.explain.timeouts import compare_timeouts, missing_rank, named_missing
from ranksafe.runs.model import Failure, Frame

_TWO_PLACES = 2


def compared(failure: Failure, evidence: Evidence, report: LauncherReport) -> Failure:
    """A timeout next to those of other ranks, told of the rank that was missing where the others tell which.

    That rank's own line is not known: the one shown is where another waited for it.
    """
    named = named_missing(failure.message)
    if named:
        return replace(failure, rank=named[0] if len(named) == 1 else None)
    said, ranks = evidence.everything(), _ranks(evidence)
    aborted = {
        rank for rank, status in report.exits.items() if status == -signal.SIGABRT and rank >= 0
    }
    together = compare_timeouts(said, ranks, aborted)
    if together is None and (places := _places(failure, evidence)):
        return _at_different_lines(failure, places)
    together = together or with_the_silent(failure, evidence, report)
    if together is None:
        return failure
    missing = None if failure.frames else missing_rank(said, ranks, aborted)
    rank = failure.rank if missing is None else missing
    return replace(failure, rank=rank, explanation=together)


def with_places(failure: Failure, evidence: Evidence, _: LauncherReport) -> Failure:
    """A mismatch of two ranks with the lines at which the ranks that have one were when it broke their connection."""
    places = _places(failure, evidence)
    if not places:
        return failure
    listed = ", ".join(f"rank {number}: {_shown(frame)}" for number, frame in places.items())
    told = _DIFFERENT_LINES.filled(places=listed)
    return replace(failure, explanation=both(failure.explanation, told))


def _places(failure: Failure, evidence: Evidence) -> dict[int, Frame]:
    """Where each rank waited: until the timeout, or until it lost one that had."""
    places: dict[int, Frame] = {}
    for number, rank in sorted(evidence.ranks.items()):
        known = match(rank.raised.text) if rank.raised is not None else None
        frame = innermost_user_frame(rank.raised.frames) if rank.raised is not None else None
        waited = known is not None and known[0].kind in (failure.kind, "peer-lost")
        if waited and frame is not None:
            places[number] = frame
    return places if len({_shown(frame) for frame in places.values()}) > 1 else {}


def _at_different_lines(failure: Failure, places: Mapping[int, Frame]) -> Failure:
    """The timeout of ranks that waited at different lines; drawn on that of the one rank that none of the others is
    with, if these are several."""
    listed = ", ".join(f"rank {number}: {_shown(frame)}" for number, frame in places.items())
    told = _ELSEWHERE.filled(places=listed)
    shown = [_shown(frame) for frame in places.values()]
    alone = [rank for rank, frame in places.items() if shown.count(_shown(frame)) == 1]
    if len(alone) != 1 or len(set(shown)) != _TWO_PLACES or len(shown) <= _TWO_PLACES:
        return replace(failure, explanation=told)
    told = both(told, _ALONE.filled(rank=alone[0]))
    return replace(failure, rank=alone[0], explanation=told).at(places[alone[0]])


def _shown(frame: Frame) -> str:
    return f"{Path(frame.filename).name}:{frame.line}"


def with_the_silent(
    failure: Failure, evidence: Evidence, report: LauncherReport
) -> Translated | None:
    """The only rank that was still running when the launcher stopped it: the one that did not come."""
    spoke = {number for number, rank in evidence.ranks.items() if rank.raised is not None}
    stopped = [rank for rank, status in report.exits.items() if status == -signal.SIGTERM]
    silent = [rank for rank in stopped or _unreported(report) if rank not in spoke]
    if len(silent) != 1 or failure.rank is None or failure.rank == silent[0]:
        return None
    told = both(failure.explanation, _STILL_RAN.filled(rank=silent[0]))
    return with_last_line(told, silent[0], evidence)


def with_last_line(told: Translated, rank: int | None, evidence: Evidence) -> Translated:
    """The sentence with what the rank had printed last, where that is known."""
    line = None if rank is None else evidence.last_lines.get(rank)
    return told if line is None else both(told, _PRINTED_LAST.filled(rank=rank, line=line))


def _unreported(report: LauncherReport) -> list[int]:
    """The rank of the only process that was stopped and is not in the report, where one number is missing there."""
    processes = report.stopped_pids - set(report.pids.values())
    missing = set(range(max(report.exits, default=0))) - set(report.exits)
    return list(missing) if len(processes) == len(missing) == 1 else []


def _ranks(evidence: Evidence) -> list[int]:
    return [number for number in evidence.ranks if number >= 0]


_ELSEWHERE = Translated(
    en="The ranks waited at different lines until the timeout ({places}): they were in different collectives, and none "
    "of these could end. One side skipped a collective or made one more: look for the condition under which not all "
    "ranks come to one of these lines (if rank == 0, a different number of batches, an early return). A longer timeout "
    "does not help.",
    zh_cn="各 rank 在不同的行等待直到超时（{places}）：它们处于不同的集合通信，任何一个都无法完成。其中一方跳过或"
    "多执行了一次集合通信：请查找使部分 rank 不会到达其中某一行的条件（if rank == 0、批次数不同、提前返回）。"
    "延长超时没有用。",
)
_DIFFERENT_LINES = Translated(
    en="The ranks were at different lines then ({places}), so they were in different collectives: look for what makes "
    "only some of them leave a loop or skip a call (a different number of batches, a condition).",
    zh_cn="当时各 rank 位于不同的行（{places}），因此处于不同的集合通信：请查找使部分 rank 提前离开循环或跳过调用的"
    "原因（批次数不同、条件分支）。",
)
_ALONE = Translated(
    en="Only rank {rank} was at its line; the others agree.",
    zh_cn="只有 rank {rank} 位于该行；其他 rank 位置一致。",
)
_PRINTED_LAST = Translated(
    en='The last that rank {rank} had printed was "{line}".',
    zh_cn="rank {rank} 最后打印的是“{line}”。",
)
_STILL_RAN = Translated(
    en="Rank {rank} had not failed when the launcher stopped it: it was at work on something else, or waited in "
    "another call. Look at what it does at this point; ranksafe run shows the line of each rank.",
    zh_cn="启动器停止 rank {rank} 时它并未失败：它在做别的工作，或在另一个调用中等待。请查看它此时在做什么；"
    "ranksafe run 会显示每个 rank 所在的行。",
)
