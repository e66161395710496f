"""A hang in words: one failure per place where ranks stand, the cause first."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ranksafe.localization import Language, Translated
from ranksafe.runs.compared_ranks.branches import parting
from ranksafe.runs.explain.locate import UserCode, innermost_user_frame, place
from ranksafe.runs.model import Failure, Frame
from ranksafe.runs.watch.deadlock import family
from ranksafe.runs.watch.standing import Kind, Standing, ranks_text

KIND = "hang"


@dataclass(frozen=True, slots=True)
class Stand:
    """A rank of a hang: what it does and where, the user's frames marked."""

    rank: int
    standing: Standing
    frames: tuple[Frame, ...]
    seconds: int
    """How long, at the moment of the judgement."""
    passed_by: bool = False
    """Others wait for it where it made another call and went on."""

    @property
    def place(self) -> Frame | None:
        """The user's line it is at."""
        return innermost_user_frame(self.frames)


def _joined(clauses: Iterable[Translated]) -> Translated:
    """Clauses of one sentence."""
    listed = list(clauses)
    return Translated("; ".join(c.en for c in listed), "；".join(c.zh_cn for c in listed))


def _ending(sentence: Translated, more: Translated) -> Translated:
    """A sentence and what follows from it."""
    return Translated(f"{sentence.en}: {more.en}", f"{sentence.zh_cn}：{more.zh_cn}")


def explained(
    stands: Sequence[Stand], user_code: UserCode, language: Language
) -> tuple[Translated, list[Failure]]:
    """The whole in one sentence, and a failure for each place, root causes first.

    ``stands``: the ranks that wait in vain, and those they wait for.
    """
    groups = _by_place(stands)
    roots = _roots(groups)
    branch = _branch(groups)
    clauses = _clauses(groups)
    why = _why(groups)
    failures = []
    for index, group in enumerate(groups):
        if group[0].place is None and len(groups) > 1:
            continue
        message = _joined([clauses[index], *clauses[:index], *clauses[index + 1 :]])
        if branch is not None:
            message = _ending(message, branch)
        is_root = group[0] in roots
        failures.append(_failure(group[0], message, why, is_root, user_code, language))
    told = _joined(clauses)
    failures.sort(key=lambda failure: not failure.root_cause)
    return (told if branch is None else _ending(told, branch)), failures


def _by_place(stands: Sequence[Stand]) -> list[list[Stand]]:
    """Ranks that do the same in the same place together."""

    def key(stand: Stand) -> tuple[str, str, str, int, str, int]:
        place, wait = stand.place, stand.standing.wait
        return (
            stand.standing.kind.value,
            wait.name if wait else "",
            place.filename if place else "",
            place.line if place else 0,
            (wait.group or "") if wait else "",
            (wait.number or 0) if wait else 0,
        )

    groups = [list(each) for _, each in itertools.groupby(sorted(stands, key=key), key)]
    return sorted(groups, key=lambda group: group[0].rank)


def _roots(groups: Sequence[Sequence[Stand]]) -> list[Stand]:
    """One of each group that is to blame: who does not wait, else the smaller part; nobody is singled out of equals."""
    firsts = [group[0] for group in groups if group[0].place is not None]
    apart = [each for each in firsts if each.standing.kind is not Kind.WAITS or each.passed_by]
    if apart:
        return apart
    smallest = min((len(group) for group in groups if group[0] in firsts), default=0)
    return [group[0] for group in groups if len(group) == smallest]


_BRANCHES = Translated(
    en="they took different branches at line {line}", zh_cn="它们在第 {line} 行走了不同的分支"
)
_BRANCHES_ELSEWHERE = Translated(
    en="they took different branches at {place}", zh_cn="它们在 {place} 走了不同的分支"
)


