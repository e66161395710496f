"""Whether the statements behind an asynchronous call use its tensor before they look at the work."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ranksafe.rank_flow.async_handles import Handle, looked_at
from ranksafe.rank_flow.operations import Operation
from ranksafe.rank_flow.tensor_uses import (
    TensorUses,
    names_in,
    slice_of,
    stored_in,
    viewed,
    waits_in,
)
from ranksafe.semantics.module import Module
from ranksafe.semantics.walking import FUNCTIONS

_LEAVES = (ast.Return, ast.Raise, ast.Break, ast.Continue)
_BLOCKS = ("body", "orelse", "finalbody", "handlers")


def used_before_wait(module: Module, call: ast.Call, operation: Operation, handle: Handle) -> bool:
    """Whether a tensor of the call is certainly used too early: what is written by it, or changed under it."""
    if handle.kind != "kept" or handle.holder is None or isinstance(operation.result, str):
        return False
    if isinstance(handle.holder, ast.Name) and not looked_at(module, handle.holder):
        # Nobody waits: that is judged by what follows anywhere.
        return False
    output = None if operation.output is None else operation.output.of(call)
    for index, argument in enumerate(call.args[:2]):
        if index == 1 and (operation.kind == "point-to-point" or output is argument):
            continue
        if operation.root is not None and operation.root.of(call) is argument:
            continue
        if _Search(module, call, handle, argument, output is argument).found():
            return True
    return False


def changed_behind(module: Module, call: ast.Call, tensor: ast.expr | None) -> bool:
    """Whether statements behind a call for which nobody waits may change a tensor that it is reading."""
    return (
        tensor is not None
        and _Search(module, call, Handle("dropped"), tensor, written=False).found()
    )


class _Search:
    """Goes through the statements behind the call, in the order in which they run."""

    def __init__(
        self, module: Module, call: ast.Call, handle: Handle, argument: ast.expr, written: bool
    ) -> None:
        self._module = module
        self._call = call
        self._holder = handle.holder
        self._names: frozenset[str] = frozenset()
        self._uses: TensorUses | None = None
        tensor, part = viewed(argument), slice_of(argument)
        if tensor is not None:
            self._names = names_in(tensor) | (frozenset() if part is None else names_in(part))
            self._uses = TensorUses(module, tensor, part, only_changes=not written)

    def found(self) -> bool:
        """Whether a use comes before anything that may wait."""
        statement = _statement_of(self._module, self._call)
        if statement is None or self._uses is None:
            return False
        for following in _following(self._module, statement, self._names):
            if self._may_wait(following):
                return False
            if self._uses.first(following) is not None:
                return not (self._holder and self._condition_hides(following))
            if isinstance(following, _LEAVES) or self._names & stored_in(following):
                return False
        return False

    def _condition_hides(self, statement: ast.stmt) -> bool:
        """``if not async_op: ...``: what runs there knows more than can be seen."""
        return isinstance(statement, (ast.If, ast.Try, ast.Match)) or (
            isinstance(statement, (ast.For, ast.While))
            and any(isinstance(item, (ast.If, ast.Try)) for item in ast.walk(statement))
        )

    def _may_wait(self, statement: ast.stmt) -> bool:
        if waits_in(statement):
            return True
        holder = self._holder
        for node in ast.walk(statement):
            if isinstance(holder, ast.Name):
                if isinstance(node, ast.Name) and node.id == holder.id:
                    return True
            elif isinstance(holder, ast.Attribute):
                if isinstance(node, ast.Attribute) and node.attr == holder.attr:
                    return True
                if isinstance(node, ast.Call) and self._callee_may_wait(node, holder.attr):
                    return True
        return False

    def _callee_may_wait(self, call: ast.Call, attribute: str) -> bool:
        """Whether a called function may wait for a work that lies in an attribute."""
        module = self._module
        if (module.qualified_name(call.func) or "").startswith(("torch.", "builtins.", "math.")):
            return False
        function = module.function_called(call)
        if function is None:
            # A method of the tensor does not, and nothing that is called on what it gives.
            method = call.func
            return not (isinstance(method, ast.Attribute) and self._names & names_in(method.value))
        if waits_in(function):
            return True
        return any(
            isinstance(node, ast.Attribute) and node.attr == attribute
            for node in ast.walk(function)
        )


def _statement_of(module: Module, node: ast.AST) -> ast.stmt | None:
    current: ast.AST | None = node
    while current is not None and not isinstance(current, ast.stmt):
        current = module.parent(current)
    return current


def _following(module: Module, statement: ast.stmt, names: frozenset[str]) -> Iterator[ast.stmt]:
    """Statements that run next, the start of the loop around included; those of ``with`` one by one."""
    current: ast.stmt = statement
    while True:
        holder = module.parent(current)
        block = _block_with(holder, current)
        if holder is None or not block:
            return
        for item in block[block.index(current) + 1 :]:
            yield from _flat(item)
        if isinstance(holder, (ast.For, ast.AsyncFor, ast.While)):
            target = holder.target if isinstance(holder, (ast.For, ast.AsyncFor)) else None
            if target is not None and names & stored_in(target):
                return
            for item in block[: block.index(current) + 1]:
                if item is not statement:
                    yield from _flat(item)
        elif isinstance(holder, (ast.Module, *FUNCTIONS)) or not isinstance(
            holder, (ast.If, ast.With)
        ):
            return
        current = holder


def _block_with(holder: ast.AST | None, statement: ast.stmt) -> list[ast.stmt]:
    for name in _BLOCKS:
        block = getattr(holder, name, None)
        if isinstance(block, list) and any(item is statement for item in block):
            return block
    return []


def _flat(statement: ast.stmt) -> Iterator[ast.stmt]:
    if isinstance(statement, ast.With):
        for item in statement.body:
            yield from _flat(item)
    else:
        yield statement
