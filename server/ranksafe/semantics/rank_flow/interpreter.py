"""Puts the parts of one rank's walk together and runs functions."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from ranksafe.semantics.rank_flow import sources
from ranksafe.semantics.rank_flow.arguments import Given, bind, given_in, is_static
from ranksafe.semantics.rank_flow.joined_values import joined
from ranksafe.semantics.rank_flow.run import Frame, Run
from ranksafe.semantics.rank_flow.sources import World
from ranksafe.semantics.rank_flow.values import (
    NOTHING_KNOWN,
    Known,
    Many,
    Sameness,
    Thing,
    Unknown,
    Value,
    combined,
)
from ranksafe.semantics.walking import FUNCTIONS

if TYPE_CHECKING:
    from ranksafe.semantics.rank_flow.functions import Functions


class Interpreter:
    """One rank."""

    def __init__(self, world: World, functions: Functions) -> None:
        from ranksafe.semantics.rank_flow.callables import Callables
        from ranksafe.semantics.rank_flow.calls import Calls
        from ranksafe.semantics.rank_flow.class_attributes import ClassAttributes
        from ranksafe.semantics.rank_flow.collective_calls import CollectiveCalls
        from ranksafe.semantics.rank_flow.expressions.expressions import Expressions
        from ranksafe.semantics.rank_flow.followed_calls import FollowedCalls
        from ranksafe.semantics.rank_flow.generators.generators import Generators
        from ranksafe.semantics.rank_flow.library_calls.growing_lists import GrowingLists
        from ranksafe.semantics.rank_flow.library_calls.library_calls import LibraryCalls
        from ranksafe.semantics.rank_flow.library_objects import LibraryObjects
        from ranksafe.semantics.rank_flow.objects import Objects
        from ranksafe.semantics.rank_flow.statements.assignments import Assignments
        from ranksafe.semantics.rank_flow.statements.statements import Statements
        from ranksafe.semantics.rank_flow.wrapped_by_libraries import WrappedByLibraries
        from ranksafe.semantics.rank_flow.wrapped_models import WrappedModels

        self.functions = functions
        self.run = Run(world, functions)
        self.running: list[ast.AST] = []
        """Bodies of the calls that are going on."""
        self.calls = Calls(self)
        self.callables = Callables(self)
        self.objects = Objects(self)
        self.class_attributes = ClassAttributes(self)
        self.collectives = CollectiveCalls(self)
        self.followed = FollowedCalls(self)
        self.generators = Generators(self)
        self.lists = GrowingLists(self)
        self.libraries = LibraryCalls(self)
        self.library_objects = LibraryObjects(self)
        self.wrapped_by_libraries = WrappedByLibraries(self)
        self.models = WrappedModels(self)
        self.expressions = Expressions(self)
        self.assignments = Assignments(self)
        self.statements = Statements(self)

    # -- frames

    def frame_for(
        self, function: Thing, receiver: Thing | None, call: ast.AST, given: Given | None
    ) -> Frame:
        """The frame of a call with its parameters bound, to what the call writes unless something else is `given`."""
        run = self.run
        assert function.node is not None
        assert function.module is not None
        outer = function.detail if isinstance(function.detail, Frame) else None
        frame = Frame(
            function.module,
            function.node,
            outer=outer,
            receiver=receiver,
            calls=(*run.frame.calls, (call, run.frame.module)),
            called_in_loop=bool(run.frame.loops) or run.frame.called_in_loop,
            called_perhaps=run.frame.called_perhaps or _is_open(run.frame.condition),
            quiet=run.frame.quiet,
        )
        bind(frame, function, receiver, given_in(self, call) if given is None else given)
        return frame

    # -- running

    def run_frame(self, frame: Frame, body: ast.AST) -> Value:
        """Run a function's body in its frame; what it returns."""
        run = self.run
        caller = getattr(run, "frame", None)
        run.frame = frame
        self.running.append(body)
        try:
            if isinstance(body, ast.Lambda):
                return self.expressions.value(body.body)
            assert isinstance(body, FUNCTIONS)
            reached = self.statements.block(body.body)
            if reached:
                frame.returns.append(Known(None, frame.decided, instead_of=frame.value_elsewhere))
            return _not_elsewhere(frame, _returned(frame))
        finally:
            self.running.pop()
            if caller is not None:
                run.frame = caller

    def run_root(self, function: Thing, receiver: Thing | None) -> None:
        """Run a function of which nobody is known to call it: parameters are what their names say."""
        assert function.node is not None
        assert function.module is not None
        frame = Frame(function.module, function.node, receiver=receiver, is_root=True)
        self.run.frame = frame
        self._bind_by_name(frame, function, receiver)
        self.run_frame(frame, function.node)

    def run_quietly(self, function: Thing, receiver: Thing) -> None:
        """Run ``__init__`` for the attributes that it sets."""
        assert function.node is not None
        assert function.module is not None
        outer_frame = getattr(self.run, "frame", None)
        outer_items, self.run.items = self.run.items, []
        frame = Frame(function.module, function.node, receiver=receiver, is_root=True, quiet=True)
        self.run.frame = frame
        self._bind_by_name(frame, function, receiver)
        self.run_frame(frame, function.node)
        self.run.items = outer_items
        if outer_frame is not None:
            self.run.frame = outer_frame

    def run_module(self, frame: Frame) -> None:
        """Run a file's top-level statements."""
        self.run.frame = frame
        self.run.whole_file = True
        for statement in frame.function.body:  # type: ignore[attr-defined]
            if isinstance(statement, (*FUNCTIONS, ast.ClassDef, ast.Import, ast.ImportFrom)):
                continue
            if not self.statements.statement(statement):
                return

    def _bind_by_name(self, frame: Frame, function: Thing, receiver: Thing | None) -> None:
        arguments = getattr(function.node, "args", None)
        if not isinstance(arguments, ast.arguments):
            return
        positional = [*arguments.posonlyargs, *arguments.args]
        if receiver is not None and positional and not is_static(function.node):
            frame.variables[positional[0].arg] = receiver
            positional = positional[1:]
        for item in (*positional, *arguments.kwonlyargs):
            found = self._parameter(item)
            if found is not None:
                frame.variables[item.arg] = found
            else:
                frame.variables[item.arg] = NOTHING_KNOWN
        for rest in (arguments.vararg, arguments.kwarg):
            if rest is not None:
                frame.variables[rest.arg] = NOTHING_KNOWN

    def _parameter(self, item: ast.arg) -> Value | None:
        run = self.run
        type_ = run.module.types.of_annotation(item.annotation)
        if type_ in ("accelerate.Accelerator", "accelerate.PartialState"):
            return Thing("accelerator", type="accelerate.Accelerator", node=item, module=run.module)
        if type_ is not None and run.module.is_subclass(
            type_, "torch.nn.parallel.DistributedDataParallel"
        ):
            return Thing("wrapped", node=item, module=run.module, detail="ddp")
        library_object = self.library_objects.parameter(item, type_)
        if library_object is not None:
            return library_object
        if item.arg.endswith(("loader", "_dl")):
            return Thing("loader", node=item, module=run.module, detail="parameter")
        function = getattr(run.frame.function, "name", "")
        if sources.is_data_parameter(function, item.arg):
            return Unknown(Sameness.DATA, run.origin(item, Sameness.DATA, item.arg))
        return self.expressions.by_word(item.arg, item)


