"""Collective timeouts of several ranks compared: who was somewhere else."""

from __future__ import annotations

import re

from ranksafe.localization import Translated

_WORK = re.compile(
    r"\[Rank (?P<rank>\d+)\] Watchdog caught collective operation timeout: "
    r"WorkNCCL\(SeqNum=(?P<number>\d+), OpType=(?P<op>\w+)"
)


def compare_timeouts(text: str) -> Translated | None:
    """What the ranks' NCCL watchdogs tell together; None with fewer than two ranks."""
    waits = {
        int(match["rank"]): (int(match["number"]), match["op"]) for match in _WORK.finditer(text)
    }
    if len(waits) < 2:
        return None
    listed = ", ".join(
        f"rank {rank}: {op} #{number}" for rank, (number, op) in sorted(waits.items())
    )
    if len(set(waits.values())) == 1:
        return _SAME.filled(ranks=listed)
    if len({number for number, _ in waits.values()}) == 1:
        return _DIFFERENT_OPERATION.filled(ranks=listed)
    behind = min(waits, key=lambda rank: waits[rank][0])
    return _BEHIND.filled(ranks=listed, behind=behind)


_SAME = Translated(
    en="All ranks that spoke waited in the same collective ({ranks}): one that is not listed is missing or slow.",
    zh_cn="已报告的 rank 都在等待同一个集合通信（{ranks}）：未列出的某个 rank 缺席或过慢。",
)
_DIFFERENT_OPERATION = Translated(
    en="The ranks took different branches: at the same number they ran different collectives ({ranks}).",
    zh_cn="各 rank 走了不同的分支：同一序号上执行了不同的集合通信（{ranks}）。",
)
_BEHIND = Translated(
    en="The ranks are not at the same collective ({ranks}): rank {behind} is behind, look at what it does instead.",
    zh_cn="各 rank 不在同一个集合通信上（{ranks}）：rank {behind} 落后，请查看它在做什么。",
)
