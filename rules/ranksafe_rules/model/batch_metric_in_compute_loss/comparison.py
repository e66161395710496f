"""Comparisons of the model's output with the labels in a `compute_loss`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from ranksafe.semantics.module import Module

from ranksafe_rules._shared import trainer_methods as methods

_Test = Callable[[ast.expr], bool]


def comparisons(module: Module, function: methods.Function) -> Iterator[ast.expr]:
    """``a == b``, ``a != b``, ``torch.eq(a, b)`` and ``a.eq(b)`` of which one side is made of the model's output and
    the other of ``inputs["labels"]``."""
    parameters = methods.positional_names(function)
    if len(parameters) < 3:
        return
    model, inputs = parameters[1:3]

    def is_output(node: ast.expr) -> bool:
        return isinstance(node, ast.Call) and (
            methods.is_super_call(node, "compute_loss")
            or (isinstance(node.func, ast.Name) and node.func.id == model)
        )

    outputs = _names_made_of(module, function, is_output)
    labels = _names_made_of(module, function, lambda node: _is_labels(node, inputs))
    for kind in (ast.Compare, ast.Call):
        for node in module.nodes(kind, inside=function):
            sides = _sides(node)
            if sides is None:
                continue
            for one, other in (sides, sides[::-1]):
                if _reads_logits(one, outputs) and _reads_labels(other, labels, inputs):
                    assert isinstance(node, ast.expr)
                    yield node


def _sides(node: ast.AST) -> tuple[ast.expr, ast.expr] | None:
    if isinstance(node, ast.Compare):
        if len(node.ops) == 1 and isinstance(node.ops[0], (ast.Eq, ast.NotEq)):
            return node.left, node.comparators[0]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr in ("eq", "ne"):
            given = node.args if len(node.args) == 2 else [node.func.value, *node.args]
            return (given[0], given[1]) if len(given) == 2 else None
    return None


def _is_labels(node: ast.expr, inputs: str) -> bool:
    """``inputs["labels"]``, ``inputs.get("labels")``, ``inputs.pop("labels")``."""
    if isinstance(node, ast.Subscript):
        owner, key = node.value, node.slice
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
        if node.func.attr not in ("get", "pop"):
            return False
        owner, key = node.func.value, node.args[0]
    else:
        return False
    return (
        isinstance(owner, ast.Name)
        and owner.id == inputs
        and isinstance(key, ast.Constant)
        and key.value == "labels"
    )


def _names_made_of(module: Module, function: methods.Function, starts: _Test) -> set[str]:
    """Names that are assigned from an expression that ``starts`` holds of, or from such a name."""
    names: set[str] = set()
    before = -1
    while before != len(names):
        before = len(names)
        for node in module.nodes(ast.Assign, inside=function):
            assert isinstance(node, ast.Assign)
            if any(
                (isinstance(item, ast.expr) and starts(item))
                or (isinstance(item, ast.Name) and item.id in names)
                for item in ast.walk(node.value)
            ):
                for target in node.targets:
                    elements = target.elts if isinstance(target, ast.Tuple) else [target]
                    names |= {item.id for item in elements if isinstance(item, ast.Name)}
    return names


def _reads_logits(node: ast.expr, outputs: set[str]) -> bool:
    return any(isinstance(item, ast.Name) and item.id in outputs for item in ast.walk(node))


def _reads_labels(node: ast.expr, labels: set[str], inputs: str) -> bool:
    return any(
        (isinstance(item, ast.Name) and item.id in labels)
        or (isinstance(item, ast.expr) and _is_labels(item, inputs))
        for item in ast.walk(node)
    )
