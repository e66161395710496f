"""What statements do with a tensor that an operation is still reading or writing."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ranksafe.rank_flow.tables import methods_that
from ranksafe.semantics.module import Module
from ranksafe.semantics.walking import FUNCTIONS, unparsed

_READING_BUILTINS = frozenset({"print", "float", "int", "bool", "sum", "max", "min"})
_DEPTH = 2


def viewed(node: ast.expr | None) -> ast.expr | None:
    """The variable, attribute or item that a tensor argument is, or is a slice or view of."""
    while node is not None:
        if (isinstance(node, ast.Subscript) and _is_slice(node.slice)) or (
            isinstance(node, ast.Attribute) and node.attr in methods_that("same storage")
        ):
            node = node.value
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in methods_that("views") - methods_that("may copy")
        ):
            node = node.func.value
        else:
            break
    current = node
    while isinstance(current, (ast.Attribute, ast.Subscript)):
        if isinstance(current, ast.Subscript) and not isinstance(
            current.slice, (ast.Name, ast.Constant)
        ):
            return None
        current = current.value
    return node if isinstance(current, ast.Name) else None


def slice_of(node: ast.expr) -> ast.expr | None:
    """Of a tensor argument, the slice of the variable (`viewed`) that it is a view of; None where it is all of it."""
    found = None
    base = viewed(node)
    for part in ast.walk(node):
        if isinstance(part, ast.Subscript) and part.value is base and _is_slice(part.slice):
            found = part.slice
    return found


def _is_slice(index: ast.expr) -> bool:
    items = index.elts if isinstance(index, ast.Tuple) else [index]
    return any(isinstance(item, ast.Slice) for item in items)


def names_in(tensor: ast.expr) -> frozenset[str]:
    """The variables whose new assignment makes it another tensor."""
    return frozenset(node.id for node in ast.walk(tensor) if isinstance(node, ast.Name))


class TensorUses:
    """Uses of one tensor in a function, or of a slice of it."""

    def __init__(
        self, module: Module, tensor: ast.expr, part: ast.expr | None = None, *, only_changes: bool
    ) -> None:
        self._module = module
        self._written = unparsed(tensor)
        self._part = part
        self._only_changes = only_changes
        """The operation only reads it: reading it meanwhile is right."""

    def first(self, node: ast.AST, depth: int = 0) -> ast.AST | None:
        """The first place inside a node that needs the tensor to be finished."""
        for item in self._mentions(node):
            if self._needs(item, depth):
                return item
        return None

    def _mentions(self, node: ast.AST) -> Iterator[ast.expr]:
        """Where the tensor is written, in source order; functions defined there do not run there."""
        if isinstance(node, (*FUNCTIONS, ast.Lambda, ast.ClassDef)):
            return
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
            if unparsed(node) == self._written:
                yield node
                return
        for child in ast.iter_child_nodes(node):
            yield from self._mentions(child)

    def _needs(self, node: ast.expr, depth: int) -> bool:
        current: ast.AST = node
        parent = self._module.parent(current)
        while isinstance(parent, ast.Attribute) or (
            isinstance(parent, ast.Subscript) and parent.value is current
        ):
            answer = self._of_part(parent)
            if answer is not None:
                return answer
            current, parent = parent, self._module.parent(parent)
            if isinstance(parent, ast.Call) and parent.func is current:
                current, parent = parent, self._module.parent(parent)
        if isinstance(parent, ast.AugAssign):
            return parent.target is current or not self._only_changes
        if isinstance(parent, ast.Call):
            return self._passed(parent, current, depth)
        if self._only_changes:
            return False
        if isinstance(parent, ast.Compare):
            return not isinstance(parent.ops[0], (ast.Is, ast.IsNot, ast.In, ast.NotIn))
        return isinstance(parent, (ast.BinOp, ast.UnaryOp, ast.FormattedValue)) and not (
            isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not)
        )

    def _of_part(self, part: ast.Attribute | ast.Subscript) -> bool | None:
        """Whether an item, an attribute or a method needs the tensor; None where it is only another view of it."""
        if isinstance(part, ast.Subscript):
            if self._part is not None and unparsed(part.slice) != unparsed(self._part):
                return False  # another part of the tensor, as far as is known
            return True if isinstance(part.ctx, (ast.Store, ast.Del)) else None
        call = self._module.parent(part)
        if not (isinstance(call, ast.Call) and call.func is part):
            return None if part.attr in methods_that("same storage") else False
        if part.attr in methods_that("needs no values"):
            return False
        if part.attr.endswith("_") and not part.attr.endswith("__"):
            return True
        return None if part.attr in methods_that("views") else not self._only_changes

    def _passed(self, call: ast.Call, argument: ast.AST, depth: int) -> bool:
        """Whether a call needs what it is given."""
        module = self._module
        name = module.qualified_name(call.func) or ""
        last = name.rpartition(".")[2]
        if name.startswith(("torch.distributed.", "deepspeed.")) or last in methods_that(
            "takes shape only"
        ):
            return False
        function = module.function_called(call)
        if function is not None:
            return depth < _DEPTH and self._needed_by(function, call, argument, depth)
        if self._only_changes:
            return False
        if name.startswith("builtins."):
            return last in _READING_BUILTINS
        if isinstance(call.func, ast.Attribute) and call.func.attr.endswith("_"):
            return call.func.attr not in methods_that("needs no values")
        return name.startswith("torch.") and not name.startswith(("torch.cuda.", "torch.futures."))

    def _needed_by(
        self, function: ast.FunctionDef | ast.AsyncFunctionDef, call: ast.Call, argument: ast.AST,
        depth: int,
    ) -> bool:  # fmt: skip
        """Whether a function of the file uses a parameter before anything in it could wait."""
        arguments = function.args
        names = [item.arg for item in (*arguments.posonlyargs, *arguments.args)]
        if isinstance(call.func, ast.Attribute) and self._module.self_name(function) is not None:
            names = names[1:]
        given = next((item.arg for item in call.keywords if item.value is argument), None)
        if given is None:
            position = next((i for i, item in enumerate(call.args) if item is argument), None)
            if position is None or position >= len(names):
                return False
            given = names[position]
        name = ast.Name(given, ast.Load())
        inner = TensorUses(self._module, name, self._part, only_changes=self._only_changes)
        for statement in function.body:
            if waits_in(statement):
                return False
            if inner.first(statement, depth + 1) is not None:
                return True
            if given in stored_in(statement) or isinstance(statement, ast.If):
                return False
        return False


def waits_in(node: ast.AST) -> bool:
    """Whether something in a statement waits for works, a stream or the device, or lets other code do so."""
    for item in ast.walk(node):
        if isinstance(item, (ast.Await, ast.Yield, ast.YieldFrom)):
            return True
        if isinstance(item, ast.Call):
            callee = item.func
            word = callee.attr if isinstance(callee, ast.Attribute) else getattr(callee, "id", "")
            if word in methods_that("waits") or "wait" in word or "sync" in word.split("_")[0]:
                return True
    return False


def stored_in(node: ast.AST) -> frozenset[str]:
    """Variables that a statement binds."""
    return frozenset(
        item.id
        for item in ast.walk(node)
        if isinstance(item, ast.Name) and isinstance(item.ctx, (ast.Store, ast.Del))
    )
