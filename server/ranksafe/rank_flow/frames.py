"""Runs functions: gives their parameters values and puts the parts of one rank's walk together."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from ranksafe.rank_flow import sources
from ranksafe.rank_flow.library_objects import library_parameter
from ranksafe.rank_flow.run import Frame, Run
from ranksafe.rank_flow.syntax import turns_gradients_off
from ranksafe.rank_flow.values import (
    NOTHING_KNOWN,
    Abstract,
    Constant,
    Object,
    Sequence,
    Value,
    Varies,
    combined,
    is_small,
    joined,
    listed,
)
from ranksafe.semantics.ranks import rank_variables
from ranksafe.semantics.walking import FUNCTIONS


def frame_for(
    run: Run, function: Object, receiver: Object | None, call: ast.AST, given: Arguments
) -> Frame:
    """The frame of a call with its parameters bound."""
    assert function.node is not None
    assert function.module is not None
    outer = function.detail if isinstance(function.detail, Frame) else None
    frame = Frame(
        function.module,
        function.node,
        outer=outer,
        caller=run.frame,
        receiver=receiver,
        calls=(*run.frame.calls, (call, run.frame.module)),
        called_in_loop=bool(run.frame.loops) or run.frame.called_in_loop,
        quiet=run.frame.quiet,
    )
    parameters = getattr(function.node, "args", None)
    if isinstance(parameters, ast.arguments):
        holder = _bind_receiver(frame, parameters, function, receiver)
        found = bound(parameters, given, has_receiver=holder, unknown=NOTHING_KNOWN)
        frame.variables.update(found)
    return frame


def _bind_receiver(
    frame: Frame, parameters: ast.arguments, function: Object, receiver: Object | None
) -> bool:
    """Bind the first parameter of a method; whether there is one."""
    positional = [*parameters.posonlyargs, *parameters.args]
    if receiver is None or not positional or _is_static(function.node):
        return False
    frame.variables[positional[0].arg] = receiver
    return True


def run_frame(run: Run, frame: Frame, body: ast.AST) -> Value:
    """Run a function's body in its frame; what it returns."""
    caller = getattr(run, "frame", None)
    run.frame = frame
    run.running.append(body)
    no_grad = turns_gradients_off(frame.module, *getattr(body, "decorator_list", ()))
    run.inside.no_grad += no_grad
    try:
        if isinstance(body, ast.Lambda):
            return run.value(body.body)
        assert isinstance(body, FUNCTIONS)
        reached = run.block(body.body)
        if reached:
            frame.returns.append(Constant(None, instead_of=frame.value_elsewhere))
        return _returned(frame)
    finally:
        run.inside.no_grad -= no_grad
        run.running.pop()
        if caller is not None:
            run.frame = caller


def run_root(run: Run, function: Object, receiver: Object | None, *, quiet: bool = False) -> None:
    """Run a function of which nobody is known to call it: parameters are what their names say."""
    assert function.node is not None
    assert function.module is not None
    run.frame = Frame(function.module, function.node, receiver=receiver, is_root=True, quiet=quiet)
    _bind_by_name(run, run.frame, function, receiver)
    run_frame(run, run.frame, function.node)


def run_quietly(run: Run, function: Object, receiver: Object) -> None:
    """Run ``__init__`` for the attributes that it sets."""
    outer_frame = getattr(run, "frame", None)
    outer_items, run.items = run.items, []
    run_root(run, function, receiver, quiet=True)
    run.items = outer_items
    if outer_frame is not None:
        run.frame = outer_frame


def run_module(run: Run, frame: Frame) -> None:
    """Run a file's top-level statements."""
    run.frame = frame
    for statement in frame.function.body:  # type: ignore[attr-defined]
        if isinstance(statement, (*FUNCTIONS, ast.ClassDef, ast.Import, ast.ImportFrom)):
            continue
        if not run.statement(statement):
            return


def _bind_by_name(run: Run, frame: Frame, function: Object, receiver: Object | None) -> None:
    parameters = getattr(function.node, "args", None)
    if not isinstance(parameters, ast.arguments):
        return
    holder = _bind_receiver(frame, parameters, function, receiver)
    positional = [*parameters.posonlyargs, *parameters.args]
    for item in (*positional[holder:], *parameters.kwonlyargs):
        found = _parameter(run, item)
        frame.variables[item.arg] = NOTHING_KNOWN if found is None else found
    for rest in (parameters.vararg, parameters.kwarg):
        if rest is not None:
            frame.variables[rest.arg] = NOTHING_KNOWN


