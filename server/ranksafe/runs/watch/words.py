"""Sentences about ranks that wait for each other in vain."""

from __future__ import annotations

from collections.abc import Iterable

from ranksafe.localization import Translated


def ranks_text(ranks: Iterable[int]) -> str:
    """``rank 1``, ``ranks 0, 2-7``; the same in both languages."""
    ordered = sorted(ranks)
    spans: list[list[int]] = []
    for rank in ordered:
        if spans and rank == spans[-1][-1] + 1:
            spans[-1].append(rank)
        else:
            spans.append([rank])
    text = ", ".join(
        str(span[0])
        if len(span) == 1
        else f"{span[0]}-{span[-1]}"
        if len(span) > 2
        else f"{span[0]}, {span[1]}"
        for span in spans
    )
    return f"rank{'s' if len(ordered) > 1 else ''} {text}"


def joined(clauses: Iterable[Translated]) -> Translated:
    """Clauses of one sentence."""
    listed = list(clauses)
    return Translated("; ".join(c.en for c in listed), "；".join(c.zh_cn for c in listed))


def ending(sentence: Translated, more: Translated) -> Translated:
    """A sentence and what follows from it."""
    return Translated(f"{sentence.en}: {more.en}", f"{sentence.zh_cn}：{more.zh_cn}")


WAITS = Translated(
    en="{ranks} waits in {call} at {place} since {seconds} s",
    zh_cn="{ranks} 在 {place} 的 {call} 中已等待 {seconds} 秒",
)
WAIT = Translated(
    en="{ranks} wait in {call} at {place} since {seconds} s",
    zh_cn="{ranks} 在 {place} 的 {call} 中已等待 {seconds} 秒",
)
STILL = Translated(
    en="{ranks} has stood still at {place} for {seconds} s, in no collective",
    zh_cn="{ranks} 停在 {place} 已 {seconds} 秒，不在任何集合通信中",
)
STILLS = Translated(
    en="{ranks} have stood still at {place} for {seconds} s, in no collective",
    zh_cn="{ranks} 停在 {place} 已 {seconds} 秒，不在任何集合通信中",
)
SILENT = Translated(
    en="{ranks} has given no sign of life for {seconds} s, last seen at {place}",
    zh_cn="{ranks} 已有 {seconds} 秒没有任何动静，最后一次见于 {place}",
)
PASSED_BY = Translated(
    en="{ranks} made another call in its place and is at {place} now",
    zh_cn="{ranks} 在该处执行了另一个调用，现在位于 {place}",
)
OF_GROUP = Translated(en="{call} of group {group}", zh_cn="组 {group} 的 {call}")
NUMBERED = Translated(en="{call} number {number}", zh_cn="第 {number} 次 {call}")
ENDED = Translated(en="{ranks} ended {seconds} s ago", zh_cn="{ranks} 已在 {seconds} 秒前结束")
BRANCHES = Translated(
    en="they took different branches at line {line}", zh_cn="它们在第 {line} 行走了不同的分支"
)
BRANCHES_ELSEWHERE = Translated(
    en="they took different branches at {place}", zh_cn="它们在 {place} 走了不同的分支"
)
DIFFERENT = Translated(
    en="Every rank must call the same collectives in the same order. These ranks wait for each other in different "
    "calls, and none of them can go on.",
    zh_cn="所有 rank 必须以相同顺序调用相同的集合通信。这些 rank 在不同的调用中互相等待，谁也无法继续。",
)
LEFT = Translated(
    en="A collective needs every rank of its group. A rank that has ended never enters it: look for batches that are "
    "not the same number on every rank, and for returns or breaks that depend on the rank.",
    zh_cn="集合通信需要组内的每个 rank 参与，而已结束的 rank 不会再进入。请检查各 rank 的批次数是否相同，"
    "以及依赖 rank 的 return 或 break。",
)
NOT_THERE = Translated(
    en="The others wait for a rank that does nothing: its main thread, its other threads and its child processes have "
    "not moved. Look at what it waits for there.",
    zh_cn="其他 rank 在等待一个没有任何动作的 rank：它的主线程、其他线程和子进程都没有动静。请查看它在该处等待什么。",
)
NOT_HEARD = Translated(
    en="The others wait for a rank whose process rests and does not even let another thread of it run: it was stopped "
    "(SIGSTOP, a scheduler that suspends jobs), or compiled code waits and keeps Python's lock. It happened at that "
    "line or within about a second after it.",
    zh_cn="其他 rank 在等待一个毫无动作、连自身其他线程也无法运行的进程：它被暂停（SIGSTOP，或调度器挂起了作业），"
    "或编译代码在等待时一直持有 Python 的锁。这发生在该行，或在其后约一秒之内。",
)
TRANSFERS = Translated(
    en="A send needs its receive on the other rank, and the other way round, in the same order.",
    zh_cn="每个发送都需要另一 rank 上对应的接收，反之亦然，且顺序一致。",
)
PASSED = Translated(
    en="The other ranks made another call in its place and have gone on.",
    zh_cn="其他 rank 在此处执行了另一个调用，并已继续往下。",
)
STOPPED = Translated(
    en="the ranks hang, the run is being stopped (--on-hang report keeps it): {what}",
    zh_cn="各 rank 已挂起，正在停止运行（--on-hang report 可保留）：{what}",
)
REPORTED = Translated(
    en="the ranks hang, the run is kept: {what}", zh_cn="各 rank 已挂起，运行被保留：{what}"
)
FAILED_AND_STAYED = Translated(
    en="{ranks} failed and did not end, the others wait for it: the run is being stopped",
    zh_cn="{ranks} 已失败但没有结束，其他 rank 在等待它：正在停止运行",
)
GOES_ON = Translated(
    en="the ranks go on: what was reported was no hang",
    zh_cn="各 rank 已继续：之前报告的并非挂起",
)
NOWHERE = Translated(en="an unknown line", zh_cn="未知的行")
