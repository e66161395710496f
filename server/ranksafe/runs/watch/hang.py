"""A hang in words: one failure per place where ranks stand, the cause first."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ranksafe.localization import Language, Translated
from ranksafe.runs.explain.locate import UserCode, innermost_user_frame
from ranksafe.runs.model import Failure, Frame
from ranksafe.runs.watch import words
from ranksafe.runs.watch.branches import parting
from ranksafe.runs.watch.deadlock import family
from ranksafe.runs.watch.standing import Kind, Standing

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
        message = words.joined([clauses[index], *clauses[:index], *clauses[index + 1 :]])
        if branch is not None:
            message = words.ending(message, branch)
        is_root = group[0] in roots
        failures.append(_failure(group[0], message, why, is_root, user_code, language))
    told = words.joined(clauses)
    failures.sort(key=lambda failure: not failure.root_cause)
    return (told if branch is None else words.ending(told, branch)), failures


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
        return words.BRANCHES.filled(line=line)
    return words.BRANCHES_ELSEWHERE.filled(place=f"{Path(filename).name}:{line}")


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


def _clauses(groups: Sequence[Sequence[Stand]]) -> list[Translated]:
    """What each group of ranks does; calls of one name are told apart by their group or number."""
    waits = [group[0].standing.wait for group in groups]
    names = [wait.name for wait in waits if wait is not None]
    process_groups = {wait.group for wait in waits if wait is not None and wait.group}
    clauses = []
    for group, wait in zip(groups, waits, strict=True):
        call: object = wait.name if wait is not None else ""
        if wait is not None and names.count(wait.name) > 1 and wait.number is not None:
            detail = words.OF_GROUP if len(process_groups) > 1 else words.NUMBERED
            call = detail.filled(call=wait.name, group=wait.group, number=wait.number)
        clauses.append(_clause(group, call))
    return clauses


def _clause(group: Sequence[Stand], call: object) -> Translated:
    first = group[0]
    several = len(group) > 1
    values: dict[str, object] = {
        "ranks": words.ranks_text(each.rank for each in group),
        "seconds": first.seconds,
        "place": place_text(first.place),
    }
    kind = first.standing.kind
    if kind is Kind.WAITS:
        return (words.WAIT if several else words.WAITS).filled(call=call, **values)
    if kind is Kind.ENDED:
        return words.ENDED.filled(**values)
    if kind is Kind.SILENT:
        return words.SILENT.filled(**values)
    if first.passed_by:
        return words.PASSED_BY.filled(**values)
    return (words.STILLS if several else words.STILL).filled(**values)


def place_text(frame: Frame | None) -> object:
    """``train.py:41``."""
    return words.NOWHERE if frame is None else f"{Path(frame.filename).name}:{frame.line}"


def _why(groups: Sequence[Sequence[Stand]]) -> Translated:
    stands = [stand for group in groups for stand in group]
    kinds = {stand.standing.kind for stand in stands}
    waits = [stand.standing.wait for stand in stands if stand.standing.wait is not None]
    if Kind.ENDED in kinds:
        return words.LEFT
    if Kind.SILENT in kinds:
        return words.NOT_HEARD
    if Kind.STILL in kinds:
        return words.NOT_THERE
    if any(wait.peers is not None for wait in waits):
        return words.TRANSFERS
    if any(stand.passed_by for stand in stands) and len({family(w.call) for w in waits}) == 1:
        return words.PASSED
    return words.DIFFERENT


def _failure(
    stand: Stand,
    message: Translated,
    why: Translated,
    is_root: bool,
    user_code: UserCode,
    language: Language,
) -> Failure:
    frames = user_code.marked(stand.frames)
    place = innermost_user_frame(frames)
    return Failure(
        kind=KIND,
        code=None,
        rank=stand.rank,
        message=message.in_language(language),
        filename=place.filename if place else None,
        line=place.line if place else None,
        column=None,
        end_line=None,
        end_column=None,
        frames=frames,
        explanation=why,
        root_cause=is_root,
    )


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
