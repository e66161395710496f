"""Makes issues of differences, of local decisions and of notes, but for those that a caller in the file answers."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from ranksafe.rank_flow.comparison.differences import Difference, Mismatch
from ranksafe.rank_flow.issues import Issue, Kind
from ranksafe.rank_flow.local_decisions import LocalDecision
from ranksafe.rank_flow.run import Note, Run
from ranksafe.rank_flow.tables import methods_that
from ranksafe.rank_flow.traces import Event, Exit, Item, Loop, Place, inner_items
from ranksafe.rank_flow.values import Abstract, Share, Varies, origin_of
from ranksafe.rank_flow.wrapped_by_libraries import ENGINE
from ranksafe.rank_flow.wrapped_models import is_sharded
from ranksafe.semantics.module import Module

_ANSWERED_BY = {
    Kind.UNEVEN_LOOP: Kind.EVEN_LOOP,
    Kind.COLLECTIVE: Kind.MET,
    Kind.ROOT: Kind.MET,
    Kind.OBJECT_LIST: Kind.MET,
}


def of_difference(difference: Difference, module: Module) -> Issue | None:
    """What the comparison of two ranks found; None where the ranks part in another file."""
    if isinstance(difference, Mismatch):
        return _of_mismatch(difference)
    event, branch = difference.waiting, difference.branch
    if branch is None or branch.module is not module:
        return None
    other = difference.other
    left = difference.left
    origin = None if difference.condition is None else origin_of(difference.condition)
    constructs = event.operation.kind == "group-construction"
    if difference.uneven:
        return Issue(
            Kind.UNEVEN_LOOP, branch, event.operation.word, waits=event.place, origin=origin
        )
    if left is not None and left.place.module is module and not constructs:
        return Issue(
            Kind.LOOP_EXIT, left.place, event.operation.word, waits=event.place, branch=branch,
            origin=origin,
        )  # fmt: skip
    return Issue(
        _kind_of(event),
        _seen_from(event.place, branch),
        event.operation.word,
        waits=event.place,
        waiting_rank=difference.waits,
        other=other.operation.word if isinstance(other, Event) else "",
        other_place=None if other is None else other.place,
        branch=branch,
        origin=origin,
    )


def of_decision(decision: LocalDecision, module: Module) -> Iterator[Issue]:
    """What a branch or loop that each rank decides for itself does to the others."""
    branch = decision.place
    if branch.module is not module:
        return
    origin = origin_of(decision.condition)
    event = decision.event
    if event.operation.when is not None:
        # A metric that is logged at all is reduced at the end of the epoch, on all ranks that have logged it once.
        return
    if decision.complete_on is not None and decision.kind != "count":
        test = getattr(branch.node, "test", branch.node)
        place = Place(test, branch.module, branch.calls)
        yield Issue(
            Kind.REDUCED_DECISION, place, event.operation.word, waits=event.place,
            branch=branch, origin=origin,
        )  # fmt: skip
        return
    if decision.kind == "count" and _counts_ranks(decision):
        yield Issue(
            _kind_of(event), _seen_from(event.place, branch), event.operation.word,
            waits=event.place, branch=branch, origin=origin,
        )  # fmt: skip
    elif decision.kind == "count":
        yield Issue(
            Kind.UNEVEN_LOOP, branch, event.operation.word, waits=event.place, origin=origin
        )
    elif decision.kind == "exit":
        assert isinstance(decision.exit, Exit)
        if decision.exit.place.module is module:
            yield Issue(
                Kind.LOOP_EXIT, decision.exit.place, event.operation.word, waits=event.place,
                branch=branch, origin=origin,
            )  # fmt: skip
    else:
        yield Issue(
            _kind_of(event), _seen_from(event.place, branch), event.operation.word,
            waits=event.place, branch=branch, origin=origin,
        )  # fmt: skip


def of_notes(runs: list[Run], module: Module) -> Iterator[Issue]:
    """What ranks met by themselves, each place once."""
    met: dict[tuple[str, int], list[tuple[int, Note]]] = {}
    for rank, run in enumerate(runs):
        for note in run.notes:
            met.setdefault((note.kind, id(note.place.node)), []).append((rank, note))
    for (kind, place), notes in met.items():
        ranks = {rank for rank, _ in notes}
        if kind == "list of the root":
            continue
        at_root = any(known == ("list of the root", place) for known in met)
        if kind == "list elsewhere" and not _given_by_all(notes, ranks, len(runs), at_root):
            continue
        issue = _of_note(kind, notes[0][1], ranks, len(runs), module)
        if issue is not None:
            yield issue


def _of_note(kind: str, note: Note, ranks: set[int], size: int, module: Module) -> Issue | None:
    operation = "" if note.event is None else note.event.operation.word
    origin = None if note.value is None else origin_of(note.value)
    if kind == "value":
        if len(ranks) == size or note.place.module is not module:
            return None
        return Issue(Kind.ONE_RANK_VALUE, note.place, "", branch=note.branch, name=note.name)
    kinds = {
        "shape": Kind.SHAPES,
        "outside-group": Kind.OUTSIDE_GROUP,
        "foreign-root": Kind.ROOT,
        "handler": Kind.EXCEPTION_HANDLER,
        "swallowed": Kind.EXCEPTION_HANDLER,
    }
    waits = None if note.event is None else note.event.place
    return Issue(
        kinds.get(kind, Kind.OBJECT_LIST), note.place, operation, waits=waits,
        branch=note.branch, origin=origin, name="member" if kind == "foreign-root" else kind,
    )  # fmt: skip


def _given_by_all(notes: list[tuple[int, Note]], ranks: set[int], size: int, at_root: bool) -> bool:
    """Whether a list is given on the root and on every other rank too."""
    event = notes[0][1].event
    if event is None or not event.operation.complete_on_root:
        return True
    root = getattr(event.root, "constant", None)
    return at_root and ranks == {rank for rank in range(size) if rank != root}


def _counts_ranks(decision: LocalDecision) -> bool:
    """Whether a loop runs as often as the rank says, not as often as the rank has data."""
    condition = decision.condition
    if isinstance(condition, Abstract) and condition.share in (Share.ROUNDED, Share.UNEVEN):
        return False
    return isinstance(decision.place.node, ast.While) and condition.varies is Varies.BY_RANK


def _of_mismatch(difference: Mismatch) -> Issue:
    event = difference.event
    kind = {
        "root": Kind.ROOT,
        "members": Kind.GROUP_CONSTRUCTION,
        "list": Kind.OBJECT_LIST,
        "shape": Kind.SHAPES if "gather" in event.operation.word else Kind.ROOT,
    }[difference.what]
    origin = None if event.root is None else origin_of(event.root)
    return Issue(kind, event.place, event.operation.word, origin=origin, name=difference.what)


def _kind_of(event: Event) -> Kind:
    operation = event.operation
    if operation.kind == "group-construction":
        return Kind.GROUP_CONSTRUCTION
    if operation.word == "full_tensor":
        return Kind.COLLECTIVE
    if operation.only == "sharded" or operation.word in methods_that("gives whole state"):
        return Kind.SHARDED_STATE
    if operation.word in methods_that("writes checkpoint") and (
        operation.name.startswith(ENGINE) or is_sharded(event.model)
    ):
        return Kind.SHARDED_STATE
    if operation.kind == "step" and operation.word in methods_that("steps"):
        return Kind.WRAPPED_FORWARD
    return Kind.COLLECTIVE


def _seen_from(place: Place, branch: Place) -> Place:
    """The node of the function in which the ranks separate: the collective, or the call that leads to it."""
    depth = len(branch.calls)
    chain = [*place.calls, (place.node, place.module)]
    node, module = chain[min(depth, len(chain) - 1)]
    return Place(node, module, place.calls[:depth])


def even_loops(traces: list[list[Item]]) -> Iterator[Issue]:
    """Loops in called functions whose number of steps is known and the same in all traces."""
    found: dict[int, list[Loop]] = {}
    for loop in (loop for trace in traces for loop in _loops(trace) if loop.place.calls):
        found.setdefault(id(loop.place.node), []).append(loop)
    for loops in found.values():
        if len({loop.count for loop in loops}) == 1 and not isinstance(loops[0].count, Varies):
            yield Issue(Kind.EVEN_LOOP, loops[0].place, "")


def met(events: Iterable[Event], found: set[int]) -> Iterator[Issue]:
    """The collectives in called functions in which ranks meet, as a barrier for the others in one answers rank 0's in
    another; ``found``: the nodes at which the caller has an issue."""
    nodes = {id(event.place.node): event for event in events if event.place.calls}
    for event in (event for node, event in nodes.items() if node not in found):
        yield Issue(Kind.MET, event.place, "")


def without_answered(issues: Iterable[Issue]) -> list[Issue]:
    """The issues but for those of functions alone that a caller answers."""
    issues = list(issues)
    answers = {
        (issue.kind, id(issue.place.node))
        for issue in issues
        if issue.kind in _ANSWERED_BY.values()
    }
    return [
        issue
        for issue in issues
        if issue.kind not in _ANSWERED_BY.values()
        and (
            issue.place.calls or (_ANSWERED_BY.get(issue.kind), id(issue.place.node)) not in answers
        )
    ]


def _loops(items: list[Item]) -> Iterator[Loop]:
    for item in items:
        if isinstance(item, Loop):
            yield item
        yield from _loops(inner_items(item))
