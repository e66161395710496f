"""Calls on one rank: finds out what is called, and what questions about the rank answer."""

from __future__ import annotations

import ast

from ranksafe.rank_flow import sources
from ranksafe.rank_flow.collective_calls import perform
from ranksafe.rank_flow.followed_calls import called_function, follow
from ranksafe.rank_flow.library_calls.library_calls import library_call
from ranksafe.rank_flow.library_calls.methods import generated
from ranksafe.rank_flow.library_objects import method_name, method_of_super, method_of_type
from ranksafe.rank_flow.operations import operation_named
from ranksafe.rank_flow.run import Run
from ranksafe.rank_flow.tables import functions_that, methods_that, named
from ranksafe.rank_flow.traces import ExitKind
from ranksafe.rank_flow.values import NOTHING_KNOWN, SAME, Abstract, Constant, Object, Value, Varies
from ranksafe.rank_flow.wrapped_models import WRAPS, is_sharded, wrap_model
from ranksafe.semantics.units import callee_name

ACCELERATOR = "accelerate.Accelerator"


def process_exit(run: Run, call: ast.Call) -> ExitKind | None:
    """How the call ends the process, if it does. A status that says it failed is as good as an exception that nobody
    catches: the launcher then ends the other ranks, too."""
    if run.module.qualified_name(call.func) not in functions_that("leaves-process"):
        return None
    status = run.module.argument(call, "status", 0)
    fails = status is not None and (
        bool(status.only_constant()) or isinstance(status.only_expression(), ast.JoinedStr)
    )
    return "raise" if fails else "exit"


def call(run: Run, node: ast.Call) -> Value:
    """What a call returns; its collectives are written to the trace."""
    name = run.module.qualified_name(node.func)
    receiver: Value | None = None
    if isinstance(node.func, ast.Attribute) and (name is None or name.startswith("builtins.")):
        receiver = run.value(node.func.value)
        if isinstance(receiver, Constant) and receiver.constant is None:
            if receiver.instead_of is not None:
                text = run.module.text_of(node.func.value)
                run.note("value", node.func.value, branch=receiver.instead_of, name=text)
        name = _method_name(run, node.func, receiver)
    if name in ("os.getenv", "os.environ.get", "os.environ.setdefault", "os.environ.pop"):
        return environment_variable(run, node.args[0], node) if node.args else SAME
    if callee_name(node) == "generate" and not is_sharded(receiver):
        if called_function(run, node, receiver) is None:
            return generated([*([] if receiver is None else [receiver]), *run.arguments(node)])
    if name is not None:
        constant = sources.by_function(name, run.world)
        if constant is not None:
            return _of_rank(run, node, name, constant)
        operation = operation_named(name)
        if operation is not None:
            return perform(run, node, operation, receiver)
    function = called_function(run, node, receiver)
    if function is not None:
        return follow(run, node, function, receiver)
    if name is not None and name in WRAPS:
        return wrap_model(run, node, WRAPS[name])
    return library_call(run, node, name, receiver)


def _of_rank(run: Run, node: ast.Call, name: str, constant: object) -> Value:
    group = next((item.value for item in node.keywords if item.arg == "group"), None)
    if group is None and node.args:
        group = node.args[0]
    if group is not None:
        found = run.value(group)
        if isinstance(found, Object) and found.kind == "group" and found.detail is not None:
            members = found.detail
            if not sources.is_rank_function(name):
                return Constant(len(members))
            inside = run.world.rank in members
            index = members.index(run.world.rank) if inside else -1
            return Constant(index, run.origin(node, Varies.BY_RANK))
        if not (isinstance(found, Constant) and found.constant is None):
            if sources.is_rank_function(name):
                return Abstract(Varies.PERHAPS)
            return NOTHING_KNOWN
    if sources.is_rank_function(name):
        return Constant(constant, run.origin(node, Varies.BY_RANK))
    return Constant(constant)


def environment_variable(run: Run, name: ast.expr, node: ast.expr) -> Value:
    """``os.environ[name]``: what a launcher sets differs between ranks, the rest is the same."""
    if isinstance(name, ast.Constant) and isinstance(name.value, str):
        text = sources.by_variable(name.value, run.world)
        if text is not None:
            varies = sources.is_rank_variable(name.value)
            return Constant(text, run.origin(node, Varies.BY_RANK) if varies else None)
    return NOTHING_KNOWN


def _method_name(run: Run, function: ast.Attribute, receiver: Value) -> str | None:
    if isinstance(receiver, Object) and receiver.kind == "alone":
        return None
    if isinstance(receiver, Object) and receiver.type:
        return method_name(run, receiver, function.attr) or f"{receiver.type}.{function.attr}"
    if function.attr in methods_that("only of Accelerator"):
        return f"{ACCELERATOR}.{function.attr}"
    if function.attr == "full_tensor":
        return "torch.distributed.tensor.DTensor.full_tensor"
    written = callee_name(ast.Call(function.value, [], []))
    if written in named("accelerator"):
        return f"{ACCELERATOR}.{function.attr}"
    of_super = method_of_super(run, function)
    if of_super is not None:
        return of_super
    type_ = run.module.type_of(function.value)
    if type_ is not None:
        known = method_of_type(run, type_, function.attr)
        if known is not None:
            return known
        for owner in ("transformers.Trainer", "torch.distributed.tensor.DTensor"):
            if run.module.is_subclass(type_, owner):
                return f"{owner}.{function.attr}"
        return f"{type_}.{function.attr}"
    return None
