"""Lists that gathers, scatters and object collectives are given: on which ranks, and with how many places."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ranksafe.semantics.rank_flow.operations import Operation
from ranksafe.semantics.rank_flow.traces import Event
from ranksafe.semantics.rank_flow.values import Known, Many, Value
from ranksafe.semantics.walking import FUNCTIONS

if TYPE_CHECKING:
    from ranksafe.semantics.rank_flow.interpreter import Interpreter

_WITHOUT_RESULT = frozenset(
    {"all_gather_object", "gather_object", "broadcast_object_list", "scatter_object_list"}
)
_AT_ROOT = {
    "gather": ("gather_list", 1),
    "gather_object": ("object_gather_list", 1),
    "scatter": ("scatter_list", 1),
    "scatter_object_list": ("scatter_object_input_list", 1),
}
"""The list that only the root needs: its keyword and position."""


class ObjectLists:
    """Notes lists that cannot be used."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._run = interpreter.run
        self._interpreter = interpreter

    def note_misuse(self, event: Event, node: ast.Call, operation: Operation) -> None:
        """Lists on the wrong ranks, with too few places, and lists that nobody reads."""
        if not operation.name.startswith("torch.distributed."):
            return
        word = operation.name.rpartition(".")[2]
        if word in _AT_ROOT:
            self._note_list_of_root(event, node, word)
        if word in ("all_gather_object", "all_gather"):
            self._note_places(event, node)
        elif word == "broadcast_object_list":
            given = _argument(node, "object_list", 0)
            if given is not None and self._is_no_list_to_keep(given):
                self._note("object-list", event, node)
        elif word == "scatter_object_list":
            given = _argument(node, "scatter_object_output_list", 0)
            value = None if given is None else self._interpreter.expressions.look(given)
            if isinstance(value, Many) and not value.items:
                self._note("object-list", event, node, value)
        if word in _WITHOUT_RESULT and not isinstance(self._run.module.parent(node), ast.Expr):
            self._note("object-list", event, node)

    def _note(self, kind: str, event: Event, node: ast.Call, value: Value | None = None) -> None:
        self._run.note(kind, node, event=event, value=value)

    def _note_places(self, event: Event, node: ast.Call) -> None:
        """A place for each rank: none and one are too few in any world, and arguments may be the wrong way round."""
        if event.group is not None or not event.group_known or not node.args:
            return
        value = self._interpreter.expressions.look(node.args[0])
        if isinstance(value, Many):
            if len(value.items) <= 1 < self._run.world.size:
                self._note("object-list", event, node, value)
        elif len(node.args) > 1 and "object" in event.operation.word:
            other = self._interpreter.expressions.look(node.args[1])
            if isinstance(other, Many) and len(other.items) == self._run.world.size:
                empty = all(
                    isinstance(item, Known) and item.constant is None for item in other.items
                )
                if empty and isinstance(value, Known):
                    self._note("object-list", event, node, other)

    def _note_list_of_root(self, event: Event, node: ast.Call, word: str) -> None:
        given = _argument(node, *_AT_ROOT[word])
        if not isinstance(event.root, Known) or event.group is not None or not event.group_known:
            return
        is_root = self._run.world.rank == event.root.constant
        value = Known(None) if given is None else self._interpreter.expressions.look(given)
        if isinstance(value, Many):
            if is_root and len(value.items) <= 1 < self._run.world.size:
                self._note("no-object-list", event, node, value)
            elif word != "scatter_object_list" and (is_root or value.items):
                kind = "root-object-list" if is_root else "object-list"
                self._note(kind, event, node, value)
        elif is_root and (given is None or isinstance(given, ast.Constant)):
            # A None that is handed down may be for the other ranks.
            self._note("no-object-list", event, node, value)

    def _is_no_list_to_keep(self, given: ast.expr) -> bool:
        """Whether what is received is lost: in a list that nobody has or reads, or in what is no list."""
        if isinstance(given, (ast.List, ast.Tuple, ast.ListComp, ast.Dict, ast.JoinedStr)):
            return True
        if isinstance(given, ast.Name) and self._is_dropped(given):
            return True
        value = self._interpreter.expressions.look(given)
        return isinstance(value, Known) and not isinstance(value.constant, tuple)

    def _is_dropped(self, node: ast.Name) -> bool:
        """Whether a list that something was received into is not read afterwards."""
        module = self._run.module
        if module.enclosing_function(node) is None:
            return False
        inside = module.loads_of_same_name(node)
        end = module.order_of(node)
        return all(module.order_of(load) <= end for load in inside) and not self._in_loop(node)

    def _in_loop(self, node: ast.AST) -> bool:
        current = self._run.module.parent(node)
        while current is not None and not isinstance(current, FUNCTIONS):
            if isinstance(current, (ast.For, ast.While, ast.AsyncFor)):
                return True
            current = self._run.module.parent(current)
        return False


def _argument(node: ast.Call, keyword: str, position: int) -> ast.expr | None:
    for item in node.keywords:
        if item.arg == keyword:
            return item.value
    return node.args[position] if len(node.args) > position else None
