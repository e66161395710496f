"""Collective timeouts: what one rank waited for, and which rank was somewhere else."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ranksafe.localization import Translated, both
from ranksafe.runs.explain.signatures.signature import Known, sentences

_WORK = re.compile(
    r"\[(?:PG [^\[\]]*)?Rank (?P<rank>\d+)\] (?:Watchdog c|C)aught collective operation timeout: "
    r"WorkNCCL\(SeqNum=(?P<number>\d+), OpType=(?P<op>\w+)(?:, NumelIn=(?P<sent>\d+))?"
)
_DETAILS = re.compile(
    r"WorkNCCL\(SeqNum=(?P<number>\d+), OpType=(?P<op>\w+)\b(?:, NumelIn=(?P<sent>\d+), NumelOut=(?P<got>\d+)\b)?"
    r"[^()]*?Timeout\(ms\)=(?P<limit>\d+)\)(?: ran for (?P<ran>\d+) milliseconds)?"
)
_DETECTED = re.compile(
    r"\[(?:PG [^\[\]]*)?Rank (?P<rank>\d+)\][^\n]{0,200}?detected by watchdog at work(?: sequence id)?: (?P<number>\d+)"
)
"""torch 2.2 to 2.13, ProcessGroupNCCL.cpp: a rank whose other line the log may not have."""
_NAMED = re.compile(r"Ranks? (?P<missing>\d+(?:, ?\d+)*) failed to pass monitoredBarrier")
_SHARDED = frozenset({"_REDUCE_SCATTER_BASE", "_ALLGATHER_BASE", "REDUCE_SCATTER", "ALLGATHER"})


def explain_timeout(text: str, _: Known, __: Translated) -> Translated:
    """What one rank's watchdog tells by itself."""
    return functools.reduce(both, sentences("timeouts", _facts(text)))


def _facts(text: str) -> Iterator[str]:
    found = _DETAILS.search(text)
    if found is None:
        yield "waited"
        return
    size = "" if found["sent"] is None else f" of {found['sent']}"
    seconds = round(int(found["ran"] or found["limit"]) / 1000)
    yield f"waited {seconds} s in {found['op']} #{found['number']}{size}"
    sent, got = int(found["sent"] or 0), int(found["got"] or 0)
    if found["op"] in _SHARDED and sent and got and sent != got:
        yield f"sharded over {round(max(sent, got) / min(sent, got))}"


@dataclass(frozen=True, slots=True)
class Timeouts:
    """What the ranks' NCCL watchdogs tell together."""

    facts: tuple[str, ...] = ()
    """Empty with fewer than two ranks."""
    missing: int | None = None
    """The one rank that the others waited for; None where it is none or several."""


def compare_timeouts(text: str, ranks: Iterable[int] = (), aborted: Iterable[int] = ()) -> Timeouts:
    """Compare what each rank's first timeout was in.

    ``ranks``: all that are known to exist, so that one that said nothing is missed. ``aborted``: those that ended by
    SIGABRT, as the watchdog ends a rank.
    """
    waits = _waits(text)
    more = set(aborted) - waits.keys()
    if not waits or len(waits) + len(more) < 2:
        return Timeouts()
    silent = sorted(set(ranks) - waits.keys() - more)
    listed = ", ".join(
        f"rank {rank}: {op} #{number}" for rank, (number, op) in sorted(waits.items())
    )
    if len(set(waits.values())) > 1:
        numbers = [number for number, _ in waits.values()]
        behind = min(waits, key=lambda rank: waits[rank][0])
        alone = numbers.count(waits[behind][0]) == 1 and not silent
        how = f"rank {behind} is behind" if len(set(numbers)) > 1 else "different collectives"
        return Timeouts((f"{how}: {listed}",), behind if alone else None)
    missing = silent[0] if len(silent) == 1 else None
    # Of each rank's first timeout: how many elements it brought.
    works = reversed(list(_WORK.finditer(text)))
    sizes = {int(each["rank"]): int(each["sent"]) for each in works if each["sent"]}
    if len(set(sizes.values())) > 1:
        number, op = next(iter(waits.values()))
        told = ", ".join(f"rank {rank}: {size}" for rank, size in sorted(sizes.items()))
        return Timeouts((f"different sizes at {op} #{number}: {told}",), missing)
    but = f" but for {_listed(silent)}" if silent else ""
    too = [f"aborted too: {_listed(more)}"] if more else []
    return Timeouts((f"same collective{but}: {listed}", *too), missing)


def _listed(ranks: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(ranks)))


def named_missing(text: str) -> list[int]:
    """The ranks that a monitored barrier says did not come."""
    found = _NAMED.search(text)
    return [int(number) for number in found["missing"].split(",")] if found else []


def _waits(text: str) -> dict[int, tuple[int, str]]:
    """What each rank's first timeout was in: the number of the collective and its kind."""
    waits: dict[int, tuple[int, str]] = {}
    for match in _WORK.finditer(text):
        waits.setdefault(int(match["rank"]), (int(match["number"]), match["op"]))
    known = dict(waits.values())
    for match in _DETECTED.finditer(text):
        number = int(match["number"])
        if number in known:
            waits.setdefault(int(match["rank"]), (number, known[number]))
    return waits
