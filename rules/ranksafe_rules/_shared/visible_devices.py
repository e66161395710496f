"""What a file puts into CUDA_VISIBLE_DEVICES."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ranksafe.semantics.module import Module
from ranksafe.semantics.walking import unparsed


def visible_devices(module: Module, *, several: bool) -> ast.expr | None:
    """What is put into CUDA_VISIBLE_DEVICES: several devices, or (else) one, none, or nobody knows which."""
    if not module.facts.visible_devices:
        return None
    for value in (*_assigned(module), *_set_by_default(module)):
        chosen = module.values(value).only_constant()
        if (isinstance(chosen, str) and "," in chosen) == several:
            return value
    return None


def leaves_one_gpu(module: Module) -> bool:
    """Whether the file itself, whatever its users do, shows its process one GPU: ``os.environ[...] = "1"``, somewhere
    under no condition."""
    if not module.facts.visible_devices:
        return False
    values = list(_assigned(module))
    chosen = [module.values(value).only_constant() for value in values]
    return not all(_is_conditional(module, value) for value in values) and all(
        isinstance(item, str) and item.strip().isdigit() for item in chosen
    )


def _is_conditional(module: Module, node: ast.AST) -> bool:
    return any("__name__" not in unparsed(guard.test) for guard in module.guards(node))


def _assigned(module: Module) -> Iterator[ast.expr]:
    for node in module.nodes(ast.Assign):
        assert isinstance(node, ast.Assign)
        for target in node.targets:
            if isinstance(target, ast.Subscript) and _is_the_variable(target.slice):
                yield node.value


def _set_by_default(module: Module) -> Iterator[ast.expr]:
    """``os.environ.setdefault("CUDA_VISIBLE_DEVICES", "0")``"""
    for call in module.calls_written("setdefault"):
        if len(call.args) == 2 and _is_the_variable(call.args[0]):
            yield call.args[1]


def _is_the_variable(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == "CUDA_VISIBLE_DEVICES"
