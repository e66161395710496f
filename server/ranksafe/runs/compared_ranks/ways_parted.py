"""Failures that ranks met because they called different collectives, with the place where their ways parted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from ranksafe.localization import Language, Translated
from ranksafe.runs.compared_ranks.executed_lines import Executed, executed_lines
from ranksafe.runs.compared_ranks.parted import Parting, Way, parting_of
from ranksafe.runs.compared_ranks.trails import Trail, are_together, parting_of_trails, trails_of
from ranksafe.runs.explain.collective_order import Mismatch
from ranksafe.runs.explain.evidence import frames_from
from ranksafe.runs.explain.locate import UserCode
from ranksafe.runs.model import Failure, Frame

KINDS: Final = frozenset(
    {"collective-dtype-mismatch", "collective-mismatch", "collective-shape-mismatch"}
    | {"collective-timeout", "hang", "peer-lost", "rank-left-early", "time-limit"}
)
"""What becomes of ranks that do not call the same collectives."""
_OF_A_PEER: Final = "rank-left-early"
"""Told of one rank, with the stack of another."""


def with_parting(
    failures: Sequence[Failure],
    directory: Path,
    mismatch: Mismatch | None,
    user_code: UserCode,
    language: Language,
) -> list[Failure]:
    """``failures``, the roots among them with the place where ranks parted, where their lines tell.

    ``mismatch``: the first collective that they called differently, where it is known.
    """
    of_order = [each for each in failures if each.kind in KINDS]
    roots = [each for each in of_order if each.root_cause]
    if not roots:
        return list(failures)
    known = {rank: lines for rank, lines in executed_lines(directory).items() if lines is not None}
    stacks: dict[int | None, tuple[Frame, ...]] = {}
    for rank, call in () if mismatch is None else (mismatch.one, mismatch.other):
        stacks[rank] = user_code.marked(frames_from(call.place if call is not None else ()))
    for each in of_order:
        stacks.setdefault(None if each.kind == _OF_A_PEER else each.rank, each.frames)
    at = None if mismatch is None else (mismatch.group, mismatch.number)
    found = _first_parting(known, stacks, trails_of(directory), at)
    lines = [] if found is None else [(found.filename, line) for line in found.lines]
    lines += [
        (frames[-1].filename, frames[-1].line) for frames in map(_own, stacks.values()) if frames
    ]
    met = None if mismatch is None or _are_there(mismatch, of_order) else mismatch.message
    return [
        _with_place(each, met, found, lines, language) if each in roots else each
        for each in failures
    ]


def _are_there(mismatch: Mismatch, failures: Sequence[Failure]) -> bool:
    """Whether the ranks of a mismatch are told of at the very lines where they made its calls."""
    lines = {(failure.filename, failure.line) for failure in failures}
    told = {each.kind for each in failures}
    return "hang" not in told or all(
        call is None or not call.place or (call.place[-1]["file"], call.place[-1]["line"]) in lines
        for _, call in (mismatch.one, mismatch.other)
    )


def _first_parting(
    executed: Mapping[int, Executed],
    stacks: Mapping[int | None, tuple[Frame, ...]],
    trails: Mapping[int, Trail],
    at: tuple[str, int] | None,
) -> Parting | None:
    for rank, frames in stacks.items():
        own = _own(frames)
        for waiting in _were_at(executed, own, rank):
            for other in sorted(executed.keys() - {waiting}):
                if at is None and are_together(trails.get(waiting), trails.get(other)):
                    continue
                there = _own(stacks.get(other, ()))
                if there and _began(there) != _began(own):
                    continue  # threads of their own
                ours = Way(waiting, executed[waiting], own)
                theirs = Way(other, executed[other], there)
                found = parting_of_trails(ours, theirs, trails, at) or parting_of(ours, theirs)
                if found is not None:
                    return found
    return None


def _were_at(
    executed: Mapping[int, Executed], frames: Sequence[Frame], rank: int | None
) -> list[int]:
    """The ranks whose stack this may be: the one that it is told of, else those that have been there."""
    if not frames:
        return []
    if rank is not None:
        return [rank] if rank in executed else []
    path = Path(frames[-1].filename).resolve()
    return [
        each
        for each in sorted(executed)
        if frames[-1].line in executed[each].get(path, frozenset())
    ]


def _began(frames: Sequence[Frame]) -> tuple[str, str]:
    return frames[0].filename, frames[0].function


def _own(frames: Sequence[Frame]) -> tuple[Frame, ...]:
    return tuple(frame for frame in frames if frame.in_user_code)


def _with_place(
    failure: Failure,
    met: Translated | None,
    found: Parting | None,
    lines: Sequence[tuple[str, int]],
    language: Language,
) -> Failure:
    """``met``: a mismatch to be told of, too."""
    own = (failure.filename, failure.line)
    related = tuple(dict.fromkeys(line for line in lines if line != own))
    more = [met] if met is not None else []
    # The branch may be named already (`ranksafe.runs.compared_ranks.branches`).
    said = ("at line {}", "第 {} 行走了")
    if found is not None and not any(
        words.format(line) in failure.message for line in found.lines for words in said
    ):
        more.append(found.text)
    mark = "；" if language == "zh-cn" else "; "
    told = mark.join(
        [failure.message.rstrip(".。"), *(each.in_language(language) for each in more)]
    )
    return replace(failure, message=told if more else failure.message, related=related)
