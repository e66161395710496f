"""How a program ended on its ranks, and whether that is what its header claims."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from typing import Any

from tests.rank_bench.header import Program, Shows

TIMED_OUT = r"(?i)timed out|timeout after|socket timeout|failed to pass monitoredbarrier"
"""gloo's ``Timed out waiting 4000ms for recv operation to complete``, the store's ``wait timeout after 4000ms``."""
PEER_LEFT = r"Connection (closed|reset) by peer|Broken pipe|Connection was likely closed"
"""What gloo says at once where NCCL would wait: the rank that is waited for has finished and closed its sockets."""
MET_ANOTHER = r"op\.preamble\.length <= op\.nbytes"
"""What gloo aborts with where the message of another collective arrives first; NCCL would wait. Which of the two comes,
a timeout or this, is up to who runs first."""
_MISMATCH = re.compile(
    r"Detected mismatch between collectives on ranks?.*|.*running collective: CollectiveFingerPrint.*"
    r"|.*Ranks? .*failed to pass monitoredBarrier.*"
)
_TORN_DOWN = "terminate called without an active exception"


@dataclass(frozen=True, slots=True)
class Rank:
    """How one rank ended: ``exit`` is None if it was ended by the harness."""

    exit: int | None
    out: str
    err: str


@dataclass(slots=True)
class Execution:
    """What running a program showed."""

    program: Program
    ranks: list[Rank]
    ended_by: str | None
    """``waiting``: it did nothing any more; ``limit``; ``enough seen``: ended once the claim was seen to hold."""
    seconds: float
    start: str
    holds: bool = field(init=False)
    seen: str = field(init=False)
    """In a few words."""
    forked: str = ""
    """What forked ranks had shown where fresh ones had to confirm the claim."""
    explanation: list[str] = field(default_factory=list)
    """From a second run with TORCH_DISTRIBUTED_DEBUG=DETAIL: the lines about a mismatch."""

    def __post_init__(self) -> None:
        self.seen = _seen(self)
        self.holds = _holds(self.program.shows, self)

    @property
    def aborted_while_leaving(self) -> bool:
        """Whether torch's own teardown aborted a rank that had no exception: a thread of gloo that drops the last
        reference to a tensor after the interpreter began to finalise (CPython 3.11, torch 2.13.0, rarely)."""
        return any(
            rank.exit not in (0, None) and _TORN_DOWN in rank.err and "Traceback" not in rank.err
            for rank in self.ranks
        )

    @property
    def line_seen(self) -> bool:
        """Whether the line of the expected finding stands in a rank's traceback or stacks."""
        if self.program.file is None:
            return False
        place = re.compile(
            rf'File "[^"]*{re.escape(self.program.file.name)}", line {self.program.row}\b'
        )
        return any(place.search(rank.err) for rank in self.ranks)

    def as_json(self) -> dict[str, Any]:
        return {
            "holds": self.holds,
            "seen": self.seen,
            "line_seen": self.line_seen,
            "exits": [rank.exit for rank in self.ranks],
            "seconds": self.seconds,
            "start": self.start,
            "forked": self.forked,
            "explanation": self.explanation,
        }


def _holds(shows: Shows, execution: Execution) -> bool:
    ranks = execution.ranks
    ended_well = all(rank.exit == 0 for rank in ranks)
    if shows.kind == "fine":
        return ended_well
    if shows.kind == "hang":
        return execution.seen.startswith("hang")
    if shows.kind == "error":
        return any(re.search(shows.pattern, rank.err, re.MULTILINE) for rank in ranks)
    return ended_well and any(re.search(shows.pattern, rank.out, re.MULTILINE) for rank in ranks)


def _seen(execution: Execution) -> str:
    ranks = execution.ranks
    failed = [rank for rank in ranks if rank.exit not in (0, None)]
    if any(re.search(TIMED_OUT, rank.err) for rank in failed):
        return "hang (timed out)"
    if execution.ended_by == "waiting":
        return "hang (still waiting)"
    if any(re.search(MET_ANOTHER, rank.err) for rank in failed):
        return "hang (met another collective)"
    somebody_finished = any(rank.exit == 0 for rank in ranks)
    if somebody_finished and any(re.search(PEER_LEFT, rank.err) for rank in failed):
        return "hang (for a rank that has finished)"
    if failed:
        return f"error: {_last_line(failed[0].err)}"
    return "still running" if execution.ended_by else "exit status 0"


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if re.search(r"\w+(Error|Exception|Exit)\b", line)]
    return (lines or text.splitlines() or [""])[-1].strip()[:200]


def mismatches(execution: Execution) -> list[str]:
    """The lines about a mismatch; the last words of the ranks where there are none."""
    texts = [rank.err for rank in execution.ranks]
    lines = [found[0].strip() for text in texts for found in _MISMATCH.finditer(text)]
    return list(dict.fromkeys(lines or [_last_line(text) for text in texts if text.strip()]))


def print_execution(execution: Execution, *, output: bool = False) -> None:
    """One line, and more where the claim does not hold."""
    program = execution.program
    shows = f"{program.shows.kind} {program.shows.pattern}".strip()
    word = "holds" if execution.holds else "WRONG"
    claim = f"{program.name}: {shows}"
    print(f"{word}  {claim} | {execution.seen} ({execution.seconds:.1f} s, {execution.start})")
    if execution.forked:
        print(f"       forked ranks had shown: {execution.forked}")
    for line in execution.explanation:
        print(f"       {line}")
    if output or not execution.holds:
        for number, rank in enumerate(execution.ranks):
            print(f"       rank {number}: exit {rank.exit}")
            for line in [*rank.out.splitlines()[-20:], *rank.err.splitlines()[-20:]]:
                print(f"       | {line}")
    sys.stdout.flush()
