"""Calls that are followed: functions, methods, constructors and properties of the project."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from ranksafe.semantics.rank_flow import sources
from ranksafe.semantics.rank_flow.arguments import Given, given_in, has_decorator, is_static
from ranksafe.semantics.rank_flow.expressions.reduced_entries import forget_given
from ranksafe.semantics.rank_flow.library_calls.element_types import as_returned
from ranksafe.semantics.rank_flow.library_calls.random_numbers import draws_its_own
from ranksafe.semantics.rank_flow.made_data import concerns_data, is_held
from ranksafe.semantics.rank_flow.passed_in import keep_changes, open_arguments
from ranksafe.semantics.rank_flow.run import MAXIMUM_DEPTH, Frame
from ranksafe.semantics.rank_flow.statements.raised_alone import ends_in_raise
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
from ranksafe.semantics.rank_flow.wrapped_models import SHARDED, is_wrapped
from ranksafe.semantics.walking import FUNCTIONS

if TYPE_CHECKING:
    from ranksafe.semantics.module import Module
    from ranksafe.semantics.rank_flow.interpreter import Interpreter

_FLAG_DEPTH = 3
"""Of ``self.trainer.signals.received``."""


class FollowedCalls:
    """Evaluates calls of the project's own functions."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._run = interpreter.run
        self._interpreter = interpreter

    def function(self, node: ast.Call, receiver: Value | None) -> Thing | None:
        """The function of the project that a call runs."""
        return self._interpreter.callables.of_call(node, receiver)

    def value(
        self, node: ast.Call, function: Thing, receiver: Value | None, given: Given | None = None
    ) -> Value:
        """What the function returns; its collectives are written to the trace."""
        if function.kind == "wrapped":
            return self._interpreter.models.call(
                node, function, self._interpreter.calls.arguments(node)
            )
        if function.kind == "object":
            return self._call_object(node, function, given)
        if function.kind == "class":
            return self._interpreter.objects.construct(node, function, given)
        if function.kind == "record":
            return self._interpreter.objects.record(node, function, given)
        if function.kind == "partial":
            inner, before = function.detail
            passed = given_in(self._interpreter, node) if given is None else given
            together = replace(
                passed,
                positional=[*before.positional, *passed.positional],
                named={**before.named, **passed.named},
                more=passed.more if before.more is None else before.more,
                more_named=passed.more_named or before.more_named,
            )
            return self.value(node, inner, None, together)
        owner = receiver if isinstance(receiver, Thing) and receiver.kind == "object" else None
        if owner is not None and is_held(self._run, owner, node, function):
            owner = None
        if isinstance(function.detail, Thing):
            owner = function.detail
        if owner is not None and owner.kind == "object" and owner.node is not None:
            if has_decorator(function.node, "classmethod"):
                owner = Thing("class", type=owner.type, node=owner.node, module=owner.module)
        return self._enter(node, function, owner, given)

    def _call_object(self, node: ast.Call, called: Thing, given: Given | None) -> Value:
        sharded = self._run.attribute(called, SHARDED)
        if isinstance(sharded, Thing):
            return self._interpreter.models.call(
                node, sharded, self._interpreter.calls.arguments(node)
            )
        call = self._interpreter.functions.method(called, "__call__")
        if call is None:
            call = self._interpreter.functions.method(called, "forward")
        if call is None:
            return combined(*self._interpreter.calls.arguments(node))
        return self._enter(node, call, called, given)

    def entered(
        self, node: ast.AST, function: Thing, given: Given | None, receiver: Thing | None = None
    ) -> Value:
        """What a function of the project returns when it is followed whatever it does."""
        return self._enter(node, function, receiver, given, always=True)

    def _enter(
        self,
        node: ast.AST,
        function: Thing,
        receiver: Thing | None,
        given: Given | None,
        *,
        always: bool = False,
    ) -> Value:
        run = self._run
        made = self._interpreter.callables.decorated(function)
        if made is not function:
            always = always or self._decorator_matters(function, made)
            function = made
        body = function.node
        assert body is not None
        assert function.module is not None
        depth = len(run.frame.calls)
        call_values = self._looked_at(node) if given is None else given.values()
        recursive = any(item is body for item in self._interpreter.running)
        generators = self._interpreter.generators
        if generators.is_generator(body) and depth < MAXIMUM_DEPTH and not recursive:
            # One that is told nothing may show how many values it hands out.
            told = generators.is_told(receiver, call_values) or not call_values
            functions = self._interpreter.functions
            if functions.worth_following(function) or (told and functions.is_small(function)):
                return generators.called(node, function, receiver, given)
        if (
            depth >= MAXIMUM_DEPTH
            or recursive
            or not (always or self._worth_following(function, receiver, call_values))
        ):
            arguments = self._evaluated(node) if given is None else given.values()
            if (depth >= MAXIMUM_DEPTH or recursive) and self._interpreter.functions.performs(
                function
            ):
                run.items.append(Opaque(run.place(node)))
            self._forget_set(function, receiver)
            return as_returned(self._not_followed(arguments), body)
        if isinstance(body, FUNCTIONS) and self.skips(node, body, function.module):
            if given is None:
                self._evaluated(node)
            return Known(None)
        outer = run.items
        run.items = []
        skip = 0 if receiver is None or is_static(body) else 1
        if given is None:
            open_arguments(self._interpreter, node, function, skip)
        frame = self._interpreter.frame_for(function, receiver, node, given)
        result = self._interpreter.run_frame(frame, body)
        items, run.items = run.items, outer
        if given is None:
            keep_changes(self._interpreter, node, function, frame, skip)
        if matters_to_caller(items):
            run.items.append(Call(run.place(node), items))
            if isinstance(node, ast.Call):
                forget_given(self._interpreter, node, items)
        return result

    def _decorator_matters(self, function: Thing, made: Thing) -> bool:
        """Whether what a decorator makes of a function is followed for what it, or the function, does."""
        functions = self._interpreter.functions
        return functions.performs(function) or functions.concerns(made)

    def _looked_at(self, node: ast.AST) -> list[Value]:
        """The values of a call's arguments, without what evaluating them does."""
        with self._run.unnoticed():
            return self._evaluated(node)

    def _evaluated(self, node: ast.AST) -> list[Value]:
        return given_in(self._interpreter, node).values()

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
            isinstance(value, Missing) or is_wrapped(value) or draws_its_own(self._run, value)
            for value in held.values()
        )
        if not tells and any(value.sameness.varies for value in held.values()):
            read = functions.reads(function)
            tells = any(value.sameness.varies for name, value in held.items() if name in read)
        if (
            not tells
            and receiver is not None
            and any(isinstance(value, Thing) for value in held.values())
        ):
            tells = self._asks_for_flag(receiver, functions.reads(function))
        if receiver is not None and receiver.kind == "object" and functions.sets(function):
            # Only some ranks may call it; where all do, what it sets is known then.
            tells = True
        inside = self._run.inside
        tells = tells or (bool(inside.trying or inside.handler) and ends_in_raise(function.node))
        if isinstance(function.detail, Frame) and function.node is not None:
            tells = tells or bool(functions.declared(function.node, ast.Nonlocal))
        tells = tells or functions.asks_files(function) or self._hands_out(function)
        tells = tells or concerns_data(function, values)
        return tells and functions.is_small(function)

    def _asks_for_flag(self, owner: Thing, names: frozenset[str]) -> bool:
        """Whether an object that a method reads, or one that it holds, has a flag that differs between ranks."""
        found = [(owner, name) for name in names]
        for _ in range(_FLAG_DEPTH):
            values = [(thing, self._run.attribute(thing, name)) for thing, name in found]
            if any(
                isinstance(value, Unknown) and value.decides and value.sameness is Sameness.DATA
                for _, value in values
            ):
                return True
            found = [
                (value, name)
                for _, value in values
                if isinstance(value, Thing) and value.kind == "object"
                for name in self._run.heap.get(value, {})
            ]
        return False

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
            if value is None and receiver is not None and receiver in self._run.heap:
                # What the class says does not hold any more.
                held[name] = NOTHING_KNOWN
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