def _branch(groups: Sequence[Sequence[Stand]]) -> Translated | None:
    """Where two places part, if all pairs that part do it at the same line."""
    found = {
        parting(one.frames, other.frames, same_number=_at_the_same_number(one, other))
        for one, other in itertools.combinations((group[0] for group in groups), 2)
    } - {None}
    if len(found) != 1:
        return None
    only = found.pop()
    assert only is not None
    filename, line = only
    places = {group[0].place for group in groups}
    if all(place is not None and place.filename == filename for place in places):
        return _BRANCHES.filled(line=line)
    return _BRANCHES_ELSEWHERE.filled(place=f"{Path(filename).name}:{line}")


def _at_the_same_number(one: Stand, other: Stand) -> bool:
    """Whether both made the same number of collectives before the one that is waited in."""
    waits = [each.standing.wait for each in (one, other) if each.standing.wait is not None]
    if not waits or waits[0].number is None:
        return False
    group = waits[0].group
    return all(_before(each, group) == waits[0].number - 1 for each in (one, other))


def _before(stand: Stand, group: str | None) -> int:
    wait = stand.standing.wait
    inside = wait is not None and wait.group == group
    return stand.standing.count(group) - int(inside)


_OF_GROUP = Translated(en="{call} of group {group}", zh_cn="组 {group} 的 {call}")
_NUMBERED = Translated(en="{call} number {number}", zh_cn="第 {number} 次 {call}")


def _clauses(groups: Sequence[Sequence[Stand]]) -> list[Translated]:
    """What each group of ranks does; calls of one name are told apart by their group or number."""
    waits = [group[0].standing.wait for group in groups]
    names = [wait.name for wait in waits if wait is not None]
    process_groups = {wait.group for wait in waits if wait is not None and wait.group}
    clauses = []
    for group, wait in zip(groups, waits, strict=True):
        call: object = wait.name if wait is not None else ""
        if wait is not None and names.count(wait.name) > 1 and wait.number is not None:
            detail = _OF_GROUP if len(process_groups) > 1 else _NUMBERED
            call = detail.filled(call=wait.name, group=wait.group, number=wait.number)
        clauses.append(_clause(group, call))
    return clauses


_WAITS = Translated(
    en="{ranks} waits in {call} at {place} since {seconds} s",
    zh_cn="{ranks} 在 {place} 的 {call} 中已等待 {seconds} 秒",
)
_WAIT = Translated(
    en="{ranks} wait in {call} at {place} since {seconds} s",
    zh_cn="{ranks} 在 {place} 的 {call} 中已等待 {seconds} 秒",
)
_STILL = Translated(
    en="{ranks} has stood still at {place} for {seconds} s, in no collective",
    zh_cn="{ranks} 停在 {place} 已 {seconds} 秒，不在任何集合通信中",
)
_STILLS = Translated(
    en="{ranks} have stood still at {place} for {seconds} s, in no collective",
    zh_cn="{ranks} 停在 {place} 已 {seconds} 秒，不在任何集合通信中",
)
_SILENT = Translated(
    en="{ranks} has given no sign of life for {seconds} s, last seen at {place}",
    zh_cn="{ranks} 已有 {seconds} 秒没有任何动静，最后一次见于 {place}",
)
_PASSED_BY = Translated(
    en="{ranks} made another call in its place at {place}",
    zh_cn="{ranks} 在 {place} 执行了另一个调用",
)
_ENDED = Translated(en="{ranks} ended {seconds} s ago", zh_cn="{ranks} 已在 {seconds} 秒前结束")


def _clause(group: Sequence[Stand], call: object) -> Translated:
    first = group[0]
    several = len(group) > 1
    values: dict[str, object] = {
        "ranks": ranks_text(each.rank for each in group),
        "seconds": first.seconds,
        "place": place_text(first.place),
    }
    kind = first.standing.kind
    if kind is Kind.WAITS:
        return (_WAIT if several else _WAITS).filled(call=call, **values)
    if kind is Kind.ENDED:
        return _ENDED.filled(**values)
    if kind is Kind.SILENT:
        return _SILENT.filled(**values)
    if first.passed_by:
        return _PASSED_BY.filled(**values)
    return (_STILLS if several else _STILL).filled(**values)


