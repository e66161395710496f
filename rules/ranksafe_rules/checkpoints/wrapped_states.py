"""States of DistributedDataParallel wrappers that are saved, and how the project loads them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from ranksafe.semantics.module import Module
from ranksafe.semantics.values import Value

from ranksafe_rules._shared.every_rank import is_sharded_way
from ranksafe_rules._shared.origins import arguments_for
from ranksafe_rules._shared.rank_words import identifiers
from ranksafe_rules._shared.trails.functions import Called, called
from ranksafe_rules._shared.wrapped_models import is_possible
from ranksafe_rules.checkpoints.saved_files import LOAD, is_written_elsewhere

DISTRIBUTED: Final = "torch.nn.parallel.DistributedDataParallel"
_MODULE: Final = "torch.nn.Module"
_ACCELERATOR: Final = "accelerate.Accelerator"
_MAXIMUM_DEPTH: Final = 4
_UNWRAPPING: Final = re.compile(
    r"^(_?module|unwrap\w*|extract_model\w*|hasattr|isinstance|\w*without_ddp|raw_\w+)$"
)
_PREFIX: Final = re.compile(
    r"""consume_prefix_in_state_dict|["']module\.?["']|\[7:\]|(remove|strip|clean)\w{0,60}(prefix|module|ddp|dict)"""
)
"""Ways to take the prefix off again, or to ask for it."""
_LOADER: Final = "load_state_dict"
_LOAD: Final = re.compile(r"\bload\(")
_MOST_FILES: Final = 6
_SAVES: Final = re.compile(r"save", re.IGNORECASE)


class Wrapping(Enum):
    """What a model is at some place."""

    NO = "no"
    PERHAPS = "perhaps"
    """Wrapped on one way (a launch of several processes), not on the other."""
    YES = "yes"


@dataclass(frozen=True, slots=True)
class SavedState:
    """``model.state_dict()`` of a wrapper on its way into a file."""

    call: ast.Call
    model: ast.expr
    wrapping: Wrapping
    load: ast.Call | None
    """Where the same file loads such a state into the model without its wrapper."""


def saved_wrapper_states(module: Module) -> Iterator[SavedState]:
    """The states that are saved with the prefix of the wrapper, in source order; none where the file takes the prefix
    off, or loads into the wrapper again."""
    if module.text_says(_handles_prefix):
        return
    for call in module.calls_written("state_dict"):
        if not isinstance(call.func, ast.Attribute) or call.args or call.keywords:
            continue
        model = call.func.value
        wrapping = wrapping_of(module, model)
        if wrapping is Wrapping.NO or not _is_saved(module, call) or _is_chosen(module, model):
            continue
        loads = [item for item in _loads(module) if _same_name(module, item, model)]
        if any(wrapping_of(module, _receiver(item)) is not Wrapping.NO for item in _loads(module)):
            continue
        if _is_handed_to_a_loader(module, model):
            continue
        if not _loads(module) and _loaders_take_it_off(module):
            continue
        yield SavedState(call, model, wrapping, loads[0] if loads else None)


def wrapping_of(module: Module, model: ast.expr, depth: int = _MAXIMUM_DEPTH) -> Wrapping:
    """Whether an expression is a model in its DistributedDataParallel wrapper."""
    found: set[bool] = set()
    here = module.guards(model)
    for value in _origins(module, model, depth):
        if _unwraps(value):
            return Wrapping.NO
        if is_possible(module, (*value.guards, *here)):
            found.add(_wraps(module, value.node))
    if not any(found) and isinstance(model, ast.Name):
        found |= {True} if _is_prepared(module, model) else set()
    if True not in found:
        return Wrapping.NO
    return Wrapping.PERHAPS if False in found else Wrapping.YES


def _origins(module: Module, model: ast.expr, depth: int) -> Iterator[Value]:
    values = module.values(model)
    yield from values.known
    if depth and isinstance(model, ast.Name):
        for argument in arguments_for(module, model):
            yield from _origins(module, argument, depth - 1)


