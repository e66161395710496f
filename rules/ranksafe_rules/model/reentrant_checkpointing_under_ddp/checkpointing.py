"""Reentrant checkpointing in models that DistributedDataParallel wraps with a search for unused parameters."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from packaging.version import Version
from ranksafe.launch.context import LaunchContext
from ranksafe.semantics.module import Module
from ranksafe.semantics.walking import unparsed

from ranksafe_rules._shared.reentrant_checkpoints import classes_of, is_reentrant_checkpoint
from ranksafe_rules._shared.wrapped_models import (
    DISTRIBUTED,
    is_prepare,
    is_trained_model,
    prepares_for_other_strategies,
)

_ARGUMENTS: Final = "transformers.TrainingArguments"
_OPTIONS: Final = "accelerate.DistributedDataParallelKwargs"
_FIRST_READ, _LAST_READ = Version("4.46.1"), Version("4.57.6")
"""transformers in which `gradient_checkpointing_enable` is reentrant by default (``modeling_utils.py``, read in eight
versions from the first to the last of these); 5.23.0 is not."""


@dataclass(frozen=True, slots=True)
class Clash:
    """A search for unused parameters and the reentrant checkpointing that it does not stand."""

    search: ast.expr
    """The value that turns the search on."""
    calls: tuple[ast.Call, ...]
    """The calls that ask for reentrant checkpointing, in this file."""


def clash_at(module: Module, launch: LaunchContext, call: ast.Call) -> Clash | None:
    """The clash in a call that wraps, or that sets up the wrapping."""
    name = module.qualified_name(call.func)
    if name is not None and module.is_subclass(name, _ARGUMENTS):
        return _in_arguments(module, launch, call)
    if name not in (DISTRIBUTED, _OPTIONS):
        return None
    if name == _OPTIONS and prepares_for_other_strategies(module):
        return None
    search = _turned_on(module, call, "find_unused_parameters")
    if search is None or _may_be_on(module, call, "static_graph"):
        return None
    found: list[ast.Call] = []
    for model in _models(module, call, name):
        found += _reentrant_calls(module, launch, model)
    if module.calls_written("_set_static_graph"):
        return None
    return Clash(search, tuple(dict.fromkeys(found))) if found else None


def _in_arguments(module: Module, launch: LaunchContext, call: ast.Call) -> Clash | None:
    search = _turned_on(module, call, "ddp_find_unused_parameters")
    checkpointing = _turned_on(module, call, "gradient_checkpointing")
    if search is None or checkpointing is None or _may_be_on(module, call, "ddp_static_graph"):
        return None
    options = module.argument_node(call, "gradient_checkpointing_kwargs")
    return Clash(search, (call,)) if _is_reentrant(module, launch, options) else None


def _turned_on(module: Module, call: ast.Call, name: str) -> ast.expr | None:
    given = module.argument(call, name)
    if given is None or given.only_constant() is not True:
        return None
    return module.argument_node(call, name)


def _may_be_on(module: Module, call: ast.Call, name: str) -> bool:
    given = module.argument(call, name)
    return given is not None and given.only_constant() is not False


def _models(module: Module, call: ast.Call, name: str) -> Iterator[ast.expr]:
    if name == DISTRIBUTED:
        model = module.argument_node(call, "module", 0)
        if model is not None:
            yield model
        return
    for prepare in module.calls_written("prepare"):
        if is_prepare(module, prepare):
            for argument in prepare.args:
                if isinstance(argument, (ast.Name, ast.Attribute)):
                    if is_trained_model(module, argument):
                        yield argument


def _reentrant_calls(module: Module, launch: LaunchContext, model: ast.expr) -> Iterator[ast.Call]:
    text = unparsed(model)
    for call in module.calls_written("gradient_checkpointing_enable"):
        if isinstance(call.func, ast.Attribute) and unparsed(call.func.value) == text:
            options = module.argument_node(call, "gradient_checkpointing_kwargs", 0)
            if _is_reentrant(module, launch, options):
                yield call
    cls = module.class_named(module.type_of(model))
    if cls is None:
        return
    for part in classes_of(module, cls):
        for node in module.nodes(ast.Call, inside=part):
            if isinstance(node, ast.Call) and is_reentrant_checkpoint(module, node):
                yield node


def _is_reentrant(module: Module, launch: LaunchContext, options: ast.expr | None) -> bool:
    """Whether transformers checkpoints reentrantly with these options."""
    if options is None or (isinstance(options, ast.Constant) and options.value is None):
        version = launch.version("transformers")
        return version is not None and _FIRST_READ <= version <= _LAST_READ
    given = module.dictionary_entry(options, "use_reentrant")
    return given is not None and given.only_constant() is True
