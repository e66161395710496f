"""Lists that gathers, scatters and object collectives are given: on which ranks, and with how many places."""

from __future__ import annotations

import ast

from ranksafe.rank_flow.operations import Operation
from ranksafe.rank_flow.run import Run
from ranksafe.rank_flow.syntax import argument
from ranksafe.rank_flow.traces import Event
from ranksafe.rank_flow.values import Constant, Sequence, Value

_WITHOUT_RESULT = frozenset(
    {"all_gather_object", "gather_object", "broadcast_object_list", "scatter_object_list"}
)
_AT_ROOT = {
    "gather": (1, "gather_list"),
    "gather_object": (1, "object_gather_list"),
    "scatter": (1, "scatter_list"),
    "scatter_object_list": (1, "scatter_object_input_list"),
}
"""The list that only the root needs: its position and keyword."""


def note_misuse(run: Run, event: Event, node: ast.Call, operation: Operation) -> None:
    """Lists on the wrong ranks, with too few places, and lists that nobody reads."""
    if not operation.name.startswith("torch.distributed."):
        return
    word = operation.name.rpartition(".")[2]
    if word in _AT_ROOT:
        _note_list_of_root(run, event, node, word)
    if word in ("all_gather_object", "all_gather"):
        _note_places(run, event, node)
    elif word == "broadcast_object_list":
        given = argument(node, 0, "object_list")
        receives = isinstance(event.root, Constant) and event.root.constant != run.world.rank
        if given is not None and receives and _is_no_list_to_keep(run, given):
            _note(run, "lost", event, node)
    elif word == "scatter_object_list":
        given = argument(node, 0, "scatter_object_output_list")
        value = None if given is None else run.look(given)
        if isinstance(value, Sequence) and not value.items:
            _note(run, "short", event, node, value)
    if word in _WITHOUT_RESULT and not isinstance(run.module.parent(node), ast.Expr):
        _note(run, "no result", event, node)


def _note(run: Run, kind: str, event: Event, node: ast.Call, value: Value | None = None) -> None:
    run.note(f"list {kind}", node, event=event, value=value)


def _note_places(run: Run, event: Event, node: ast.Call) -> None:
    """A place for each rank: none and one are too few in any world, and arguments may be the wrong way round."""
    if event.group is not None or not event.group_known or not node.args:
        return
    value = run.look(node.args[0])
    if isinstance(value, Sequence):
        if len(value.items) <= 1 < run.world.size:
            _note(run, "short", event, node, value)
    elif len(node.args) > 1 and "object" in event.operation.word:
        other = run.look(node.args[1])
        if isinstance(other, Sequence) and len(other.items) == run.world.size:
            empty = all(
                isinstance(item, Constant) and item.constant is None for item in other.items
            )
            if empty and isinstance(value, Constant):
                _note(run, "swapped", event, node, other)


def _note_list_of_root(run: Run, event: Event, node: ast.Call, word: str) -> None:
    given = argument(node, *_AT_ROOT[word])
    if not isinstance(event.root, Constant) or event.group is not None or not event.group_known:
        return
    if run.frame.condition is not None and run.frame.condition.varies.certain:
        # Which ranks come here is not known, but that not all do.
        return
    is_root = run.world.rank == event.root.constant
    value = Constant(None) if given is None else run.look(given)
    if isinstance(value, Sequence):
        if is_root and len(value.items) <= 1 < run.world.size:
            _note(run, "short on root", event, node, value)
        elif word != "scatter_object_list" and (is_root or value.items):
            kind = "of the root" if is_root else "elsewhere"
            _note(run, kind, event, node, value)
    elif isinstance(value, Constant) and value.constant is None and is_root and given is None:
        _note(run, "missing", event, node, value)


def _is_no_list_to_keep(run: Run, given: ast.expr) -> bool:
    """Whether what is received is lost: in a list that nobody has or reads, or in what is no list."""
    if isinstance(given, (ast.List, ast.Tuple, ast.ListComp, ast.Dict, ast.JoinedStr)):
        return True
    if isinstance(given, ast.Name) and _is_dropped(run, given):
        return True
    value = run.look(given)
    return isinstance(value, Constant) and not isinstance(value.constant, tuple)


def _is_dropped(run: Run, node: ast.Name) -> bool:
    """Whether a list that something was received into is not read afterwards."""
    module = run.module
    _, bindings = module.names.bindings(node)
    if module.enclosing_function(node) is None or any(
        isinstance(item, ast.arg) for item in bindings
    ):
        # Whoever gave it may read it.
        return False
    inside = module.loads_of_same_name(node)
    end = module.order_of(node)
    return all(module.order_of(load) <= end for load in inside) and not run.frame.loops
