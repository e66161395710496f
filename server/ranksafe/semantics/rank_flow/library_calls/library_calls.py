"""Calls that are not followed: asks what knows the function, and combines the arguments where nothing does."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from ranksafe.semantics.rank_flow.arguments import Given
from ranksafe.semantics.rank_flow.generators.exhaustion import Taken
from ranksafe.semantics.rank_flow.library_calls import batched_sends, device_meshes
from ranksafe.semantics.rank_flow.library_calls.builtin_functions import of_builtin
from ranksafe.semantics.rank_flow.library_calls.data import of_data
from ranksafe.semantics.rank_flow.library_calls.element_types import after_method
from ranksafe.semantics.rank_flow.library_calls.failing_calls import note_failure, submitted
from ranksafe.semantics.rank_flow.library_calls.files import asked
from ranksafe.semantics.rank_flow.library_calls.iteration import iterates, of_iteration
from ranksafe.semantics.rank_flow.library_calls.layers import through_layer
from ranksafe.semantics.rank_flow.library_calls.methods import LOSSES, TESTS, Methods
from ranksafe.semantics.rank_flow.library_calls.padded_batches import (
    padded_sequence,
    padded_to_longest,
)
from ranksafe.semantics.rank_flow.library_calls.random_numbers import drawn_from, made_generator
from ranksafe.semantics.rank_flow.library_calls.signals import note_signal
from ranksafe.semantics.rank_flow.library_calls.tensors import of_tensors
from ranksafe.semantics.rank_flow.sharded_lists import sharded_list
from ranksafe.semantics.rank_flow.traces import Event, Opaque
from ranksafe.semantics.rank_flow.values import (
    NOTHING_KNOWN,
    Known,
    Many,
    Sameness,
    Thing,
    Unknown,
    Value,
    combined,
    made_by,
)
from ranksafe.semantics.rank_flow.wrapped_models import BACKWARD
from ranksafe.semantics.units import callee_name

if TYPE_CHECKING:
    from ranksafe.semantics.rank_flow.interpreter import Interpreter

_STATES = frozenset(
    {
        "accelerate.Accelerator",
        "accelerate.PartialState",
        "accelerate.state.PartialState",
        "accelerate.state.AcceleratorState",
    }
)
_OF_NUMBERS = frozenset({"isnan", "isinf", "isfinite"})
_OF_LAYERS = "torch.nn.functional."
_MAPPED = 8
_VALUE_FUNCTIONS = ("torch.", "math.", "numpy.", "builtins.", "statistics.", "sklearn.metrics.")


class LibraryCalls:
    """Evaluates calls that are not followed."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._run = interpreter.run
        self._interpreter = interpreter
        self._methods = Methods(interpreter)

    def value(self, node: ast.Call, name: str | None, receiver: Value | None) -> Value:
        """What the call returns."""
        run = self._run
        arguments = self._interpreter.calls.arguments(node)
        word = callee_name(node) or ""
        note_failure(self._interpreter, node, name, receiver, arguments)
        note_signal(self._interpreter, node, name, arguments)
        if word == "submit" and (future := submitted(self._interpreter, node, arguments)):
            return future
        if isinstance(receiver, Thing) and receiver.kind == "random":
            return drawn_from(run, node, word, receiver, arguments)
        if name is not None:
            made = self._library_object(node, name, arguments)
            if made is not None:
                return made
        if word == "backward" and receiver is not None:
            model = made_by(receiver)
            if model is not None and not run.inside.no_sync and not run.inside.no_grad:
                run.items.append(Event(BACKWARD, run.place(node), model=model))
            return Known(None)
        answer = asked(node, name)
        if answer is not None:
            return answer
        if any(self._may_be_called_back(value) for value in arguments):
            run.items.append(Opaque(run.place(node)))
        padded = padded_to_longest(node, arguments)
        if padded is not None:
            return padded
        if node.args and (out := through_layer(run.module, node.func, arguments[0])) is not None:
            return out
        if receiver is not None:
            result = self._methods.value(node, word, receiver, arguments)
            return after_method(result, node, word, receiver)
        if isinstance(node.func, ast.Name):
            callee = self._interpreter.expressions.variable(node.func.id)
            if callee is None:
                by_word = self._interpreter.expressions.by_word(node.func.id, node)
                if by_word is not None and not (name or "").startswith(("torch.", "builtins.")):
                    return by_word
            if node.func.id in LOSSES:
                return _by_rows(arguments)
        if name is not None and name.startswith(_VALUE_FUNCTIONS):
            if word in TESTS or word == "bool":
                found = combined(*arguments)
                if word in _OF_NUMBERS and found.sameness is Sameness.RANK:
                    # The numbers in a rank's part of something are its data.
                    found = replace(found, sameness=Sameness.DATA)
                return replace(found, decides=True)
            found = combined(*arguments)
            if name.startswith(_OF_LAYERS) and found.sameness is Sameness.RANK:
                # What a loss or a layer makes of a rank's part of the data says nothing of the rank itself.
                found = replace(found, sameness=Sameness.DATA)
            return found
        found = combined(*arguments)
        return replace(NOTHING_KNOWN, made_by=found.made_by)

    def _may_be_called_back(self, value: Value) -> bool:
        """Whether an argument is a function with collectives, which the library may call any number of times."""
        if not isinstance(value, Thing) or value.kind != "function":
            return False
        return self._interpreter.functions.performs(value)

    def _library_object(self, node: ast.Call, name: str, arguments: list[Value]) -> Value | None:
        run = self._run
        if name in _STATES:
            detail = _accelerator_detail(node)
            return Thing(
                "accelerator", type="accelerate.Accelerator", node=node, module=run.module,
                detail=detail,
            )  # fmt: skip
        if name == "builtins.map" and len(arguments) == 2:
            applied = self._mapped(node, arguments)
            if applied is not None:
                return applied
        if name == "functools.partial":
            return self._interpreter.callables.partial(node)
        record = self._interpreter.objects.by_library(node, name, arguments)
        if record is not None:
            return record
        if name == "builtins.len" and len(arguments) == 1:
            length = self._interpreter.generators.length(arguments[0], node)
            if length is not None:
                return length
        arguments = self._iterated(node, name, arguments)
        if name == "builtins.next" and arguments:
            run.frame.taken.append(Taken(node, arguments[0]))
        library_object = self._interpreter.library_objects.made(node, name)
        if library_object is not None:
            return library_object
        of_torch = batched_sends.single(self._interpreter, node, name) or device_meshes.of_group(
            self._interpreter, node, name
        )
        if of_torch is not None:
            return of_torch
        made = made_generator(run, node, name, arguments) or sharded_list(run, node, name)
        made = made or padded_sequence(name, arguments)
        if made is None:
            made = of_data(run, node, name, arguments)
        if made is None:
            # ``zip(…, strict=True)``: what is named is not run over.
            named = sum(item.arg is not None for item in node.keywords)
            positional = (
                arguments[: len(arguments) - named] if name == "builtins.zip" else arguments
            )
            made = of_iteration(run, name, positional)
        if made is None:
            made = of_builtin(self._interpreter, node, name, arguments)
        if made is None:
            made = of_tensors(run, node, name, arguments)
        return made

    def _mapped(self, node: ast.Call, arguments: list[Value]) -> Value | None:
        """``map(function, values)`` of a few values that are known; None for others."""
        function, source = arguments
        if not isinstance(source, Many) or len(source.items) > _MAPPED:
            return None
        made: list[Value] = []
        for item in source.items:
            found: Value | None = None
            name = self._run.module.qualified_name(node.args[0])
            if isinstance(function, Thing) and function.kind == "function":
                found = self._interpreter.followed.entered(node, function, Given([item]))
            elif name is not None:
                found = of_builtin(self._interpreter, node, name, [item])
            if found is None:
                return None
            made.append(found)
        return replace(source, items=tuple(made))

    def _iterated(self, node: ast.Call, name: str, arguments: list[Value]) -> list[Value]:
        """The arguments, with what loops over them run over instead of the project's objects."""
        generators = self._interpreter.generators
        if name.rpartition(".")[2] == "DataLoader":
            return [generators.data_of(value, node) for value in arguments]
        if iterates(name):
            return [generators.iterated(value, node) for value in arguments]
        return arguments


def _by_rows(arguments: list[Value]) -> Unknown:
    """What a model makes of a batch: as many rows as the batch has."""
    found = combined(*arguments)
    shapes = [item.shape for item in arguments if isinstance(item, Unknown)]
    varying = [item for item in shapes if isinstance(item, Sameness) and item.varies]
    return replace(found, shape=varying[0]) if varying else found


def _accelerator_detail(node: ast.Call) -> str | None:
    """What an Accelerator's arguments say of sharding and of uneven batches."""
    if any(item.arg in ("fsdp_plugin", "deepspeed_plugin") for item in node.keywords):
        return "sharded"
    for item in ast.walk(node):
        if isinstance(item, ast.keyword) and item.arg == "even_batches":
            if isinstance(item.value, ast.Constant) and item.value.value is False:
                return "uneven"
    return None
