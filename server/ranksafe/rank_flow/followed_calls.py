"""Calls that are followed: functions, methods, constructors and properties of the project."""

from __future__ import annotations

import ast

from ranksafe.rank_flow.expressions.names import attribute_of
from ranksafe.rank_flow.frames import arguments_of, frame_for, run_frame
from ranksafe.rank_flow.generators.generators import generator_called
from ranksafe.rank_flow.run import DEEPEST, Run
from ranksafe.rank_flow.syntax import is_generator
from ranksafe.rank_flow.tables import named
from ranksafe.rank_flow.traces import Call, Decision, Opaque, Place, matters_to_caller
from ranksafe.rank_flow.values import (
    Abstract,
    Constant,
    Object,
    Unassigned,
    Value,
    Varies,
    combined,
)
from ranksafe.rank_flow.wrapped_models import SHARDED, forward
from ranksafe.semantics.module import Module
from ranksafe.semantics.walking import FUNCTIONS


def called_function(run: Run, node: ast.Call, receiver: Value | None) -> Object | None:
    """The function of the project that a call runs."""
    function = node.func
    if isinstance(function, ast.Name):
        local = run.variable(function.id)
        if isinstance(local, Object):
            return local if local.kind in ("function", "object", "wrapped") else None
        if local is not None:
            return None
    if isinstance(receiver, Object) and receiver.kind in ("object", "wrapped"):
        assert isinstance(function, ast.Attribute)
        held = run.attribute(receiver, function.attr)
        if isinstance(held, Object) and held.kind in ("function", "object", "wrapped"):
            return held
        owner = run.attribute(receiver, "module") if receiver.kind == "wrapped" else receiver
        if isinstance(owner, Object) and owner.kind == "object":
            if owner is receiver:
                return run.functions.method(receiver, function.attr)
            if run.attribute(owner, SHARDED) is not None and function.attr != "forward":
                return _method_of(run, owner, function.attr)
        return None
    if isinstance(function, ast.Attribute) and receiver is not None:
        value = attribute_of(run, receiver, function)
        if isinstance(value, Object) and value.kind in ("function", "wrapped"):
            return value
        return None
    return run.functions.named(run.module, function)


def _method_of(run: Run, owner: Object, name: str) -> Object | None:
    """A method that is bound to an object."""
    found = run.functions.method(owner, name)
    if found is None:
        return None
    return Object("function", node=found.node, module=found.module, detail=owner)


def follow(run: Run, node: ast.Call, function: Object, receiver: Value | None) -> Value:
    """What the function returns; its collectives are written to the trace."""
    values = run.arguments(node)
    if function.kind == "wrapped":
        return forward(run, node, function, values)
    if function.kind == "object":
        sharded = run.attribute(function, SHARDED)
        if isinstance(sharded, Object):
            return forward(run, node, sharded, values)
        call = run.functions.method(function, "__call__")
        if call is None:
            call = run.functions.method(function, "forward")
        return combined(*values) if call is None else _enter(run, node, call, function, values)
    if function.kind == "class":
        return _construct(run, node, function, values)
    owner = receiver if isinstance(receiver, Object) and receiver.kind == "object" else None
    if owner is not None and run.attribute(owner, getattr(node.func, "attr", "")) is function:
        # Kept in an attribute, it is no method.
        owner = None
    if function.detail is not None and isinstance(function.detail, Object):
        owner = function.detail
    return _enter(run, node, function, owner, values)


def _construct(run: Run, node: ast.Call, cls: Object, values: list[Value]) -> Value:
    made = Object("object", type=cls.type, node=cls.node, module=cls.module)
    run.set_attribute(made, "__made__", Constant(True))
    initialise = run.functions.method(made, "__init__")
    functions = run.functions
    if initialise is None:
        if not any(isinstance(item, ast.Starred) for item in node.args):
            _set_fields(run, node, made, values)
    elif functions.concerns(initialise) or functions.is_small(initialise):
        _enter(run, node, initialise, made, values, always=True)
    return made


def _set_fields(run: Run, node: ast.Call, made: Object, values: list[Value]) -> None:
    """What a dataclass or named tuple is constructed with: the annotated names of the class, in order."""
    if not isinstance(made.node, ast.ClassDef) or made.module is None:
        return
    names = [
        statement.target.id
        for statement in made.module.body_of(made.node)
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
    ]
    for name, value in zip(names, values[: len(node.args)], strict=False):
        run.set_attribute(made, name, value)
    for keyword, value in zip(node.keywords, values[len(node.args) :], strict=True):
        if keyword.arg in names:
            assert keyword.arg is not None
            run.set_attribute(made, keyword.arg, value)


def _enter(
    run: Run,
    node: ast.Call,
    function: Object,
    receiver: Object | None,
    values: list[Value],
    *,
    always: bool = False,
) -> Value:
    body = function.node
    assert body is not None
    assert function.module is not None
    performs = run.functions.performs(function)
    if len(run.frame.calls) >= DEEPEST or any(item is body for item in run.running):
        if performs:
            run.items.append(Opaque(run.place(node)))
        return _not_followed(values)
    given = arguments_of(node, values)
    following = run.functions.worth_following(function)
    small = run.functions.is_small(function)
    if (following or small) and is_generator(body):
        return generator_called(run, node, function, receiver, given)
    # A method may be another one in a subclass, most of all one that only raises.
    tiny = receiver is None and run.functions.is_tiny(function)
    if not (always or following or tiny or (small and _tells(run, receiver, values))):
        return _not_followed(values)
    if isinstance(body, FUNCTIONS) and skips(run, node, body, function.module):
        return Constant(None)
    outer, run.items = run.items, []
    result = run_frame(run, frame_for(run, function, receiver, node, given), body)
    items, run.items = run.items, outer
    if matters_to_caller(items):
        run.items.append(Call(run.place(node), items))
    return result


def _tells(run: Run, receiver: Object | None, values: list[Value]) -> bool:
    """Whether a small function is worth following for its result: it is given, or finds in its object, what differs
    between ranks or wraps a model; or all that it is made of is known, and so may be how much it gives."""
    if values and all(isinstance(value, Constant) for value in values):
        return True
    if any(
        value.varies.certain or (isinstance(value, Object) and value.kind in ("wrapped", "loader"))
        for value in values
    ):
        return True
    held = {} if receiver is None else run.heap.get(receiver, {})
    return any(
        isinstance(value, Unassigned) or (isinstance(value, Object) and value.kind == "wrapped")
        for value in held.values()
    )


def skips(
    run: Run,
    node: ast.AST,
    function: ast.FunctionDef | ast.AsyncFunctionDef,
    module: Module | None = None,
) -> bool:
    """Whether ``@rank_zero_only`` and its like make this rank return at once; ``node``: the call, or the function
    itself; ``module``: the file of a function that is called."""
    for decorator in function.decorator_list:
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        word = target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")
        if word in named("rank-zero decorator"):
            taken = run.world.rank == 0
            origin = run.origin(decorator, Varies.BY_RANK, f"@{word}")
            place = run.place(node)
            if module is not None:
                # The ranks part in the function: every call of it is the same mistake.
                place = Place(decorator, module, (*run.frame.calls, (node, run.module)))
            run.items.append(Decision(place, taken, Constant(taken, origin)))
            return not taken
    return False


def _not_followed(arguments: list[Value]) -> Value:
    """A function that neither performs collectives nor looks at the rank: its result is made of its arguments."""
    found = combined(*arguments)
    if found.varies is Varies.NO:
        return Abstract(made_by=found.made_by)
    return found.changed(length=Varies.PERHAPS, shape=Varies.PERHAPS)