_NOWHERE = Translated(en="an unknown line", zh_cn="未知的行")


def place_text(frame: Frame | None) -> object:
    """``train.py:41``."""
    return _NOWHERE if frame is None else place(frame)


_DIFFERENT = Translated(
    en="Every rank must call the same collectives in the same order. These ranks wait for each other in different "
    "calls, and none of them can go on.",
    zh_cn="所有 rank 必须以相同顺序调用相同的集合通信。这些 rank 在不同的调用中互相等待，谁也无法继续。",
)
_LEFT = Translated(
    en="A collective needs every rank of its group. A rank that has ended never enters it: look for batches that are "
    "not the same number on every rank, and for returns or breaks that depend on the rank.",
    zh_cn="集合通信需要组内的每个 rank 参与，而已结束的 rank 不会再进入。请检查各 rank 的批次数是否相同，"
    "以及依赖 rank 的 return 或 break。",
)
_NOT_THERE = Translated(
    en="The others wait for a rank that does nothing: its main thread, its other threads and its child processes have "
    "not moved. Look at what it waits for there.",
    zh_cn="其他 rank 在等待一个没有任何动作的 rank：它的主线程、其他线程和子进程都没有动静。请查看它在该处等待什么。",
)
_NOT_HEARD = Translated(
    en="The others wait for a rank whose process rests and does not even let another thread of it run: it was stopped "
    "(SIGSTOP, a scheduler that suspends jobs), or compiled code waits and keeps Python's lock. It happened at that "
    "line or within about a second after it.",
    zh_cn="其他 rank 在等待一个毫无动作、连自身其他线程也无法运行的进程：它被暂停（SIGSTOP，或调度器挂起了作业），"
    "或编译代码在等待时一直持有 Python 的锁。这发生在该行，或在其后约一秒之内。",
)
_TRANSFERS = Translated(
    en="A send needs its receive on the other rank, and the other way round, in the same order.",
    zh_cn="每个发送都需要另一 rank 上对应的接收，反之亦然，且顺序一致。",
)
_PASSED = Translated(
    en="The other ranks made another call in its place and have gone on.",
    zh_cn="其他 rank 在此处执行了另一个调用，并已继续往下。",
)


def _why(groups: Sequence[Sequence[Stand]]) -> Translated:
    stands = [stand for group in groups for stand in group]
    kinds = {stand.standing.kind for stand in stands}
    waits = [stand.standing.wait for stand in stands if stand.standing.wait is not None]
    if Kind.ENDED in kinds:
        return _LEFT
    if Kind.SILENT in kinds:
        return _NOT_HEARD
    if Kind.STILL in kinds:
        return _NOT_THERE
    if any(wait.peers is not None for wait in waits):
        return _TRANSFERS
    if any(stand.passed_by for stand in stands) and len({family(w.call) for w in waits}) == 1:
        return _PASSED
    return _DIFFERENT


def _failure(
    stand: Stand,
    message: Translated,
    why: Translated,
    is_root: bool,
    user_code: UserCode,
    language: Language,
) -> Failure:
    frames = user_code.marked(stand.frames)
    return Failure(
        kind=KIND,
        rank=stand.rank,
        message=message.in_language(language),
        frames=frames,
        explanation=why,
        root_cause=is_root,
    ).at(innermost_user_frame(frames))


def stand_of(
    rank: int,
    standing: Standing,
    frames: Sequence[Frame],
    now: float,
    user_code: UserCode,
    *,
    passed_by: bool = False,
) -> Stand:
    """A rank as it is told of; ``now``: the latest beat of all ranks."""
    wait = standing.wait
    own = wait.frames if wait is not None and wait.frames else frames
    seconds = max(0, round(now - standing.since))
    return Stand(rank, standing, user_code.marked(own), seconds, passed_by)
