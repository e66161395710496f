"""Which models a file's optimizers change."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ranksafe.semantics.module import Module

_OPTIMIZERS = "torch.optim."
SCHEDULES = "torch.optim.lr_scheduler."
"""Where torch's own learning-rate schedules stand."""
_PARAMETERS = ("parameters", "named_parameters")


def is_left_alone(module: Module, wrap: ast.AST) -> bool:
    """Whether the file that wraps a model says which models its optimizers change, and this one is none of them: a
    frozen model, wrapped by habit."""
    if module.parent(wrap) is None:
        return False  # Wrapped in another file.
    changed: set[str] = set()
    for call in module.nodes(ast.Call):
        name = module.qualified_name(call.func) if isinstance(call, ast.Call) else None
        if name is None or not name.startswith(_OPTIMIZERS) or name.startswith(SCHEDULES):
            continue
        assert isinstance(call, ast.Call)
        given = module.argument_node(call, "params", 0)
        models = [] if given is None else list(_models_of(module, given))
        if not models or None in models:
            return False
        changed.update(model for model in models if model is not None)
    return bool(changed) and changed.isdisjoint(_names_of(module, wrap))


def _models_of(module: Module, given: ast.expr) -> Iterator[str | None]:
    """The variables whose parameters an optimizer is given; None: something else."""
    behind = [given]
    if isinstance(given, ast.Name):
        behind = [value.node for value in module.values(given).known]
    for expression in behind:
        for node in ast.walk(expression):
            if isinstance(node, ast.Call):
                function = node.func
                if not isinstance(function, ast.Attribute) or function.attr not in _PARAMETERS:
                    yield None
                    continue
                model = function.value
                while isinstance(model, ast.Attribute):
                    model = model.value
                yield model.id if isinstance(model, ast.Name) else None


def _names_of(module: Module, wrap: ast.AST) -> set[str]:
    """The variables that a wrapper, and what it wraps, go by."""
    names = {node.id for node in ast.walk(wrap) if isinstance(node, ast.Name)}
    parent = module.parent(wrap)
    for target in parent.targets if isinstance(parent, ast.Assign) else ():
        names |= {node.id for node in ast.walk(target) if isinstance(node, ast.Name)}
    return names