def _is_open(condition: Value | None) -> bool:
    """Whether it is not known that all ranks decide a condition alike."""
    return condition is not None and condition.sameness is not Sameness.SAME


def _returned(frame: Frame) -> Value:
    if not frame.returns:
        return Known(None)
    found = frame.returns[0]
    for value in frame.returns[1:]:
        found = joined(found, value, frame.condition)
    if isinstance(found, Many) or not frame.condition or len(frame.returns) == 1:
        return found
    if isinstance(found, Unknown):
        always_none = all(map(_is_none, frame.returns))
        whole = replace(combined(found), none_apart=found.none_apart and not always_none)
        if found.entries is None:
            return whole
        return replace(whole, entries=found.entries, length=found.length, steps=found.steps)
    return combined(found)


def _not_elsewhere(frame: Frame, found: Value) -> Value:
    """A dictionary that is returned where other ranks have returned None."""
    if frame.none_elsewhere is None or not isinstance(found, Unknown) or found.entries is None:
        return found
    return found if found.sameness.varies else replace(found, there=frame.none_elsewhere)


def _is_none(value: Value) -> bool:
    """Whether what is returned is None on all ranks that return it there."""
    if isinstance(value, Unknown):
        return value.none_apart
    return isinstance(value, Known) and value.constant is None
