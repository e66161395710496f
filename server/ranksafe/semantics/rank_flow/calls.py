"""Calls on one rank: collective operations, functions that are followed, library functions that hand values on."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from ranksafe.semantics.rank_flow import sources
from ranksafe.semantics.rank_flow.operations import operations
from ranksafe.semantics.rank_flow.traces import Call, Decision, Opaque, matters_to_caller
from ranksafe.semantics.rank_flow.values import (
    NOTHING_KNOWN,
    SAME,
    Known,
    Missing,
    Sameness,
    Thing,
    Unknown,
    Value,
    combined,
)
from ranksafe.semantics.rank_flow.wrapped_models import WRAPS
from ranksafe.semantics.units import callee_name
from ranksafe.semantics.walking import FUNCTIONS

if TYPE_CHECKING:
    from ranksafe.semantics.rank_flow.interpreter import Interpreter

ACCELERATOR = "accelerate.Accelerator"
_LEAVING = frozenset({"sys.exit", "os._exit", "builtins.exit", "builtins.quit", "exit", "quit"})
_DEPTH = 7
_UNIQUE_METHODS = frozenset(
    {"wait_for_everyone", "gather_for_metrics", "check_trigger", "join_uneven_inputs"}
)


class Calls:
    """Evaluates calls."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._run = interpreter.run
        self._interpreter = interpreter

    def leaves_process(self, call: ast.Call) -> bool:
        """Whether the call ends the process."""
        return self._run.module.qualified_name(call.func) in _LEAVING

    # -- the call

    def value(self, node: ast.Call) -> Value:
        """What a call returns; its collectives are written to the trace."""
        run = self._run
        name = run.module.qualified_name(node.func)
        receiver: Value | None = None
        if isinstance(node.func, ast.Attribute) and (name is None or name.startswith("builtins.")):
            receiver = self._interpreter.expressions.value(node.func.value)
            if isinstance(receiver, Known) and receiver.constant is None:
                if receiver.instead_of is not None:
                    text = run.module.text_of(node.func.value)
                    run.note("value", node.func.value, branch=receiver.instead_of, name=text)
            name = self._method_name(node.func, receiver)
        if name in ("os.getenv", "os.environ.get", "os.environ.setdefault", "os.environ.pop"):
            return self.environment_variable(node.args[0], node) if node.args else SAME
        if callee_name(node) == "generate" and not _is_sharded(receiver):
            return self._generated(node, receiver)
        if name is not None:
            constant = sources.by_function(name, run.world)
            if constant is not None:
                return self._of_rank(node, name, constant)
            operation = operations().get(name)
            if operation is not None:
                return self._interpreter.collectives.value(node, operation, receiver)
        function = self._function(node, receiver)
        if function is not None:
            return self._follow(node, function, receiver)
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
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            text = sources.by_variable(name.value, run.world)
            if text is not None:
                varies = sources.is_rank_variable(name.value)
                return Known(text, run.origin(node, Sameness.RANK) if varies else None)
        return NOTHING_KNOWN

    def _method_name(self, function: ast.Attribute, receiver: Value) -> str | None:
        if isinstance(receiver, Thing) and receiver.type:
            return f"{receiver.type}.{function.attr}"
        if function.attr in _UNIQUE_METHODS:
            return f"{ACCELERATOR}.{function.attr}"
        if function.attr == "full_tensor":
            return "torch.distributed.tensor.DTensor.full_tensor"
        written = callee_name(ast.Call(function.value, [], []))
        if written in ("accelerator", "_accelerator"):
            return f"{ACCELERATOR}.{function.attr}"
        type_ = self._run.module.type_of(function.value)
        if type_ is not None:
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

    # -- functions of the project

    def _function(self, node: ast.Call, receiver: Value | None) -> Thing | None:
        """The function of the project that a call runs."""
        run = self._run
        function = node.func
        if isinstance(function, ast.Name):
            local = self._interpreter.expressions.variable(function.id)
            if isinstance(local, Thing):
                return local if local.kind in ("function", "object", "wrapped") else None
            if local is not None:
                return None
        if isinstance(receiver, Thing) and receiver.kind in ("object", "wrapped"):
            assert isinstance(function, ast.Attribute)
            held = run.attribute(receiver, function.attr)
            if isinstance(held, Thing) and held.kind in ("function", "object", "wrapped"):
                return held
            if receiver.kind == "object":
                return self._interpreter.functions.method(receiver, function.attr)
            return None
        if isinstance(function, ast.Attribute) and receiver is not None:
            value = self._interpreter.expressions.attribute_of(receiver, function)
            if isinstance(value, Thing) and value.kind in ("function", "wrapped"):
                return value
            return None
        return self._interpreter.functions.named(run.module, function)

    def _follow(self, node: ast.Call, function: Thing, receiver: Value | None) -> Value:
        if function.kind == "wrapped":
            return self._interpreter.models.call(node, function, self.arguments(node))
        if function.kind == "object":
            call = self._interpreter.functions.method(function, "__call__")
            if call is None:
                call = self._interpreter.functions.method(function, "forward")
            arguments = self.arguments(node)
            return (
                combined(*arguments)
                if call is None
                else self._enter(node, call, function, arguments)
            )
        if function.kind == "class":
            return self._construct(node, function)
        owner = receiver if isinstance(receiver, Thing) and receiver.kind == "object" else None
        if function.detail is not None and isinstance(function.detail, Thing):
            owner = function.detail
        return self._enter(node, function, owner, None)

    def _construct(self, node: ast.Call, cls: Thing) -> Value:
        run = self._run
        made = Thing("object", type=cls.type, node=cls.node, module=cls.module)
        run.set_attribute(made, "__made__", Known(True))
        initialise = self._interpreter.functions.method(made, "__init__")
        functions = self._interpreter.functions
        if initialise is not None and (
            functions.concerns(initialise) or functions.is_small(initialise)
        ):
            self._enter(node, initialise, made, None)
        else:
            self.arguments(node)
        return made

    def _enter(
        self, node: ast.Call, function: Thing, receiver: Thing | None, values: list[Value] | None
    ) -> Value:
        run = self._run
        body = function.node
        assert body is not None
        assert function.module is not None
        depth = len(run.frame.calls)
        call_values = values if values is not None else self._looked_at(node)
        recursive = any(item is body for item in self._interpreter.running)
        if (
            depth >= _DEPTH
            or recursive
            or not self._worth_following(function, receiver, call_values)
        ):
            arguments = self.arguments(node) if values is None else values
            if (depth >= _DEPTH or recursive) and self._interpreter.functions.performs(function):
                run.items.append(Opaque(run.place(node)))
            return self._not_followed(arguments)
        if isinstance(body, FUNCTIONS) and self.skips(node, body):
            self.arguments(node)
            return Known(None)
        outer = run.items
        run.items = []
        frame = self._interpreter.frame_for(function, receiver, node, values)
        result = self._interpreter.run_frame(frame, body)
        items, run.items = run.items, outer
        if matters_to_caller(items):
            run.items.append(Call(run.place(node), items))
        return result

    def _looked_at(self, node: ast.Call) -> list[Value]:
        """The values of a call's arguments, without what evaluating them does."""
        outer, notes = self._run.items, self._run.notes
        self._run.items, self._run.notes = [], []
        values = self.arguments(node)
        self._run.items, self._run.notes = outer, notes
        return values

    def _worth_following(
        self, function: Thing, receiver: Thing | None, values: list[Value]
    ) -> bool:
        """Whether a call can matter: by what the function does, or because a small one gets what differs per rank."""
        functions = self._interpreter.functions
        if functions.worth_following(function):
            return True
        tells = any(
            value.sameness.varies
            or (isinstance(value, Thing) and value.kind in ("wrapped", "loader"))
            for value in values
        )
        held = {} if receiver is None else self._run.heap.get(receiver, {})
        tells = tells or any(isinstance(value, Missing) for value in held.values())
        return tells and functions.is_small(function)

    def skips(self, node: ast.AST, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
        """Whether ``@rank_zero_only`` and its like make this rank return at once; ``node``: the call."""
        for decorator in function.decorator_list:
            target = decorator.func if isinstance(decorator, ast.Call) else decorator
            word = target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")
            if word in sources.GUARDING_DECORATORS:
                run = self._run
                taken = run.world.rank == 0
                origin = run.origin(decorator, Sameness.RANK, f"@{word}")
                run.items.append(Decision(run.place(node), taken, Known(taken, origin)))
                return not taken
        return False

    def _not_followed(self, arguments: list[Value]) -> Value:
        """A function that neither performs collectives nor looks at the rank: its result is made of its arguments."""
        found = combined(*arguments)
        if found.sameness is Sameness.SAME:
            return replace(NOTHING_KNOWN, made_by=found.made_by)
        return replace(found, length=Sameness.UNKNOWN, shape=Sameness.UNKNOWN)

    def property_value(self, base: Thing, node: ast.Attribute) -> Value | None:
        """``self.is_main`` where it is a property; what is known of accelerate's objects."""
        run = self._run
        if base.kind == "object":
            method = self._interpreter.functions.method(base, node.attr)
            if method is None:
                return self._interpreter.functions.class_attribute(base, node.attr)
            body = method.node
            if isinstance(body, FUNCTIONS) and any(
                getattr(item, "id", getattr(item, "attr", "")) in ("property", "cached_property")
                for item in body.decorator_list
            ):
                if not self._interpreter.functions.concerns(method):
                    return NOTHING_KNOWN
                if len(run.frame.calls) >= _DEPTH:
                    return NOTHING_KNOWN
                frame = self._interpreter.frame_for(method, base, node, [])
                outer, run.items = run.items, []
                result = self._interpreter.run_frame(frame, body)
                run.items = outer
                return result
            return Thing("function", node=body, module=method.module, detail=base)
        if base.kind == "wrapped" and node.attr != "module":
            return None
        return None

    # -- contexts

    def enter(self, node: ast.expr) -> Value:
        """The value of a ``with`` item; notes what it means for the collectives inside."""
        inside = self._run.inside
        if isinstance(node, ast.Call):
            word = callee_name(node) or ""
            name = self._run.module.qualified_name(node.func) or ""
            if word == "no_sync":
                inside.no_sync += 1
            elif word in ("join", "join_uneven_inputs", "Join") or name.endswith(".Join"):
                inside.joined += 1
            elif name in ("torch.no_grad", "torch.inference_mode"):
                inside.no_grad += 1
        return self._interpreter.expressions.value(node)


def _is_sharded(receiver: Value | None) -> bool:
    return isinstance(receiver, Thing) and receiver.detail in ("fsdp", "sharded")
