"""Asynchronous collectives whose work object is thrown away although the tensor is used."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ranksafe.semantics.rank_flow.issues import Issue, Kind
from ranksafe.semantics.rank_flow.operations import Operation, operations
from ranksafe.semantics.rank_flow.traces import Place

if TYPE_CHECKING:
    from ranksafe.semantics.module import Module

_STRUCTURE = frozenset({"shape", "dtype", "device", "ndim", "size", "numel", "dim"})
_SYNCHRONISES = frozenset({"synchronize", "wait", "wait_all", "barrier", "wait_stream"})


def unwaited(module: Module) -> Iterator[Issue]:
    """Asynchronous calls that nobody waits for, each at its call."""
    written = {
        name.rpartition(".")[2]
        for name, operation in operations().items()
        if operation.asynchronous is not None or operation.always_asynchronous
    }
    candidates = [
        call
        for unit in module.all_units()
        for word in written.intersection(unit.calls())
        for call in unit.calls()[word]
    ]
    for call in candidates:
        operation = operations().get(module.qualified_name(call.func) or "")
        if operation is None or not _is_asynchronous(operation, call):
            continue
        if operation.word == "batch_isend_irecv":
            continue
        dropped = _is_dropped(module, call) and _is_used_later(module, call, operation)
        if dropped or _is_only_collected(module, call) or _is_read_before(module, call, operation):
            yield Issue(Kind.NEVER_WAITED_FOR, Place(call, module), operation.word)


def _is_only_collected(module: Module, call: ast.Call) -> bool:
    """``works.append(all_reduce(..., async_op=True))`` with a list that nobody reads."""
    parent = module.parent(call)
    if not (
        isinstance(parent, ast.Call)
        and isinstance(parent.func, ast.Attribute)
        and parent.func.attr == "append"
        and isinstance(parent.func.value, ast.Name)
    ):
        return False
    scope, _ = module.names.bindings(parent.func.value)
    if (
        scope is None
        or scope.kind != "function"
        or scope.node is not module.enclosing_function(call)
    ):
        return False
    return all(
        isinstance(holder := module.parent(load), ast.Attribute) and holder.attr == "append"
        for load in module.loads_of_same_name(parent.func.value)
    )


def _is_read_before(module: Module, call: ast.Call, operation: Operation) -> bool:
    """``work = irecv(x)`` with x read before the work is looked at, in the same block."""
    parent = module.parent(call)
    if not isinstance(parent, ast.Assign) or len(parent.targets) != 1 or not call.args:
        return False
    target, tensor = parent.targets[0], call.args[0]
    if not isinstance(target, ast.Name) or not isinstance(tensor, ast.Name):
        return False
    if operation.word in ("isend", "send") or isinstance(operation.result, str):
        return False
    order = module.order_of
    after = [load for load in module.loads_of_same_name(target) if order(load) > order(call)]
    reads = [
        load
        for load in module.loads_of_same_name(tensor)
        if order(load) > order(call)
        and load is not tensor
        and not (
            isinstance(holder := module.parent(load), ast.Attribute) and holder.attr in _STRUCTURE
        )
    ]
    if not reads or not after:
        return False
    block = _block_of(module, parent)
    first = _statement_in(module, reads[0], block)
    return first is not None and order(reads[0]) < order(after[0])


def _block_of(module: Module, statement: ast.stmt) -> list[ast.stmt]:
    holder = module.parent(statement)
    for name in ("body", "orelse", "finalbody"):
        block = getattr(holder, name, None)
        if isinstance(block, list) and statement in block:
            return block
    return []


def _statement_in(module: Module, node: ast.AST, block: list[ast.stmt]) -> ast.stmt | None:
    current: ast.AST | None = node
    while current is not None:
        if isinstance(current, ast.stmt) and any(current is item for item in block):
            return current
        current = module.parent(current)
    return None


def _is_asynchronous(operation: Operation, call: ast.Call) -> bool:
    if operation.always_asynchronous:
        return True
    if operation.asynchronous is None:
        return False
    given = operation.asynchronous.of(call)
    return isinstance(given, ast.Constant) and given.value is True


def _is_dropped(module: Module, call: ast.Call) -> bool:
    parent = module.parent(call)
    if isinstance(parent, ast.Expr):
        return True
    if isinstance(parent, ast.Assign) and len(parent.targets) == 1:
        target = parent.targets[0]
        if isinstance(target, ast.Name):
            return not module.loads_of_same_name(target)
    return False


def _is_used_later(module: Module, call: ast.Call, operation: Operation) -> bool:
    function = module.enclosing_function(call)
    scope: ast.AST = module.tree if function is None else function
    tensor = call.args[0] if call.args else None
    if operation.word == "isend":
        # Whether the buffer is free again is known to nobody.
        return True
    if isinstance(operation.result, str) or not isinstance(tensor, (ast.Name, ast.Attribute)):
        return False
    order = module.order_of
    for other in module.nodes(ast.Call, None if function is None else function):
        assert isinstance(other, ast.Call)
        word = other.func.attr if isinstance(other.func, ast.Attribute) else ""
        if word in _SYNCHRONISES and order(other) > order(call):
            return False
    end = (getattr(call, "end_lineno", 0), getattr(call, "end_col_offset", 0))
    return any(
        _same_tensor(name, tensor) and (name.lineno, name.col_offset) > end  # type: ignore[attr-defined]
        for name in ast.walk(scope)
    )


def _same_tensor(node: ast.AST, tensor: ast.Name | ast.Attribute) -> bool:
    if isinstance(tensor, ast.Name):
        return (
            isinstance(node, ast.Name) and node.id == tensor.id and isinstance(node.ctx, ast.Load)
        )
    return isinstance(node, ast.Attribute) and node.attr == tensor.attr
