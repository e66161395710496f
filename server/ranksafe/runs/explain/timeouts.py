"""Collective timeouts: what one rank waited for, and which rank was somewhere else."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ranksafe.localization import Translated
from ranksafe.runs.explain.evidence import Evidence

_WORK = re.compile(
    r"\[(?:PG [^\[\]]*)?Rank (?P<rank>\d+)\] (?:Watchdog c|C)aught collective operation timeout: "
    r"WorkNCCL\(SeqNum=(?P<number>\d+), OpType=(?P<op>\w+)(?:, NumelIn=(?P<sent>\d+))?"
)
_DETAILS = re.compile(
    r"WorkNCCL\(SeqNum=(?P<number>\d+), OpType=(?P<op>\w+)\b(?:, NumelIn=(?P<sent>\d+), NumelOut=(?P<got>\d+)\b)?"
    r"[^()]*?Timeout\(ms\)=(?P<limit>\d+)\)(?: ran for (?P<ran>\d+) milliseconds)?"
)
_COMPLETED = re.compile(
    r"\[(?:PG [^\[\]]*)?Rank (?P<rank>\d+)\].{0,200}?last enqueued (?:NCCL )?work: (?P<enqueued>-?\d+), "
    r"last completed (?:NCCL )?work: (?P<completed>-?\d+)"
)
_DETECTED = re.compile(
    r"\[(?:PG [^\[\]]*)?Rank (?P<rank>\d+)\][^\n]{0,200}?detected by watchdog at work(?: sequence id)?: (?P<number>\d+)"
)
"""torch 2.2 to 2.13, ProcessGroupNCCL.cpp: a rank whose other line the log may not have."""
_NAMED = re.compile(r"Ranks? (?P<missing>\d+(?:, ?\d+)*) failed to pass monitoredBarrier")
_SHARDED = frozenset({"_REDUCE_SCATTER_BASE", "_ALLGATHER_BASE", "REDUCE_SCATTER", "ALLGATHER"})


def explain_timeout(text: str, _: Evidence | None, __: Translated) -> Translated:
    """What one rank's watchdog tells by itself."""
    found = _DETAILS.search(text)
    if found is None:
        return _WAITED_LONG
    milliseconds = int(found["ran"] or found["limit"])
    seconds = round(milliseconds / 1000)
    values: dict[str, object] = {"op": found["op"], "number": found["number"], "seconds": seconds}
    if found["sent"] is None:
        said = _WAITED.filled(**values)
    else:
        said = _WAITED_WITH_SIZE.filled(**values, elements=found["sent"])
    parts = [said, _shards(found), _COMPARE]
    return Translated(
        " ".join(part.en for part in parts if part.en), "".join(part.zh_cn for part in parts)
    )


def _shards(found: re.Match[str]) -> Translated:
    sent, got = int(found["sent"] or 0), int(found["got"] or 0)
    if found["op"] not in _SHARDED or not sent or not got or sent == got:
        return Translated("", "")
    return _SHARDED_TRAINING.filled(ranks=round(max(sent, got) / min(sent, got)))


def compare_timeouts(
    text: str, ranks: Iterable[int] = (), aborted: Iterable[int] = ()
) -> Translated | None:
    """What the ranks' NCCL watchdogs tell together; None with fewer than two ranks.

    ``ranks``: all that are known to exist, so that one that said nothing is missed. ``aborted``: those that ended by
    SIGABRT, as the watchdog ends a rank.
    """
    waits = _waits(text)
    more = sorted(set(aborted) - waits.keys()) if waits else []
    if len(waits) + len(more) < 2:
        return _by_completed(text)
    listed = ", ".join(
        f"rank {rank}: {op} #{number}" for rank, (number, op) in sorted(waits.items())
    )
    sizes = _sizes(text)
    if len(set(waits.values())) == 1 and len(set(sizes.values())) > 1:
        told = ", ".join(f"rank {rank}: {size}" for rank, size in sorted(sizes.items()))
        number, op = next(iter(waits.values()))
        return _DIFFERENT_SIZES.filled(op=op, number=number, sizes=told)
    if len(set(waits.values())) == 1:
        silent = sorted(set(ranks) - waits.keys() - set(more))
        said = _SAME.filled(ranks=listed)
        if silent:
            said = _SAME_BUT.filled(ranks=listed, silent=", ".join(map(str, silent)))
        if more:
            also = _ABORTED_TOO.filled(aborted=", ".join(map(str, more)))
            said = Translated(f"{said.en} {also.en}", said.zh_cn + also.zh_cn)
        return said
    if len({number for number, _ in waits.values()}) == 1:
        return _DIFFERENT_OPERATION.filled(ranks=listed)
    behind = _behind(waits)
    return _BEHIND.filled(ranks=listed, behind=behind)


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


def _sizes(text: str) -> dict[int, int]:
    """How many elements each rank brought to its first timeout's collective."""
    sizes: dict[int, int] = {}
    for match in _WORK.finditer(text):
        if match["sent"]:
            sizes.setdefault(int(match["rank"]), int(match["sent"]))
    return sizes


