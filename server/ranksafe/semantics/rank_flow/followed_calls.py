"""Calls that are followed: functions, methods, constructors and properties of the project."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from ranksafe.semantics.rank_flow import sources
from ranksafe.semantics.rank_flow.expressions.reduced_entries import forget_given
from ranksafe.semantics.rank_flow.library_calls.element_types import as_returned
from ranksafe.semantics.rank_flow.library_calls.random_numbers import draws_its_own
from ranksafe.semantics.rank_flow.run import MAXIMUM_DEPTH
from ranksafe.semantics.rank_flow.traces import Call, Decision, Opaque, Place, matters_to_caller
from ranksafe.semantics.rank_flow.values import (
    NOTHING_KNOWN,
    Known,
    Many,
    Missing,
    Sameness,
    Thing,
    Unknown,
    Value,
    combined,
)
from ranksafe.semantics.rank_flow.wrapped_models import SHARDED
from ranksafe.semantics.walking import FUNCTIONS

if TYPE_CHECKING:
    from ranksafe.semantics.module import Module
    from ranksafe.semantics.rank_flow.interpreter import Interpreter


class FollowedCalls:
    """Evaluates calls of the project's own functions."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._run = interpreter.run
        self._interpreter = interpreter

    def function(self, node: ast.Call, receiver: Value | None) -> Thing | None:
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
            owner = run.attribute(receiver, "module") if receiver.kind == "wrapped" else receiver
            if isinstance(owner, Thing) and owner.kind == "object":
                if owner is receiver:
                    return self._interpreter.functions.method(receiver, function.attr)
                if run.attribute(owner, SHARDED) is not None and function.attr != "forward":
                    return self._method_of(owner, function.attr)
            return None
        if isinstance(function, ast.Attribute) and receiver is not None:
            value = self._interpreter.expressions.attribute_of(receiver, function)
            if isinstance(value, Thing) and value.kind in ("function", "wrapped"):
                return value
            return None
        return self._interpreter.functions.named(run.module, function)

    def _method_of(self, owner: Thing, name: str) -> Thing | None:
        """A method that is bound to an object."""
        found = self._interpreter.functions.method(owner, name)
        if found is None:
            return None
        return Thing("function", node=found.node, module=found.module, detail=owner)

    def value(self, node: ast.Call, function: Thing, receiver: Value | None) -> Value:
        """What the function returns; its collectives are written to the trace."""
        if function.kind == "wrapped":
            return self._interpreter.models.call(
                node, function, self._interpreter.calls.arguments(node)
            )
        if function.kind == "object":
            sharded = self._run.attribute(function, SHARDED)
            if isinstance(sharded, Thing):
                return self._interpreter.models.call(
                    node, sharded, self._interpreter.calls.arguments(node)
                )
            call = self._interpreter.functions.method(function, "__call__")
            if call is None:
                call = self._interpreter.functions.method(function, "forward")
            arguments = self._interpreter.calls.arguments(node)
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
            self._enter(node, initialise, made, None, always=True)
        else:
            values = self._interpreter.calls.arguments(node)
            if initialise is None and not any(isinstance(arg, ast.Starred) for arg in node.args):
                self._set_fields(node, made, values)
        return made

    def _set_fields(self, node: ast.Call, made: Thing, values: list[Value]) -> None:
        """What a dataclass or named tuple is constructed with: the annotated names of the class, in order."""
        if not isinstance(made.node, ast.ClassDef):
            return
        names = [
            statement.target.id
            for statement in made.node.body
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
        ]
        for name, value in zip(names, values[: len(node.args)], strict=False):
            self._run.set_attribute(made, name, value)
        for keyword, value in zip(node.keywords, values[len(node.args) :], strict=True):
            if keyword.arg in names:
                assert keyword.arg is not None
                self._run.set_attribute(made, keyword.arg, value)

    def _enter(
        self,
        node: ast.Call,
        function: Thing,
        receiver: Thing | None,
        values: list[Value] | None,
        *,
        always: bool = False,
    ) -> Value:
        run = self._run
        body = function.node
        assert body is not None
        assert function.module is not None
        depth = len(run.frame.calls)
        call_values = values if values is not None else self._looked_at(node)
        recursive = any(item is body for item in self._interpreter.running)
        generators = self._interpreter.generators
        if generators.is_generator(body) and depth < MAXIMUM_DEPTH and not recursive:
            # One that is told nothing may show how many values it hands out.
            told = generators.is_told(receiver, call_values) or not call_values
            functions = self._interpreter.functions
            if functions.worth_following(function) or (told and functions.is_small(function)):
                return generators.called(node, function, receiver, values)
        if (
            depth >= MAXIMUM_DEPTH
            or recursive
            or not (always or self._worth_following(function, receiver, call_values))
        ):
            arguments = self._interpreter.calls.arguments(node) if values is None else values
            if (depth >= MAXIMUM_DEPTH or recursive) and self._interpreter.functions.performs(
                function
            ):
                run.items.append(Opaque(run.place(node)))
            self._forget_set(function, receiver)
            return as_returned(self._not_followed(arguments), body)
        if isinstance(body, FUNCTIONS) and self.skips(node, body, function.module):
            self._interpreter.calls.arguments(node)
            return Known(None)
        outer = run.items
        run.items = []
        frame = self._interpreter.frame_for(function, receiver, node, values)
        result = self._interpreter.run_frame(frame, body)
        items, run.items = run.items, outer
        if matters_to_caller(items):
            run.items.append(Call(run.place(node), items))
            forget_given(self._interpreter, node, items)
        return result

    def _looked_at(self, node: ast.Call) -> list[Value]:
        """The values of a call's arguments, without what evaluating them does."""
        with self._run.unnoticed():
            return self._interpreter.calls.arguments(node)

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
            or draws_its_own(self._run, value)
            for value in values
        )
        held = {} if receiver is None else self._run.heap.get(receiver, {})
        tells = tells or any(
            isinstance(value, Missing)
            or (isinstance(value, Thing) and value.kind == "wrapped")
            or draws_its_own(self._run, value)
            for value in held.values()
        )
        if not tells and any(value.sameness.varies for value in held.values()):
            read = functions.reads(function)
            tells = any(value.sameness.varies for name, value in held.items() if name in read)
        if receiver is not None and receiver.kind == "object" and functions.sets(function):
            # Only some ranks may call it; where all do, what it sets is known then.
            tells = True
        tells = tells or functions.asks_files(function) or self._hands_out(function)
        return tells and functions.is_small(function)

    def _hands_out(self, function: Thing) -> bool:
        """``def get_group(): return _GROUP``, of a name that a call before has assigned."""
        body = getattr(function.node, "body", None)
        last = body[-1] if isinstance(body, list) and body else None
        if not isinstance(last, ast.Return) or not isinstance(last.value, ast.Name):
            return False
        held = self._run.globals.get((id(function.module), last.value.id))
        return held is not None and held is not NOTHING_KNOWN

    def _forget_set(self, function: Thing, receiver: Thing | None) -> None:
        """What a method that is not followed assigns is not known any more."""
        held = {} if receiver is None else self._run.heap.get(receiver, {})
        for name in self._interpreter.functions.sets(function):
            value = held.get(name)
            if isinstance(value, (Known, Many)) and value.sameness is Sameness.SAME:
                held[name] = NOTHING_KNOWN
            elif isinstance(value, Unknown) and value.steps is not None:
                held[name] = replace(value, steps=None, entries=None)

    def skips(
        self,
        node: ast.AST,
        function: ast.FunctionDef | ast.AsyncFunctionDef,
        module: Module | None = None,
    ) -> bool:
        """Whether ``@rank_zero_only`` and its like make this rank return at once; ``node``: the call, or the function
        itself; ``module``: the file of a function that is called."""
        for decorator in function.decorator_list:
            target = decorator.func if isinstance(decorator, ast.Call) else decorator
            word = target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")
            if word in sources.GUARDING_DECORATORS:
                run = self._run
                taken = run.world.rank == 0
                origin = run.origin(decorator, Sameness.RANK, f"@{word}")
                place = run.place(node)
                if module is not None:
                    # The ranks part in the function: every call of it is the same mistake.
                    place = Place(decorator, module, (*run.frame.calls, (node, run.module)))
                run.items.append(Decision(place, taken, Known(taken, origin)))
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
                functions = self._interpreter.functions
                if not functions.concerns(method) and not functions.is_small(method):
                    return NOTHING_KNOWN
                if len(run.frame.calls) >= MAXIMUM_DEPTH:
                    return NOTHING_KNOWN
                frame = self._interpreter.frame_for(method, base, node, [])
                outer, run.items = run.items, []
                result = self._interpreter.run_frame(frame, body)
                items, run.items = run.items, outer
                if matters_to_caller(items):
                    run.items.append(Call(run.place(node), items))
                return result
            return Thing("function", node=body, module=method.module, detail=base)
        if base.kind == "wrapped" and node.attr != "module":
            return None
        return None
