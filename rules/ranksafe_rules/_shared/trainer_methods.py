"""Methods of a Trainer that users override, and the way of `num_items_in_batch` through them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from ranksafe.semantics.facts import TRAINER
from ranksafe.semantics.module import Module

COUNT = "num_items_in_batch"
_PASSING = frozenset({"to", "cuda", "cpu", "unsqueeze", "repeat", "expand", "view", "reshape"})
"""Tensor methods whose result is the count again, as a tensor."""

_REPLICA_COUNTS = frozenset({"n_gpu", "num_processes", "world_size", "device_count", "num_gpus"})

Function = ast.FunctionDef | ast.AsyncFunctionDef


def override_of(module: Module, node: ast.AST, *names: str) -> Function | None:
    """``node`` if it overrides one of a Trainer's methods ``names``, else None."""
    if not isinstance(node, Function) or node.name not in names:
        return None
    parent = module.parent(node)
    if not isinstance(parent, ast.ClassDef) or module.self_name(node) is None:
        return None
    return node if module.is_subclass(module.class_name(parent), TRAINER) else None


def parameter_names(function: Function) -> list[str]:
    """Names that can be given by keyword, ``self`` included."""
    arguments = function.args
    return [item.arg for item in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]


def positional_names(function: Function) -> list[str]:
    """Names of positional parameters, ``self`` included."""
    return [item.arg for item in (*function.args.posonlyargs, *function.args.args)]


def takes_count_by_name(function: Function) -> bool:
    """Whether the count is a parameter of its own (not an item of ``**kwargs``)."""
    return COUNT in parameter_names(function)


@dataclass(frozen=True, slots=True)
class Handover:
    """A call that hands the count on."""

    call: ast.Call
    argument: ast.expr
    """The argument it goes through."""
    to_library: bool
    """``super().compute_loss(...)``; else the model itself."""


def handovers(module: Module, function: Function) -> Iterator[Handover]:
    """Where a `compute_loss` hands the count (still as it came, or as a tensor made of it) to the model or to the
    library's `compute_loss`."""
    names = names_of_count(module, function)
    parameters = positional_names(function)
    model = parameters[1] if len(parameters) > 1 else "model"
    for call in module.nodes(ast.Call, inside=function):
        assert isinstance(call, ast.Call)
        to_library = is_super_call(call, "compute_loss")
        if not to_library and not (isinstance(call.func, ast.Name) and call.func.id == model):
            continue
        for argument in [*call.args, *(keyword.value for keyword in call.keywords)]:
            if carries_count(argument, names):
                yield Handover(call, argument, to_library)
                break


def names_of_count(module: Module, function: Function) -> set[str]:
    """Names in ``function`` that are the count or hold it: the parameter, ``**kwargs``, dictionaries it is put into."""
    names = {COUNT} & set(parameter_names(function))
    if function.args.kwarg is not None:
        names.add(function.args.kwarg.arg)
    if not names:
        return names
    before = -1
    while before != len(names):
        before = len(names)
        for node in module.nodes(ast.stmt, inside=function):
            names |= _receivers(node, names)
    return names


def _receivers(statement: ast.AST, names: set[str]) -> set[str]:
    """Names that a statement makes hold the count."""
    if isinstance(statement, ast.Assign) and carries_count(statement.value, names):
        found = set()
        for target in statement.targets:
            if isinstance(target, ast.Subscript) and _is_count_key(target.slice):
                target = target.value
            if isinstance(target, ast.Name):
                found.add(target.id)
        return found
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call = statement.value
        if isinstance(call.func, ast.Attribute) and call.func.attr == "update":
            given = [*call.args, *(keyword.value for keyword in call.keywords)]
            if isinstance(call.func.value, ast.Name) and any(
                carries_count(item, names) for item in given
            ):
                return {call.func.value.id}
    return set()


