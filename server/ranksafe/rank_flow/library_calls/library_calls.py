"""Calls that are not followed: asks what knows the function, and combines the arguments where nothing does."""

from __future__ import annotations

import ast

from ranksafe.rank_flow.generators.generators import data_of, iterated, object_length
from ranksafe.rank_flow.library_calls.builtin_functions import of_builtin
from ranksafe.rank_flow.library_calls.data import of_data
from ranksafe.rank_flow.library_calls.iteration import iterates, of_iteration
from ranksafe.rank_flow.library_calls.methods import method_call
from ranksafe.rank_flow.library_calls.tensors import of_tensors
from ranksafe.rank_flow.library_objects import library_object
from ranksafe.rank_flow.run import Run
from ranksafe.rank_flow.tables import functions_that, methods_that, named
from ranksafe.rank_flow.traces import Opaque
from ranksafe.rank_flow.values import Abstract, Constant, Object, Value, Varies, combined, made_by
from ranksafe.rank_flow.wrapped_models import BACKWARD, perform_for
from ranksafe.semantics.units import callee_name
from ranksafe.semantics.values import Values

_VALUE_FUNCTIONS = ("torch.", "math.", "numpy.", "builtins.")


def library_call(run: Run, node: ast.Call, name: str | None, receiver: Value | None) -> Value:
    """What the call returns."""
    arguments = run.arguments(node)
    word = callee_name(node) or ""
    if name is not None:
        made = _library_object(run, node, name, arguments)
        if made is not None:
            return made
    if word == "backward" and receiver is not None:
        model = made_by(receiver)
        if model is not None and not run.inside.no_sync and not run.inside.no_grad:
            perform_for(run, node, model, BACKWARD)
        return Constant(None)
    if any(_may_be_called_back(run, value) for value in arguments):
        run.items.append(Opaque(run.place(node)))
    if receiver is not None:
        return method_call(run, node, word, receiver, arguments)
    return _of_name(run, node, name or "", word, arguments)


def _of_name(run: Run, node: ast.Call, name: str, word: str, arguments: list[Value]) -> Value:
    """What is known of a function by its name alone."""
    found = combined(*arguments)
    is_value = name.startswith(_VALUE_FUNCTIONS)
    if isinstance(node.func, ast.Name):
        if run.variable(node.func.id) is None and not name.startswith(("torch.", "builtins.")):
            by_word = run.by_word(node.func.id, node)
            if by_word is not None:
                return by_word
        if node.func.id in named("loss function"):
            return _by_rows(arguments)
    if not is_value:
        return Abstract(made_by=found.made_by)
    return found.changed(decides=True) if word in methods_that("tests") or word == "bool" else found


def _may_be_called_back(run: Run, value: Value) -> bool:
    """Whether an argument is a function with collectives, which the library may call any number of times."""
    if not isinstance(value, Object) or value.kind != "function":
        return False
    return run.functions.performs(value)


def _library_object(run: Run, node: ast.Call, name: str, arguments: list[Value]) -> Value | None:
    if name in functions_that("accelerator"):
        detail = _accelerator_detail(run, node)
        return Object(
            "accelerator", type="accelerate.Accelerator", node=node, module=run.module,
            detail=detail,
        )  # fmt: skip
    if name == "builtins.len" and len(arguments) == 1:
        length = object_length(run, arguments[0], node)
        if length is not None:
            return length
    arguments = _iterated(run, node, name, arguments)
    return (
        library_object(run, node, name)
        or of_data(run, node, name, arguments)
        or of_iteration(run, name, arguments)
        or of_builtin(run, node, name, arguments)
        or of_tensors(run, node, name, arguments)
    )


def _iterated(run: Run, node: ast.Call, name: str, arguments: list[Value]) -> list[Value]:
    """The arguments, with what loops over them run over instead of the project's objects."""
    if name.rpartition(".")[2] == "DataLoader":
        return [data_of(run, value, node) for value in arguments]
    if iterates(name):
        return [iterated(run, value, node) for value in arguments]
    return arguments


def _by_rows(arguments: list[Value]) -> Abstract:
    """What a model makes of a batch: as many rows as the batch has."""
    found = combined(*arguments)
    shapes = [item.shape for item in arguments if isinstance(item, Abstract)]
    varying = [item for item in shapes if isinstance(item, Varies) and item.certain]
    return found.changed(shape=varying[0]) if varying else found


def _accelerator_detail(run: Run, node: ast.Call) -> str | None:
    """What an Accelerator's arguments say of sharding and of uneven batches."""
    given: dict[str | None, Values | None] = {
        item.arg: run.module.values(item.value) for item in node.keywords
    }
    if not given.keys().isdisjoint(("fsdp_plugin", "deepspeed_plugin")):
        return "sharded"
    made = given.get("dataloader_config")
    configuration = None if made is None else made.only_expression()
    if isinstance(configuration, ast.Call):
        given["even_batches"] = run.module.argument(configuration, "even_batches")
    even = given.get("even_batches")
    return "uneven" if even is not None and even.only_constant() is False else None
