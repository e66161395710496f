"""Asynchronous collectives whose tensor is used although nobody has waited for them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ranksafe.rank_flow.async_handles import Handle, handle_of, is_private, looked_at
from ranksafe.rank_flow.issues import CHANGED, CUT_OFF, KEPT, Issue, Kind
from ranksafe.rank_flow.operations import Operation, Parameter, operations
from ranksafe.rank_flow.tables import methods_that
from ranksafe.rank_flow.tensor_uses import viewed
from ranksafe.rank_flow.traces import Place
from ranksafe.rank_flow.used_before_wait import changed_behind, used_before_wait
from ranksafe.semantics.module import Module
from ranksafe.semantics.value_flow import default_of

_READ_BY_NAME = {"grad": ("step", "clip_grad_norm_", "unscale_"), "data": ()}
"""Attributes of parameters that these methods read."""

_SEND = "isend"
_SENT = Parameter("tensor", 0)
_TENSORS_IN_OBJECTS = "batch_isend_irecv"
_MAKES_GROUP = "torch.distributed.init_process_group"


def unwaited(module: Module) -> Iterator[Issue]:
    """Asynchronous calls that nobody waits for, or too late, each at its call."""
    written = {
        name.rpartition(".")[2]
        for name, operation in operations().items()
        if operation.asynchronous is not None or operation.always_asynchronous
    }
    candidates = [
        call
        for unit in module.all_units()
        for word in written.intersection(unit.calls())
        for call in unit.calls()[word]
    ]
    for call in candidates:
        operation = operations().get(module.qualified_name(call.func) or "")
        if operation is None or operation.word == _TENSORS_IN_OBJECTS:
            continue
        if not _is_asynchronous(module, operation, call):
            continue
        handle = handle_of(module, call)
        harm = _harm_of_losing(module, call, operation, handle)
        if harm is None and used_before_wait(module, call, operation, handle):
            harm = CHANGED if operation.word == _SEND else KEPT
        if harm is not None:
            yield Issue(Kind.NEVER_WAITED_FOR, Place(call, module), operation.word, name=harm)


def _is_asynchronous(module: Module, operation: Operation, call: ast.Call) -> bool:
    given = None if operation.asynchronous is None else operation.asynchronous.of(call)
    return operation.is_asynchronous(call) or (
        isinstance(given, ast.Name) and _is_true(module, given)
    )


def _is_true(module: Module, name: ast.Name) -> bool:
    """Whether a variable is True unless somebody asks for something else."""
    scope, bindings = module.names.bindings(name)
    if scope is None or len(bindings) != 1:
        return False
    binding = bindings[0]
    if isinstance(binding, ast.Name):
        assigned = module.flow.assigned_value(binding)
        return isinstance(assigned, ast.Constant) and assigned.value is True
    default = default_of(binding, scope.node) if isinstance(binding, ast.arg) else None
    return isinstance(default, ast.Constant) and default.value is True


def _harm_of_losing(
    module: Module, call: ast.Call, operation: Operation, handle: Handle
) -> str | None:
    """What goes wrong because nobody can wait for the work: the issue's name, empty where the tensor is used."""
    if handle.kind == "dropped":
        return _harm(module, call, operation, handle)
    holder = handle.holder
    if handle.kind != "kept" or holder is None or not is_private(module, holder):
        return None
    if looked_at(module, holder):
        return None
    in_a_variable = isinstance(holder, ast.Name) and isinstance(
        module.parent(call), (ast.Assign, ast.AnnAssign)
    )
    if in_a_variable or operation.word == _SEND:
        return _harm(module, call, operation, handle)
    # A list of works is kept to wait for them.
    function = module.enclosing_function(call)
    return "" if function is None or not _synchronises_after(module, call, function) else None


def _harm(module: Module, call: ast.Call, operation: Operation, handle: Handle) -> str | None:
    if operation.word == _SEND:
        return _harm_of_send(module, call, handle)
    if operation.word == "barrier" or isinstance(operation.result, str):
        return None
    scope = module.enclosing_function(call) or module.tree
    if _synchronises_after(module, call, scope):
        return None
    given = None if operation.output is None else operation.output.of(call)
    if given is None and call.args:
        given = call.args[0]
    for part in given.elts if isinstance(given, (ast.List, ast.Tuple)) else [given]:
        for tensor in _tensors(module, part):
            if _is_read_behind(module, call, scope, tensor):
                return ""
    return None


def _tensors(module: Module, part: ast.expr | None) -> Iterator[ast.Name | ast.Attribute]:
    """The variable or attribute that an argument is, or is a view of, and what that is a view of."""
    tensor = part if isinstance(part, ast.Attribute) else viewed(part)
    if isinstance(tensor, (ast.Name, ast.Attribute)):
        yield tensor
    if isinstance(tensor, ast.Name):
        assigned = module.flow.assigned_values(tensor)
        base = viewed(assigned[0]) if len(assigned) == 1 else None
        if isinstance(base, (ast.Name, ast.Attribute)):
            yield base


def _harm_of_send(module: Module, call: ast.Call, handle: Handle) -> str | None:
    if changed_behind(module, call, _SENT.of(call)):
        return CHANGED
    if isinstance(handle.holder, ast.Attribute):
        return None
    for user in (module, *module.users_saying(_MAKES_GROUP.rpartition(".")[2])):
        for making in user.calls(_MAKES_GROUP):
            backend = user.argument(making, "backend", 0)
            if backend is not None and any(
                isinstance(name, str) and "gloo" in name for name in backend.constants()
            ):
                return CUT_OFF
    return None


def _is_read_behind(
    module: Module, call: ast.Call, scope: ast.AST, tensor: ast.Name | ast.Attribute
) -> bool:
    order = module.order_of
    end = (getattr(call, "end_lineno", 0), getattr(call, "end_col_offset", 0))
    for node in ast.walk(scope):
        if _same_tensor(node, tensor) and not _asks_structure(module, node):
            if (node.lineno, node.col_offset) > end and order(node) > order(call):  # type: ignore[attr-defined]
                return True
    readers = _READ_BY_NAME.get(tensor.attr, ()) if isinstance(tensor, ast.Attribute) else ()
    return any(
        isinstance(other, ast.Call)
        and isinstance(other.func, ast.Attribute)
        and other.func.attr in readers
        and order(other) > order(call)
        for other in module.nodes(ast.Call, scope)
    )


def _synchronises_after(module: Module, call: ast.Call, scope: ast.AST) -> bool:
    order = module.order_of
    for other in module.nodes(ast.Call, module.enclosing_class(call) or scope):
        assert isinstance(other, ast.Call)
        word = other.func.attr if isinstance(other.func, ast.Attribute) else ""
        if not module.is_inside(other, scope):
            # A hook sends, the step of the same object waits for the device.
            if word == "synchronize":
                return True
        elif word in methods_that("synchronizes") or "synchronize" in word:
            if order(other) > order(call):
                return True
    return False


def _asks_structure(module: Module, node: ast.AST) -> bool:
    holder = module.parent(node)
    return isinstance(holder, ast.Attribute) and holder.attr in methods_that("unwaited structure")


def _same_tensor(node: ast.AST, tensor: ast.Name | ast.Attribute) -> bool:
    if isinstance(tensor, ast.Name):
        return (
            isinstance(node, ast.Name) and node.id == tensor.id and isinstance(node.ctx, ast.Load)
        )
    return isinstance(node, ast.Attribute) and node.attr == tensor.attr
