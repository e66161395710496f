"""Collective timeouts: what one rank waited for, and which rank was somewhere else."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator

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


def compare_timeouts(
    text: str, ranks: Iterable[int] = (), aborted: Iterable[int] = ()
) -> Iterator[str]:
    """What the ranks' NCCL watchdogs tell together, as facts; none with fewer than two ranks.

    ``ranks``: all that are known to exist, so that one that said nothing is missed. ``aborted``: those that ended by
    SIGABRT, as the watchdog ends a rank.
    """
    waits = _waits(text)
    more = sorted(set(aborted) - waits.keys()) if waits else []
    if len(waits) + len(more) < 2:
        return
    listed = ", ".join(
        f"rank {rank}: {op} #{number}" for rank, (number, op) in sorted(waits.items())
    )
    # Of each rank's first timeout: how many elements it brought.
    works = reversed(list(_WORK.finditer(text)))
    sizes = {int(each["rank"]): int(each["sent"]) for each in works if each["sent"]}
    number, op = next(iter(waits.values()))
    if len(set(waits.values())) > 1:
        alike = len({number for number, _ in waits.values()}) == 1
        yield f"{'different collectives' if alike else f'rank {_behind(waits)} is behind'}: {listed}"
    elif len(set(sizes.values())) > 1:
        told = ", ".join(f"rank {rank}: {size}" for rank, size in sorted(sizes.items()))
        yield f"different sizes at {op} #{number}: {told}"
    else:
        silent = _listed(set(ranks) - waits.keys() - set(more))
        yield (
            f"same collective but for {silent}: {listed}"
            if silent
            else f"same collective: {listed}"
        )
        if more:
            yield f"aborted too: {_listed(more)}"


def _listed(ranks: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(ranks)))


def missing_rank(text: str, ranks: Iterable[int], aborted: Iterable[int] = ()) -> int | None:
    """The one rank that the others waited for, if the watchdogs tell; None where it is none or several."""
    waits = _waits(text)
    more = set(aborted) - waits.keys()
    if not waits or len(waits) + len(more) < 2:
        return None
    silent = set(ranks) - waits.keys() - more
    if len(set(waits.values())) == 1:
        return silent.pop() if len(silent) == 1 else None
    numbers = [number for number, _ in waits.values()]
    behind = _behind(waits)
    return behind if numbers.count(waits[behind][0]) == 1 and not silent else None


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


def _behind(waits: dict[int, tuple[int, str]]) -> int:
    return min(waits, key=lambda rank: waits[rank][0])