def _is_count_key(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == COUNT


def carries_count(node: ast.expr, names: set[str]) -> bool:
    """Whether the value of an expression is the count as a tensor, or a dictionary with it."""
    if isinstance(node, ast.Name):
        return node.id in names
    if isinstance(node, ast.Starred):
        return carries_count(node.value, names)
    if isinstance(node, ast.Dict):
        return any(carries_count(value, names) for value in node.values)
    if isinstance(node, ast.IfExp):
        return carries_count(node.body, names) or carries_count(node.orelse, names)
    if isinstance(node, ast.BinOp):
        return carries_count(node.left, names) or carries_count(node.right, names)
    if isinstance(node, ast.Subscript):
        key = node.slice
        other_item = (
            isinstance(key, ast.Constant) and key.value.__class__ is str and key.value != COUNT
        )
        return not other_item and carries_count(node.value, names)
    if isinstance(node, ast.Call):
        return _call_carries_count(node, names)
    return False


def _call_carries_count(call: ast.Call, names: set[str]) -> bool:
    function = call.func
    if isinstance(function, ast.Attribute):
        if function.attr in _PASSING:
            return carries_count(function.value, names)
        if function.attr in ("get", "pop"):
            given = call.args[:1]
            return bool(given) and _is_count_key(given[0]) and carries_count(function.value, names)
        if function.attr in ("as_tensor", "tensor"):
            return bool(call.args) and carries_count(call.args[0], names)
    if isinstance(function, ast.Name) and function.id == "dict":
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        return any(carries_count(value, names) for value in given)
    return False


def is_super_call(call: ast.Call, method: str) -> bool:
    """``super().method(...)`` or ``super(Cls, self).method(...)``."""
    function = call.func
    return (
        isinstance(function, ast.Attribute)
        and function.attr == method
        and isinstance(function.value, ast.Call)
        and isinstance(function.value.func, ast.Name)
        and function.value.func.id == "super"
    )


class Scaling(Enum):
    """What a `compute_loss` does so that the mean over the replicas is right."""

    NONE = "none"
    SHARED = "shared"
    """The count is divided by the number of replicas."""
    REPEATED = "repeated"
    """The count is only repeated for every replica."""
    LOSS = "loss"
    """Something is multiplied by the number of replicas or processes."""


def scaling(module: Module, function: Function) -> Scaling:
    """See `Scaling`; the strongest form found."""
    values = [assignment.value for assignment in rebindings_of_count(module, function)]
    names = names_of_count(module, function)
    for node in module.nodes(ast.BinOp, inside=function):
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Div, ast.FloorDiv)):
            if _mentions_replicas(node.right) and _mentions(node.left, names):
                return Scaling.SHARED
    for kind in (ast.BinOp, ast.AugAssign):
        for node in module.nodes(kind, inside=function):
            assert isinstance(node, (ast.BinOp, ast.AugAssign))
            if isinstance(node.op, ast.Mult) and _mentions_replicas(node):
                return Scaling.LOSS
    if any(_is_repeated(value) for value in values):
        return Scaling.REPEATED
    return Scaling.NONE


def is_converted(module: Module, function: Function) -> bool:
    """Whether the count is turned into a Python number, which nn.DataParallel copies to every replica (see RS502)."""
    return any(
        isinstance(node, ast.Call)
        and (
            (isinstance(node.func, ast.Attribute) and node.func.attr in ("item", "tolist"))
            or (isinstance(node.func, ast.Name) and node.func.id in ("int", "float"))
        )
        for assignment in rebindings_of_count(module, function)
        for node in ast.walk(assignment.value)
    )


def rebindings_of_count(module: Module, function: Function) -> list[ast.Assign]:
    """Assignments to the count's own name, in source order."""
    return [
        node
        for node in module.nodes(ast.Assign, inside=function)
        if isinstance(node, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == COUNT for target in node.targets)
    ]


def _is_repeated(value: ast.expr) -> bool:
    return any(
        isinstance(node, ast.Attribute) and node.attr in ("repeat", "expand", "expand_as")
        for node in ast.walk(value)
    )


def _mentions(node: ast.AST, names: set[str]) -> bool:
    return any(isinstance(item, ast.Name) and item.id in names for item in ast.walk(node))


def _mentions_replicas(node: ast.AST) -> bool:
    """Whether code reads how many GPUs or processes there are."""
    return any(
        (isinstance(item, ast.Attribute) and item.attr in _REPLICA_COUNTS)
        or (isinstance(item, ast.Name) and item.id in _REPLICA_COUNTS)
        for item in ast.walk(node)
    )