def _wraps(module: Module, node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and module.qualified_name(node.func) == DISTRIBUTED


def _unwraps(value: Value) -> bool:
    """Whether the value is what is in the wrapper, or was chosen by asking for the wrapper."""
    node = value.node
    function = node.func if isinstance(node, ast.Call) else node
    if isinstance(function, (ast.Attribute, ast.Name)):
        word = function.attr if isinstance(function, ast.Attribute) else function.id
        if _UNWRAPPING.match(word) or word == "getattr":
            return True
    return any(
        _UNWRAPPING.match(word) for guard in value.guards for word in identifiers(guard.test)
    )


def _is_prepared(module: Module, model: ast.Name) -> bool:
    """``model, optimizer = accelerator.prepare(model, optimizer)`` with a model that is known to be one."""
    for binding in module.bindings(model)[1]:
        target = module.parent(binding)
        position = target.elts.index(binding) if isinstance(target, ast.Tuple) else 0  # type: ignore[arg-type]
        statement = module.parent(target) if isinstance(target, ast.Tuple) else target
        call = statement.value if isinstance(statement, ast.Assign) else None
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            continue
        if call.func.attr != "prepare" or module.type_of(call.func.value) != _ACCELERATOR:
            continue
        if position < len(call.args):
            return module.is_subclass(module.type_of(call.args[position]), _MODULE)
    return False


def _is_saved(module: Module, call: ast.Call) -> bool:
    """Whether the state goes to something that saves, at once or in a dictionary."""
    holder = _saver(module, call)
    if holder is not None:
        return True
    whole: ast.AST = call
    parent = module.parent(whole)
    while isinstance(parent, (ast.Dict, ast.keyword, ast.Call, ast.IfExp)):
        whole, parent = parent, module.parent(parent)
    return isinstance(whole, ast.expr) and any(
        _saver(module, use) is not None for use in module.uses_of(whole)
    )


def _saver(module: Module, node: ast.expr) -> ast.Call | None:
    """The call around an expression that saves it: ``torch.save``, ``accelerator.save``, ``save_checkpoint``."""
    child: ast.AST = node
    parent = module.parent(child)
    while isinstance(parent, (ast.Dict, ast.keyword, ast.Call, ast.IfExp, ast.Tuple, ast.List)):
        if isinstance(parent, ast.Call) and child is not parent.func:
            function = parent.func
            word = (
                function.attr
                if isinstance(function, ast.Attribute)
                else getattr(function, "id", "")
            )
            if _SAVES.search(word):
                return parent
        child, parent = parent, module.parent(parent)
    return None


def _is_chosen(module: Module, model: ast.expr) -> bool:
    """Whether a condition asks for the wrapper, for a strategy whose states have no prefix, or something about the
    model (``is_parallel(model)``)."""
    text = module.text_of(model)
    return is_sharded_way(module, model) or any(
        any(map(_UNWRAPPING.match, identifiers(guard.test)))
        or any(
            isinstance(node, ast.Call) and node.args and module.text_of(node.args[0]) == text
            for node in ast.walk(guard.test)
        )
        for guard in module.guards(model)
    )


def _loads(module: Module) -> list[ast.Call]:
    return [
        call
        for call in module.calls_written("load_state_dict")
        if isinstance(call.func, ast.Attribute)
    ]


def _receiver(load: ast.Call) -> ast.expr:
    assert isinstance(load.func, ast.Attribute)
    return load.func.value


def _is_handed_to_a_loader(module: Module, model: ast.expr) -> bool:
    """Whether the wrapper goes to a function of the project that loads into it, and so finds the keys as saved:
    ``load_checkpoint(path, model=model)``."""
    if not isinstance(model, ast.Name):
        return False
    for use in module.loads_of_same_name(model):
        holder = module.parent(use)
        call = module.parent(holder) if isinstance(holder, ast.keyword) else holder
        if not isinstance(call, ast.Call) or call.func is use:
            continue
        given = holder.arg or "" if isinstance(holder, ast.keyword) else call.args.index(use)
        found = called(module, call)
        parameter = None if found is None else found.parameter(given)
        if found is None or parameter is None or wrapping_of(module, use) is Wrapping.NO:
            continue
        if any(_is_parameter(found, _receiver(load), parameter) for load in _loads(found.module)):
            return True
    return False


def _loaders_take_it_off(module: Module) -> bool:
    """Whether other files of the project load states, and all of them take the prefix off or speak of it; those that
    only load what the project writes elsewhere are none of them."""
    if not any(map(_handles_prefix, filter(_loads_states, module.texts_saying(_LOADER)))):
        return False
    others = module.files_saying(_LOADER, most=_MOST_FILES + 1, unless=_is_no_loader)
    return len(others) <= _MOST_FILES and all(
        _is_of_another_file(other, load) for other in others for load in _loads(other)
    )


def _is_of_another_file(module: Module, load: ast.Call) -> bool:
    """Whether what ``load_state_dict`` takes is known to come from a file that holds something else."""
    given = module.argument_node(load, "state_dict", 0)
    known = () if given is None else module.values(given).known
    sources = [
        module.argument_node(value.node, "f", 0)
        for value in known
        if isinstance(value.node, ast.Call) and module.qualified_name(value.node.func) == LOAD
    ]
    return 0 < len(sources) == len(known) and all(
        source is not None and is_written_elsewhere(module, source) for source in sources
    )


def _loads_states(text: str) -> bool:
    return _LOAD.search(text) is not None


def _is_no_loader(text: str) -> bool:
    return _handles_prefix(text) or not _loads_states(text)


def _is_parameter(where: Called, node: ast.expr, parameter: ast.arg) -> bool:
    return isinstance(node, ast.Name) and parameter in where.module.bindings(node)[1]


def _same_name(module: Module, load: ast.Call, model: ast.expr) -> bool:
    return module.text_of(_receiver(load)) == module.text_of(model)


def _handles_prefix(text: str) -> bool:
    return _PREFIX.search(text) is not None
