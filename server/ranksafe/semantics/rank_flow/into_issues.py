"""Makes issues of what was found: of differences, of local decisions, of notes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ranksafe.semantics.rank_flow.comparison.differences import Difference, Mismatch
from ranksafe.semantics.rank_flow.issues import Issue, Kind
from ranksafe.semantics.rank_flow.local_decisions import LocalDecision
from ranksafe.semantics.rank_flow.run import Note
from ranksafe.semantics.rank_flow.sharding import is_sharded
from ranksafe.semantics.rank_flow.traces import Event, Exit, Place, decisions_in
from ranksafe.semantics.rank_flow.trainer_control import ends_a_step, leaves_the_loop
from ranksafe.semantics.rank_flow.values import Sameness, Share, Unknown, origin_of
from ranksafe.semantics.rank_flow.wrapped_by_libraries import ENGINE

if TYPE_CHECKING:
    from ranksafe.semantics.module import Module
    from ranksafe.semantics.rank_flow.interpreter import Interpreter

_STATE_WORDS = frozenset(
    {"state_dict", "save_model", "generate", "save_state", "get_state_dict", "GatheredParameters"}
    | {"consolidate_state_dict"}
)
_CHECKPOINT_WORDS = frozenset({"save", "load", "save_checkpoint", "load_checkpoint"})
_FORWARD_WORDS = frozenset({"forward", "backward", "training_step", "prediction_step", "step"})


def of_difference(difference: Difference, module: Module) -> Issue | None:
    """What the comparison of two ranks found; None where the ranks part in another file."""
    if isinstance(difference, Mismatch):
        return of_mismatch(difference)
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
    if leaves_the_loop(event):
        return Issue(
            Kind.LOOP_EXIT, event.place, event.operation.word, waits=event.place, branch=branch,
            origin=origin,
        )  # fmt: skip
    kind = _kind_of(event)
    decorated = kind is Kind.SHARDED_STATE and _is_decorator(branch.node)
    return Issue(
        kind,
        event.place
        if decorated and event.place.module is module
        else _seen_from(event.place, branch),
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
    left = decision.exit.place if decision.exit is not None and ends_a_step(event) else None
    if leaves_the_loop(event) or left is not None:
        yield Issue(
            Kind.LOOP_EXIT, left or event.place, event.operation.word, waits=event.place,
            branch=branch, origin=origin,
        )  # fmt: skip
        return
    if decision.complete_on is not None:
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


def of_notes(runs: list[Interpreter], module: Module) -> Iterator[Issue]:
    """What ranks met by themselves, each place once."""
    met: dict[tuple[str, int], list[tuple[int, Note]]] = {}
    for rank, run in enumerate(runs):
        for note in run.run.notes:
            met.setdefault((note.kind, id(note.place.node)), []).append((rank, note))
    for (kind, place), notes in met.items():
        ranks = {rank for rank, _ in notes}
        if kind == "root-object-list":
            continue
        at_root = any(known == ("root-object-list", place) for known in met)
        if kind == "object-list" and not _given_by_all(notes, ranks, len(runs), at_root):
            continue
        if kind == "lacks":
            yield from _lacking(notes[0], ranks, runs, module)
            continue
        issue = _of_note(kind, notes[0][1], ranks, len(runs), module)
        if issue is not None:
            yield issue


def _of_note(kind: str, note: Note, ranks: set[int], size: int, module: Module) -> Issue | None:
    operation = "" if note.event is None else note.event.operation.word
    origin = None if note.value is None else origin_of(note.value)
    if kind in ("own-root", "own-peer") and len(ranks) < size:
        return None
    if kind == "swallowed-by-rank" and len(ranks) == size:
        return None
    if kind == "value":
        if len(ranks) == size or note.place.module is not module:
            return None
        return Issue(Kind.ONE_RANK_VALUE, note.place, "", branch=note.branch, name=note.name)
    kinds = {
        "shape": Kind.SHAPES,
        "object-list": Kind.OBJECT_LIST,
        "no-object-list": Kind.OBJECT_LIST,
        "outside-group": Kind.OUTSIDE_GROUP,
        "foreign-root": Kind.ROOT,
        "reduced-shape": Kind.ROOT,
        "own-root": Kind.ROOT,
        "own-peer": Kind.PEER,
        "handler": Kind.EXCEPTION_HANDLER,
        "swallowed": Kind.EXCEPTION_HANDLER,
        "swallowed-by-rank": Kind.EXCEPTION_HANDLER,
    }
    waits = None if note.event is None else note.event.place
    return Issue(
        kinds[kind], note.place, operation, waits=waits, branch=note.branch, origin=origin,
        name={"foreign-root": "member", "reduced-shape": "shape", "own-peer": "itself"}.get(kind, ""),
    )  # fmt: skip


def _lacking(
    first: tuple[int, Note], ranks: set[int], runs: list[Interpreter], module: Module
) -> Iterator[Issue]:
    """What a rank certainly does not have where it uses it, and another rank has."""
    rank, note = first
    others = [run.run for index, run in enumerate(runs) if index not in ranks]
    if note.place.module is not module or not any(id(note.place.node) in run.had for run in others):
        return
    node = note.place.node
    written = getattr(node, "value", node) if isinstance(node, ast.Subscript) else node
    word = getattr(written, "attr", getattr(written, "id", ""))
    branches = [
        decision.place
        for decision in decisions_in(runs[rank].run.items)
        if any(
            word == getattr(i, "attr", getattr(i, "id", "")) for i in ast.walk(decision.place.node)
        )
    ]
    branch = branches[-1] if word and branches else None
    yield Issue(Kind.ONE_RANK_VALUE, note.place, "", branch=branch, name=note.name)


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
    if isinstance(condition, Unknown) and condition.share is Share.UNEVEN:
        return False
    return isinstance(decision.place.node, ast.While) and condition.sameness is Sameness.RANK


def of_mismatch(difference: Mismatch) -> Issue:
    """What two calls that belong together do not agree on."""
    event = difference.event
    kind = {
        "root": Kind.ROOT,
        "members": Kind.GROUP_CONSTRUCTION,
        "list": Kind.OBJECT_LIST,
        "dtype": Kind.ROOT,
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
    if operation.only == "sharded" or operation.word in _STATE_WORDS:
        return Kind.SHARDED_STATE
    if operation.word in _CHECKPOINT_WORDS and (
        operation.name.startswith(ENGINE) or is_sharded(event.model)
    ):
        return Kind.SHARDED_STATE
    if operation.kind == "step" and operation.word in _FORWARD_WORDS:
        return Kind.WRAPPED_FORWARD
    return Kind.COLLECTIVE


def _is_decorator(node: ast.AST) -> bool:
    """Whether the ranks part at a function's decorator: no call stands for the separation then."""
    return isinstance(node, (ast.Name, ast.Attribute, ast.Call))


def _seen_from(place: Place, branch: Place) -> Place:
    """The node of the function in which the ranks separate: the collective, or the call that leads to it."""
    depth = len(branch.calls)
    chain = [*place.calls, (place.node, place.module)]
    node, module = chain[min(depth, len(chain) - 1)]
    return Place(node, module, place.calls[:depth])
