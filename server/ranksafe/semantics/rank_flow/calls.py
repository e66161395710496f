"""Calls on one rank: finds out what is called, and what questions about the rank answer."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from ranksafe.semantics.rank_flow import sources
from ranksafe.semantics.rank_flow.library_calls.growing_dictionaries import given_away
from ranksafe.semantics.rank_flow.operations import operation_named
from ranksafe.semantics.rank_flow.sharding import is_sharded
from ranksafe.semantics.rank_flow.values import (
    NOTHING_KNOWN,
    SAME,
    Known,
    Sameness,
    Share,
    Thing,
    Unknown,
    Value,
    combined,
)
from ranksafe.semantics.rank_flow.wrapped_models import WRAPS
from ranksafe.semantics.units import callee_name

if TYPE_CHECKING:
    from ranksafe.semantics.rank_flow.interpreter import Interpreter

ACCELERATOR = "accelerate.Accelerator"
_LEAVING = frozenset({"sys.exit", "os._exit", "builtins.exit", "builtins.quit", "exit", "quit"})
_UNIQUE_METHODS = frozenset(
    {
        "wait_for_everyone",
        "gather_for_metrics",
        "check_trigger",
        "join_uneven_inputs",
        "pad_across_processes",
        "main_process_first",
        "local_main_process_first",
    }
)


class Calls:
    """Evaluates calls."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._run = interpreter.run
        self._interpreter = interpreter

    def leaves_process(self, call: ast.Call) -> bool:
        """Whether the call ends the process."""
        return self._run.module.qualified_name(call.func) in _LEAVING

    def value(self, node: ast.Call) -> Value:
        """What a call returns; its collectives are written to the trace."""
        found = self._value(node)
        given_away(self._run, node)
        return found

    def _value(self, node: ast.Call) -> Value:
        run = self._run
        name = run.module.qualified_name(node.func)
        receiver: Value | None = None
        if isinstance(node.func, ast.Attribute) and (name is None or name.startswith("builtins.")):
            receiver = self._interpreter.expressions.value(node.func.value)
            run.none_used(receiver, node.func.value)
            name = self._method_name(node.func, receiver)
        if name in ("os.getenv", "os.environ.get", "os.environ.setdefault", "os.environ.pop"):
            return self.environment_variable(node.args[0], node) if node.args else SAME
        if (callee_name(node) or "").endswith("device_count"):
            # As many for each local rank, wherever devices are dealt out to them.
            return Unknown(Sameness.UNKNOWN, share=Share.EVEN)
        if callee_name(node) == "generate" and not is_sharded(receiver):
            if self._interpreter.followed.function(node, receiver) is None:
                return self._generated(node, receiver)
        if name is not None:
            constant = sources.by_function(name, run.world)
            if constant is not None:
                return self._of_rank(node, name, constant)
            operation = operation_named(name)
            if operation is not None:
                return self._interpreter.collectives.value(node, operation, receiver)
        function = self._interpreter.followed.function(node, receiver)
        if function is not None:
            return self._interpreter.followed.value(node, function, receiver)
        if name is not None and name in WRAPS:
            return self._interpreter.models.wrap(node, WRAPS[name])
        return self._interpreter.libraries.value(node, name, receiver)

    def _generated(self, node: ast.Call, receiver: Value | None) -> Value:
        """Generated sequences are as long as the data of the rank makes them."""
        found = combined(*([] if receiver is None else [receiver]), *self.arguments(node))
        return replace(found, shape=found.sameness) if found.sameness.varies else found

    def _of_rank(self, node: ast.Call, name: str, constant: object) -> Value:
        run = self._run
        group = next((item.value for item in node.keywords if item.arg == "group"), None)
        if group is None and node.args:
            group = node.args[0]
        if group is not None:
            found = self._interpreter.expressions.value(group)
            if isinstance(found, Thing) and found.kind == "group" and found.detail is not None:
                members = found.detail
                if not sources.is_rank_function(name):
                    return Known(len(members))
                inside = run.world.rank in members
                index = members.index(run.world.rank) if inside else -1
                return Known(index, run.origin(node, Sameness.RANK))
            if not (isinstance(found, Known) and found.constant is None):
                if sources.is_rank_function(name):
                    return Unknown(Sameness.UNKNOWN)
                return NOTHING_KNOWN
        if sources.is_rank_function(name):
            return Known(constant, run.origin(node, Sameness.RANK))
        return Known(constant)

    def environment_variable(self, name: ast.expr, node: ast.expr) -> Value:
        """``os.environ[name]``: what a launcher sets differs between ranks, the rest is the same."""
        run = self._run
        asked = self._interpreter.expressions.value(name)
        if isinstance(asked, Known) and isinstance(asked.constant, str):
            text = sources.by_variable(asked.constant, run.world)
            if text is not None:
                varies = sources.is_rank_variable(asked.constant)
                return Known(text, run.origin(node, Sameness.RANK) if varies else None)
        return NOTHING_KNOWN

    def _method_name(self, function: ast.Attribute, receiver: Value) -> str | None:
        objects = self._interpreter.library_objects
        if isinstance(receiver, Thing) and receiver.kind == "alone":
            return None
        if isinstance(receiver, Thing) and receiver.type:
            return (
                objects.method_name(receiver, function.attr) or f"{receiver.type}.{function.attr}"
            )
        if function.attr in _UNIQUE_METHODS:
            return f"{ACCELERATOR}.{function.attr}"
        if function.attr == "full_tensor":
            return "torch.distributed.tensor.DTensor.full_tensor"
        written = callee_name(ast.Call(function.value, [], []))
        if written in ("accelerator", "_accelerator"):
            return f"{ACCELERATOR}.{function.attr}"
        of_super = objects.method_of_super(function)
        if of_super is not None:
            return of_super
        type_ = self._run.module.type_of(function.value)
        if type_ is not None:
            known = objects.method_of_type(type_, function.attr)
            if known is not None:
                return known
            for owner in ("transformers.Trainer", "torch.distributed.tensor.DTensor"):
                if self._run.module.is_subclass(type_, owner):
                    return f"{owner}.{function.attr}"
            return f"{type_}.{function.attr}"
        return None

    def arguments(self, node: ast.Call) -> list[Value]:
        """The values of all arguments, positional ones first."""
        values = [self._interpreter.expressions.value(item) for item in node.args]
        values += [self._interpreter.expressions.value(item.value) for item in node.keywords]
        return values
