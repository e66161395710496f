"""What goes wrong when nobody waits for a send, or for a batch of sends and receives.

What is sent may be read meanwhile: only changing it changes what arrives. Under gloo the work holds the buffer, so that
a send whose work is gone never comes to its end.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from ranksafe.rank_flow.async_handles import Handle
from ranksafe.rank_flow.operations import Parameter
from ranksafe.rank_flow.tensor_uses import TensorUses, viewed
from ranksafe.rank_flow.used_before_wait import changed_behind
from ranksafe.semantics.module import Module

CHANGED = "changed"
"""The issue's name where a tensor that is sent is changed under way."""
CUT_OFF = "cut off"
"""The issue's name where the backend ends a transfer whose work is gone."""

SENT = Parameter("tensor", 0)
_OPERATION = "torch.distributed.P2POp"
_WHAT = Parameter("op", 0)
_TENSOR = Parameter("tensor", 1)
_MAKES_GROUP = "torch.distributed.init_process_group"
_LISTS = ("append", "extend", "insert")


def harm_of_send(
    module: Module, call: ast.Call, sent: ast.expr | None, handle: Handle
) -> str | None:
    """The name of the issue with a send that nobody waits for; None where there is none."""
    if _is_changed(module, call, sent):
        return CHANGED
    return _cut_off(module, handle)


def harm_of_batch(
    module: Module, call: ast.Call, handle: Handle, is_read: Callable[[ast.expr | None], bool]
) -> str | None:
    """The same for ``batch_isend_irecv``; empty where what comes in is used.

    ``is_read``: whether a tensor is read behind the call.
    """
    operations = list(_operations(module, call.args[0])) if call.args else []
    for operation in operations:
        what = _WHAT.of(operation)
        name = None if what is None else module.qualified_name(what)
        tensor = _TENSOR.of(operation)
        if name == "torch.distributed.irecv" and is_read(tensor):
            return ""
        if name == "torch.distributed.isend" and _is_changed(module, call, tensor):
            return CHANGED
    return _cut_off(module, handle)


def _operations(module: Module, given: ast.expr) -> Iterator[ast.Call]:
    """The ``P2POp`` calls of a list: written in it, in variables that it is made of, and added to it."""
    pending, seen = [given], set()
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Call) and module.qualified_name(node.func) == _OPERATION:
            yield node
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in seen:
            seen.add(node.id)
            pending += _put_into(module, node)
        pending += [item for item in ast.iter_child_nodes(node) if isinstance(item, ast.expr)]
        if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
            pending += [generator.iter for generator in node.generators]


def _put_into(module: Module, variable: ast.Name) -> Iterator[ast.expr]:
    scope, bindings = module.names.bindings(variable)
    if scope is None or scope.kind != "function":
        return
    for binding in bindings:
        parent = module.parent(binding)
        if isinstance(parent, ast.AugAssign):
            yield parent.value
        elif isinstance(binding, ast.Name):
            value = module.flow.assigned_value(binding)
            if value is not None:
                yield value
    for load in module.loads_of_same_name(variable):
        method = module.parent(load)
        if isinstance(method, ast.Attribute) and method.attr in _LISTS:
            call = module.parent(method)
            if isinstance(call, ast.Call) and call.func is method:
                yield from call.args


def _is_changed(module: Module, call: ast.Call, sent: ast.expr | None) -> bool:
    tensor = viewed(sent)
    if tensor is None:
        return False
    if changed_behind(module, call, tensor):
        return True
    # The next call of a method of the same object finds the same buffer.
    cls = module.enclosing_class(call)
    if cls is None or not isinstance(tensor, ast.Attribute):
        return False
    if module.class_of_self(tensor.value) is None:
        return False
    uses = TensorUses(module, tensor, only_changes=True)
    return any(
        uses.first(statement) is not None
        for method in cls.body
        if isinstance(method, (ast.FunctionDef, ast.AsyncFunctionDef)) and method.name != "__init__"
        for statement in method.body
    )


def _cut_off(module: Module, handle: Handle) -> str | None:
    """Whether the work goes away, and the program may use a backend that stops sending then."""
    if isinstance(handle.holder, ast.Attribute):
        return None
    for user in (module, *module.users_saying(_MAKES_GROUP.rpartition(".")[2])):
        for call in user.calls(_MAKES_GROUP):
            backend = user.argument(call, "backend", 0)
            if backend is not None and any(
                isinstance(name, str) and "gloo" in name for name in backend.constants()
            ):
                return CUT_OFF
    return None
