"""Layers of a wrapped model that nothing ever calls."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final

from ranksafe.semantics.module import Module

from ranksafe_rules._shared.trained_layers import has_parameters
from ranksafe_rules._shared.wrapped_models import DISTRIBUTED

_OPTIONS: Final = {
    "find_unused_parameters": 8,
    "static_graph": 11,
    "skip_all_reduce_unused_params": 16,
}
"""Arguments of DistributedDataParallel (torch 2.13.0) with which unused parameters do no harm, and where they stand."""
_OTHERWISE: Final = re.compile(
    r"requires_grad(_\(|\s*=[^=]|[\"'])|_set_static_graph|_to_ignore|_delay_all_reduce|\.set_submodule\("
)
"""Some parameters may be frozen, or be left out by DistributedDataParallel."""
_CONVERSION: Final = "torch.nn.SyncBatchNorm.convert_sync_batchnorm"
_MODULE: Final = "torch.nn.Module"
_ALL_PARTS: Final = frozenset(
    {
        "children", "modules", "named_children", "named_modules", "parameters", "named_parameters", "__dict__",
        "_modules", "_parameters", "get_submodule", "get_parameter", "state_dict", "__getattr__", "__getattribute__",
    }
)  # fmt: skip
"""Ways to all layers that name none of them."""
_TERMS: Final = frozenset({"norm", "pow", "abs", "square", "sum", "mean", "dot", "view", "flatten"})
"""What makes a term of the loss out of a parameter."""
_AFTER_A_USE: Final = "(.,)[]:\n"
_MAXIMUM_DEPTH: Final = 3


@dataclass(frozen=True, slots=True)
class UnusedLayer:
    """``self.name = nn.Linear(...)`` of which nothing reads the name."""

    module: Module
    cls: ast.ClassDef
    store: ast.Attribute


def unused_layers(module: Module, wrap: ast.Call) -> list[UnusedLayer]:
    """The layers without any use in the model that a call wraps; none where something may use them after all, or
    where the wrapper was told to expect that."""
    if module.qualified_name(wrap.func) != DISTRIBUTED or _expects_unused(module, wrap):
        return []
    model = module.argument_node(wrap, "module", 0)
    if model is None or module.text_says(_may_be_left_out) or not module.users_mention("backward"):
        return []
    found = _class_of(module, module.type_of(_converted(module, model)))
    if found is None or _sums_parameters(module):
        return []
    return list(dict.fromkeys(_unused_in(*found, (module,), _MAXIMUM_DEPTH)))


def _expects_unused(module: Module, wrap: ast.Call) -> bool:
    for name, position in _OPTIONS.items():
        given = module.argument(wrap, name, position)
        if given is not None and given.only_constant() is not False:
            return True
    return False


def _may_be_left_out(text: str) -> bool:
    return _OTHERWISE.search(text) is not None


def _converted(module: Module, model: ast.expr) -> ast.expr:
    """``net`` of ``convert_sync_batchnorm(net)``."""
    value = module.values(model).only_expression()
    if isinstance(value, ast.Call) and module.qualified_name(value.func) == _CONVERSION:
        return value.args[0] if value.args else model
    return model


def _class_of(module: Module, name: str | None) -> tuple[Module, ast.ClassDef] | None:
    if name is None:
        return None
    own = module.class_named(name)
    if own is not None:
        return module, own
    found = module.project_definition(name)
    if found is None or not isinstance(found[1], ast.ClassDef):
        return None
    return found[0], found[1]


def _sums_parameters(module: Module) -> bool:
    """Whether a loop over all parameters makes a term of the loss out of them, so that all of them are used."""
    for word in ("parameters", "named_parameters"):
        for call in module.calls_written(word):
            parent = module.parent(call)
            if isinstance(parent, ast.comprehension):
                parent = module.parent(parent)
            if isinstance(parent, (ast.For, ast.GeneratorExp, ast.ListComp)):
                for node in ast.walk(parent):
                    if isinstance(node, ast.Attribute) and node.attr in _TERMS:
                        return True
                    if isinstance(node, ast.Pow):
                        return True
    return False


def _unused_in(
    module: Module, cls: ast.ClassDef, readers: tuple[Module, ...], depth: int
) -> Iterator[UnusedLayer]:
    """The unused layers of a class, and of the classes that it makes its layers of."""
    setup = module.method(cls, "__init__")
    if depth == 0 or setup is None or not _is_plain(module, cls):
        return
    readers = tuple(dict.fromkeys((*readers, module)))
    for statement in setup.body:
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            continue
        store = statement.targets[0]
        if not isinstance(store, ast.Attribute) or module.class_of_self(store.value) is not cls:
            continue
        if has_parameters(module, statement.value):
            if not any(_mentions(reader, cls, store) for reader in readers):
                if not _is_mentioned_elsewhere(module, store.attr, module is readers[0]):
                    yield UnusedLayer(module, cls, store)
        elif isinstance(statement.value, ast.Call):
            inner = _class_of(module, module.type_of(statement.value))
            if inner is not None:
                yield from _unused_in(*inner, readers, depth - 1)


def _is_plain(module: Module, cls: ast.ClassDef) -> bool:
    """Whether a class is nothing but an nn.Module with a forward, all of which can be read here."""
    if cls.decorator_list or cls.keywords or len(cls.bases) != 1:
        return False
    if module.qualified_name(cls.bases[0]) != _MODULE or not module.has_method(cls, "forward"):
        return False
    if module.text_says(_may_be_left_out) or _sums_parameters(module):
        return False
    return not any(_reaches_everything(module, cls, method) for method in module.methods(cls))


def _reaches_everything(module: Module, cls: ast.ClassDef, method: ast.AST) -> bool:
    """Whether a method gets at layers without their names: it hands on `self`, or asks for all layers. A constructor
    may ask for them: it initialises the weights."""
    setup = getattr(method, "name", "") in ("__init__", "_init_weights", "reset_parameters")
    for node in module.nodes(ast.Name, inside=method):
        if module.class_of_self(node) is not cls:
            continue
        parent = module.parent(node)
        if isinstance(parent, ast.Attribute):
            if parent.attr in _ALL_PARTS and not setup:
                return True
        elif not _is_super(parent):
            return True
    return False


def _is_super(call: ast.AST | None) -> bool:
    return (
        isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "super"
    )


def _mentions(module: Module, cls: ast.ClassDef, store: ast.Attribute) -> bool:
    """Whether a file has the attribute's name anywhere else, as an attribute of anything but another class's `self`,
    or in a string."""
    for node in module.nodes(ast.Attribute):
        if isinstance(node, ast.Attribute) and node.attr == store.attr and node is not store:
            owner = module.class_of_self(node.value)
            if owner is None or owner is cls or not _is_unrelated(module, owner):
                return True
    word = re.compile(rf"\b{re.escape(store.attr)}\b")
    return any(
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and word.search(node.value) is not None
        and not isinstance(module.parent(node), ast.Expr)
        for node in module.nodes(ast.Constant)
    )


def _is_unrelated(module: Module, owner: ast.ClassDef) -> bool:
    """Whether a class derives from a library's classes only."""
    return all(
        (module.qualified_name(base) or "").startswith(("torch.", "builtins."))
        for base in owner.bases
    )


def _is_mentioned_elsewhere(module: Module, name: str, is_script: bool) -> bool:
    """Whether a file that uses the class may read the attribute.

    ``is_script``: the class stands in the file that wraps and trains. Another class in there with a layer of the same
    name would hide what other files do with it, and they hardly import that file for its layers.
    """
    uses = [f".{name}{end}" for end in _AFTER_A_USE]
    if is_script:
        uses = [use for use in uses if not module.text_says(_containing(use))]
    return any(module.users_mention(use) for use in (*uses, f'"{name}', f"'{name}"))


@cache
def _containing(word: str) -> Callable[[str], bool]:
    return lambda text: word in text
