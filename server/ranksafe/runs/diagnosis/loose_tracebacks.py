"""Tracebacks that no mark gives to a rank: of ranks before they knew their number, or of the only one."""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping

from ranksafe.runs.diagnosis.common_failure import (
    follows,
    is_launchers,
    launchers_end,
    was_launched,
)
from ranksafe.runs.diagnosis.survived import final, not_gone_on
from ranksafe.runs.explain.evidence import LOOSE, Raised, RankEvidence
from ranksafe.runs.explain.interleaved import interleaved_traceback
from ranksafe.runs.explain.launcher_report import UNKNOWN_RANK, LauncherReport
from ranksafe.runs.explain.printed import printed_failure
from ranksafe.runs.explain.traceback_text import Located, locate_tracebacks, loose_lines
from ranksafe.runs.explain.unfold import announced_rank, spawned_rank
from ranksafe.runs.log_text.prefixes import RANK_IN_TEXT
from ranksafe.runs.log_text.reader import SaidBy

NO_RANK = UNKNOWN_RANK
"""Of a message that names no rank."""
_NAMED_BY_CANN = re.compile(r"\(PID:\d+, Device:-?\d+, RankID:(?P<rank>\d+)\)")
"""How torch_npu marks its errors; a process that has no rank is -1."""
_QUOTES = re.compile(r"^\s*traceback\s*: Traceback \(most recent call last\)")
_BLOCK = re.compile(r"^\s*rank\s*: (?P<rank>\d+) \(local_rank: \d+\)")
_BLOCK_LINES = 6
_IN_RECORD = re.compile(r"\brank[ _]?[=:#]? ?(?P<rank>\d+)\b", re.IGNORECASE)
_EXITED = "ProcessExitedException"
_INTERRUPTED = "KeyboardInterrupt"
_TELLING_WORDS = 20
"""Characters of a message that are enough to know it again."""


def add_loose(
    ranks: dict[int, RankEvidence],
    said: SaidBy,
    report: LauncherReport,
    launcher: str,
    *,
    ended: bool,
) -> None:
    """Tracebacks of nobody: ranks before they knew their number, or the only rank.

    Of those that end the log the first that is no mere consequence counts. ``launcher``: the lines of nobody.
    """
    exits = report.exits.values()
    known = [rank.raised for rank in ranks.values() if rank.raised is not None]
    found = [
        each
        for lines in said.others
        for each in not_gone_on(final(lines.once(locate_tracebacks), said, ended), lines, exits)
        if each.raised not in known
    ]
    over = max(map(launchers_end, said.others), default=0)
    only_after = not found or 0 < over < min(each.first for each in found)
    if ended and only_after and not known and _add_interleaved(ranks, said):
        return
    if not found:
        return
    interrupted = [each.first for each in found if each.raised.type == _INTERRUPTED]
    if interrupted:
        # What fails after it is how the processes go.
        found = [
            each
            for each in found
            if each.first < min(interrupted) or each.raised.type == _INTERRUPTED
        ]
    found.sort(key=lambda each: (follows(each.raised), each.raised.where is not None, each.first))
    chosen = found[0]
    if chosen.raised.type == _EXITED:
        # The launcher's report has it.
        return
    if is_launchers(chosen.raised) and exits and _is_printed(said):
        # Another launcher's: these ranks were started, and say why they ended.
        return
    number = _rank_of(chosen, ranks, said, report, launcher)
    rank = ranks.setdefault(number, RankEvidence(number))
    if rank.raised is not None and follows(chosen.raised):
        return
    rank.raised, rank.raised_at = chosen.raised, LOOSE


def _rank_of(
    chosen: Located,
    ranks: Mapping[int, RankEvidence],
    said: SaidBy,
    report: LauncherReport,
    launcher: str,
) -> int:
    """Whose traceback it is: what it says itself, then what stands around it, then what the launcher saw."""
    raised = chosen.raised
    itself = _first(
        _reported_rank(said, chosen.first),
        spawned_rank(raised),
        announced_rank(chosen.announced),
        _named_rank(raised.message),
    )
    if is_launchers(raised) or (itself is None and _starts_ranks(raised)):
        return NO_RANK
    logged = rank_in_record(chosen.announced) if chosen.logged else None
    told = _first(itself, _by_message(raised, ranks), logged)
    if told is not None:
        return told
    if report.exits and follows(raised) and raised.context is None:
        return NO_RANK
    if report.first is not None and _was_aborted(ranks.get(report.first), report):
        return NO_RANK
    several = bool(said.ranks) or was_launched(launcher) or _is_childs(raised)
    return (NO_RANK if several else 0) if report.first is None else report.first


def _is_printed(said: SaidBy) -> bool:
    """Whether a message that is known by itself stands outside of tracebacks."""
    for lines in said.others:
        printed = printed_failure(lines.once(loose_lines))
        if printed is not None and not printed.secondary:
            return True
    return False


def _first(*numbers: int | None) -> int | None:
    return next((number for number in numbers if number is not None), None)


def _add_interleaved(ranks: dict[int, RankEvidence], said: SaidBy) -> bool:
    """What several processes raised alike, where each wrote into the others' tracebacks; whether there is such."""
    for lines in said.others:
        raised = interleaved_traceback(lines.once(loose_lines))
        if raised is not None and not follows(raised):
            ranks[NO_RANK] = RankEvidence(NO_RANK, raised=raised, raised_at=LOOSE)
            return True
    return False


def _reported_rank(said: SaidBy, first: int) -> int | None:
    """The rank whose traceback a launcher quotes in its report (torch.distributed.elastic's ``record``)."""
    for lines in said.others:
        at = next((index for index, (number, _) in enumerate(lines) if number == first), None)
        if at is None or not _QUOTES.search(lines[at][1]):
            continue
        for _, text in reversed(lines[max(0, at - _BLOCK_LINES) : at]):
            if named := _BLOCK.search(text):
                return int(named["rank"])
    return None


def _was_aborted(first: RankEvidence | None, report: LauncherReport) -> bool:
    """Whether the rank that the launcher saw fail first has words of its own for the signal that ended it."""
    if first is None or first.raised is None or first.raised.type:
        return False
    return report.exits.get(first.rank) == -signal.SIGABRT


def rank_in_record(record: str) -> int | None:
    """The rank that a logger's record names."""
    named = _IN_RECORD.search(record)
    return int(named["rank"]) if named else None


def _is_childs(raised: Raised) -> bool:
    """Whether a process that the script started itself raised it, of which there may be several."""
    return raised.where is not None and raised.where.startswith("Process ")


def _named_rank(message: str) -> int | None:
    """The rank that the message itself says it is of."""
    named = RANK_IN_TEXT.match(message) or _NAMED_BY_CANN.search(message)
    return int(named["rank"]) if named else None


def _by_message(raised: Raised, ranks: Mapping[int, RankEvidence]) -> int | None:
    """The only rank whose printed message quotes the exception's."""
    said = raised.message.strip().split("\n", 1)[0]
    quoting = [
        number
        for number, rank in ranks.items()
        if rank.raised and not rank.raised.type and said in rank.raised.message
    ]
    return quoting[0] if len(said) >= _TELLING_WORDS and len(quoting) == 1 else None


def _starts_ranks(raised: Raised) -> bool:
    """Whether the process that starts the ranks itself raised it (torch.multiprocessing.spawn, notebook_launcher)."""
    return any(
        frame.filename.replace("\\", "/").endswith("torch/multiprocessing/spawn.py")
        and frame.function in ("spawn", "start_processes")
        for frame in raised.frames
    )
