"""Tensors that nn.DataParallel cannot give to every replica: 0-d ones, and ones of length one."""

from __future__ import annotations

import ast
from collections.abc import Callable
from enum import Enum

from ranksafe.semantics.module import Module

_SAME = frozenset(
    {"to", "cuda", "cpu", "float", "half", "double", "bfloat16", "long", "int", "type", "detach"}
    | {"clone", "contiguous", "requires_grad_"}
)
_REDUCTIONS = frozenset({"sum", "mean", "prod", "max", "min", "amax", "amin", "std", "var", "norm"})
_FROM_DATA = frozenset({"torch.tensor", "torch.as_tensor", "torch.nn.Parameter"})
_FROM_SIZE = frozenset(
    {f"torch.{name}" for name in ("zeros", "ones", "rand", "randn", "empty", "full")}
)
_NUMBERS = frozenset({"builtins.float", "builtins.int", "builtins.bool"})
_NUMBER_CALLS = frozenset({"builtins.float", "builtins.int", "builtins.len", "builtins.round"})
_MAXIMUM_DEPTH = 4


class Small(Enum):
    """How a tensor is too small to be split along the batch."""

    ZERO_DIMENSIONAL = "zero-dimensional"
    LENGTH_ONE = "length-one"


def small_tensor(
    module: Module, node: ast.expr, is_tensor: Callable[[ast.expr], bool], depth: int = 0
) -> Small | None:
    """How the tensor that ``node`` certainly is, or holds in a dictionary, list or tuple, is too small.

    ``is_tensor`` knows further expressions that are tensors (a Trainer's ``inputs[...]``).
    """
    if depth > _MAXIMUM_DEPTH:
        return None

    def again(item: ast.expr) -> Small | None:
        return small_tensor(module, item, is_tensor, depth + 1)

    if isinstance(node, (ast.Name, ast.Attribute)):
        values = module.values(node)
        found = {again(value.node) for value in values.known if value.node is not node}
        return found.pop() if values.complete and len(found) == 1 else None
    if isinstance(node, ast.Dict):
        return next((kind for value in node.values if (kind := again(value))), None)
    if isinstance(node, (ast.List, ast.Tuple)):
        return next((kind for value in node.elts if (kind := again(value))), None)
    if isinstance(node, ast.Subscript):
        is_first = isinstance(node.slice, ast.Slice) and _is_first_only(node.slice)
        return Small.LENGTH_ONE if is_first and is_tensor(node.value) else None
    if isinstance(node, ast.Call):
        return _of_call(module, node, is_tensor, again)
    return None


def _of_call(
    module: Module,
    call: ast.Call,
    is_tensor: Callable[[ast.expr], bool],
    again: Callable[[ast.expr], Small | None],
) -> Small | None:
    name = module.qualified_name(call.func)
    if name in _FROM_DATA and call.args:
        return _of_data(module, call.args[0], again)
    if name in _FROM_SIZE and call.args:
        return _of_size(call)
    if name == "torch.scalar_tensor":
        return Small.ZERO_DIMENSIONAL
    reduced = name is not None and name.startswith("torch.") and name[6:] in _REDUCTIONS
    if reduced and len(call.args) == 1 and not call.keywords:
        return Small.ZERO_DIMENSIONAL
    if not isinstance(call.func, ast.Attribute):
        return None
    receiver, method = call.func.value, call.func.attr
    if method in _SAME:
        return again(receiver)
    if method in _REDUCTIONS and not call.args and not call.keywords:
        return Small.ZERO_DIMENSIONAL if is_tensor(receiver) else None
    if method in ("unsqueeze", "view", "reshape"):
        return Small.LENGTH_ONE if again(receiver) is Small.ZERO_DIMENSIONAL else None
    return None


def _of_data(
    module: Module, data: ast.expr, again: Callable[[ast.expr], Small | None]
) -> Small | None:
    if is_number(module, data):
        return Small.ZERO_DIMENSIONAL
    if isinstance(data, (ast.List, ast.Tuple)):
        single = len(data.elts) == 1 and is_number(module, data.elts[0])
        return Small.LENGTH_ONE if single else None
    return again(data) if isinstance(data, ast.Call) else None


def _of_size(call: ast.Call) -> Small | None:
    size = call.args[0]
    elements = size.elts if isinstance(size, (ast.Tuple, ast.List)) else [size]
    if len(call.args) > (2 if _is_full(call) else 1):
        return None
    if not elements:
        return Small.ZERO_DIMENSIONAL
    single = len(elements) == 1 and isinstance(elements[0], ast.Constant)
    return Small.LENGTH_ONE if single and elements[0].value == 1 else None  # type: ignore[attr-defined]


def _is_full(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "full"


def is_number(module: Module, node: ast.expr) -> bool:
    """Whether an expression is a Python number: a constant, arithmetic on numbers, ``float(...)``, a variable that has
    only such values or is annotated as one, a parameter whose default is a number."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, (int, float))
    if isinstance(node, ast.UnaryOp):
        return is_number(module, node.operand)
    if isinstance(node, ast.BinOp):
        return is_number(module, node.left) and is_number(module, node.right)
    if isinstance(node, ast.Call):
        return module.qualified_name(node.func) in _NUMBER_CALLS
    if isinstance(node, (ast.Name, ast.Attribute)):
        if module.type_of(node) in _NUMBERS:
            return True
        known = module.values(node).known
        return bool(known) and all(
            value.is_constant and isinstance(value.constant, (int, float)) for value in known
        )
    return False


def _is_first_only(part: ast.Slice) -> bool:
    return part.lower is None and isinstance(part.upper, ast.Constant) and part.upper.value == 1