def _behind(waits: dict[int, tuple[int, str]]) -> int:
    return min(waits, key=lambda rank: waits[rank][0])


def _by_completed(text: str) -> Translated | None:
    """Who is behind, by the numbers of collectives that each rank completed."""
    done = {int(match["rank"]): int(match["completed"]) for match in _COMPLETED.finditer(text)}
    if len(done) < 2 or len(set(done.values())) == 1:
        return None
    listed = ", ".join(f"rank {rank}: {number}" for rank, number in sorted(done.items()))
    return _COMPLETED_LESS.filled(ranks=listed, behind=min(done, key=lambda rank: done[rank]))


_WAITED_LONG = Translated(
    en="This rank waited in a collective until the timeout: another rank never joined, or joined another one.",
    zh_cn="该 rank 在集合通信中一直等到超时：有 rank 没有参与，或参与了别的集合通信。",
)
_WAITED = Translated(
    en="This rank waited {seconds} s in {op} #{number} until the timeout.",
    zh_cn="该 rank 在 {op} #{number} 中等待了 {seconds} 秒，直到超时。",
)
_WAITED_WITH_SIZE = Translated(
    en="This rank waited {seconds} s in {op} #{number} ({elements} elements) until the timeout.",
    zh_cn="该 rank 在 {op} #{number}（{elements} 个元素）中等待了 {seconds} 秒，直到超时。",
)
_SHARDED_TRAINING = Translated(
    en="It is a collective of sharded training (FSDP, ZeRO) over {ranks} ranks.",
    zh_cn="这是 {ranks} 个 rank 的分片训练（FSDP、ZeRO）中的集合通信。",
)
_COMPARE = Translated(
    en="Another rank never joined it, or joined another one: compare the ranks. The one that reports a lower number, "
    "another operation or nothing at all is the cause, not this one.",
    zh_cn="有 rank 没有参与，或参与了别的集合通信：请比较各 rank。报告的序号更小、操作不同或没有报告的 rank 才是原因，"
    "不是这个。",
)
_SAME = Translated(
    en="All ranks that spoke waited in the same collective ({ranks}). If the group has more ranks, one that is not "
    "listed is missing or slow. If these are all, they met and no data came through between them: look at the network "
    "and at the links between the GPUs; with NCCL_P2P_DISABLE=1 or NCCL_IB_DISABLE=1 one of them is left out as a try.",
    zh_cn="已报告的 rank 都在等待同一个集合通信（{ranks}）。如果该组还有其他 rank，则未列出的某个 rank 缺席或过慢。"
    "如果这已是全部，则它们都已到达，但数据没有传过去：请检查网络以及 GPU 之间的链路；"
    "可设置 NCCL_P2P_DISABLE=1 或 NCCL_IB_DISABLE=1 逐一排除。",
)
_SAME_BUT = Translated(
    en="These ranks waited in the same collective ({ranks}). Rank {silent} reported no timeout: it never came to that "
    "collective, so look at what it did instead.",
    zh_cn="这些 rank 在等待同一个集合通信（{ranks}）。rank {silent} 没有报告超时：它没有到达该集合通信，"
    "请查看它在做什么。",
)
_ABORTED_TOO = Translated(
    en="Ranks {aborted} were aborted too (SIGABRT), as the watchdog does after a timeout; what they said is not here.",
    zh_cn="rank {aborted} 也被终止（SIGABRT），watchdog 在超时后会这样做；其输出不在此处。",
)
_DIFFERENT_OPERATION = Translated(
    en="The ranks took different branches: at the same number they ran different collectives ({ranks}).",
    zh_cn="各 rank 走了不同的分支：同一序号上执行了不同的集合通信（{ranks}）。",
)
_DIFFERENT_SIZES = Translated(
    en="At {op} #{number} the ranks brought different numbers of elements ({sizes}): they were in different "
    "collectives, so none could end. Look at what the rank that differs does at this point: a branch that not all "
    "ranks take, or a different number of calls before.",
    zh_cn="在 {op} #{number} 处各 rank 的元素个数不同（{sizes}）：它们处于不同的集合通信，因此都无法完成。"
    "请查看不同的那个 rank 此时在做什么：并非所有 rank 都进入的分支，或之前的调用次数不同。",
)
_BEHIND = Translated(
    en="The ranks are not at the same collective ({ranks}): rank {behind} is behind, look at what it does instead.",
    zh_cn="各 rank 不在同一个集合通信上（{ranks}）：rank {behind} 落后，请查看它在做什么。",
)
_COMPLETED_LESS = Translated(
    en="The ranks completed different numbers of collectives ({ranks}): rank {behind} is behind, look at what it does "
    "instead.",
    zh_cn="各 rank 完成的集合通信数不同（{ranks}）：rank {behind} 落后，请查看它在做什么。",
)