def _parameter(run: Run, item: ast.arg) -> Value | None:
    type_ = run.module.types.of_annotation(item.annotation)
    if type_ in ("accelerate.Accelerator", "accelerate.PartialState"):
        return Object("accelerator", type="accelerate.Accelerator", node=item, module=run.module)
    if type_ is not None and run.module.is_subclass(
        type_, "torch.nn.parallel.DistributedDataParallel"
    ):
        return Object("wrapped", node=item, module=run.module, detail="ddp")
    library_object = library_parameter(run, item, type_)
    if library_object is not None:
        return library_object
    if sources.is_loader_parameter(item.arg):
        return Object("loader", node=item, module=run.module, detail="parameter")
    function = getattr(run.frame.function, "name", "")
    if sources.is_data_parameter(function, item.arg):
        return Abstract(Varies.BY_DATA, run.origin(item, Varies.BY_DATA, item.arg))
    if item in rank_variables(run.module):
        return Constant(run.world.rank, run.origin(item, Varies.BY_RANK))
    return run.by_word(item.arg, item)


def _returned(frame: Frame) -> Value:
    if not frame.returns:
        return Constant(None)
    found = frame.returns[0]
    for value in frame.returns[1:]:
        found = joined(found, value, frame.condition)
    if isinstance(found, Sequence) or not frame.condition or len(frame.returns) == 1:
        return found
    return combined(found)


def _is_static(node: ast.AST | None) -> bool:
    return isinstance(node, FUNCTIONS) and any(
        isinstance(item, ast.Name) and item.id == "staticmethod" for item in node.decorator_list
    )


@dataclass(slots=True)
class Arguments:
    """The values of a call's arguments, each evaluated once."""

    positional: list[Value] = field(default_factory=list)
    named: dict[str, Value] = field(default_factory=dict)
    open_ended: bool = False
    """Whether ``*args`` or ``**kwargs`` of unknown content may give more."""

    @property
    def values(self) -> list[Value]:
        """All that is given by place or name."""
        return [*self.positional, *self.named.values()]


def arguments_of(call: ast.Call, values: list[Value]) -> Arguments:
    """The arguments of a call, of which all expressions have been evaluated, positional ones first."""
    given = Arguments()
    for expression, value in zip(call.args, values, strict=False):
        if not isinstance(expression, ast.Starred):
            given.positional.append(value)
        elif isinstance(value, Sequence):
            given.positional.extend(value.items)
        else:
            given.open_ended = True
            break
    for keyword, value in zip(call.keywords, values[len(call.args) :], strict=True):
        if keyword.arg is None:
            given.open_ended = True
        else:
            given.named[keyword.arg] = value
    return given


def bound(
    parameters: ast.arguments, given: Arguments, *, has_receiver: bool, unknown: Value
) -> dict[str, Value]:
    """The parameters' values; ``unknown`` where neither the call nor a constant default tells.

    ``has_receiver``: whether the first parameter is bound already.
    """
    positional = [*parameters.posonlyargs, *parameters.args]
    named = positional[1:] if has_receiver else positional
    found = dict.fromkeys([item.arg for item in (*named, *parameters.kwonlyargs)], unknown)
    if not given.open_ended:
        by_place = positional[len(positional) - len(parameters.defaults) :]
        defaults = [*zip(by_place, parameters.defaults, strict=True)]
        defaults += [
            (item, default)
            for item, default in zip(parameters.kwonlyargs, parameters.kw_defaults, strict=True)
            if default is not None
        ]
        for item, default in defaults:
            if isinstance(default, ast.Constant) and is_small(default.value):
                found[item.arg] = Constant(default.value)
    found.update({item.arg: value for item, value in zip(named, given.positional, strict=False)})
    found.update({name: value for name, value in given.named.items() if name in found})
    if parameters.vararg is not None:
        rest = tuple(given.positional[len(named) :])
        found[parameters.vararg.arg] = unknown if given.open_ended else listed(rest)
    if parameters.kwarg is not None:
        found[parameters.kwarg.arg] = unknown
    return found
