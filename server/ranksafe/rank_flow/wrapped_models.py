"""Wrapping models for several ranks, calling the wrapped ones, and whether their parameters are cut into shards."""

from __future__ import annotations

import ast
import re

from ranksafe.rank_flow.binding import bind
from ranksafe.rank_flow.expressions.groups import group_of
from ranksafe.rank_flow.operations import Operation, Parameter
from ranksafe.rank_flow.run import Run
from ranksafe.rank_flow.syntax import called_names
from ranksafe.rank_flow.tables import functions_that
from ranksafe.rank_flow.traces import Event
from ranksafe.rank_flow.values import (
    NOTHING_KNOWN,
    Abstract,
    Object,
    Origin,
    Value,
    Varies,
    combined,
    listed,
)
from ranksafe.semantics.module import Module
from ranksafe.semantics.units import callee_name
from ranksafe.semantics.walking import FUNCTIONS

WRAPS = {
    "torch.nn.parallel.DistributedDataParallel": "ddp",
    "torch.distributed.fsdp.FullyShardedDataParallel": "fsdp",
    "torch.distributed.fsdp.fully_shard": "fsdp",
    "torch.distributed._composable.fsdp.fully_shard": "fsdp",
    "torch.distributed._composable.replicate": "ddp",
    "apex.parallel.DistributedDataParallel": "ddp",
}

SHARDED = "__sharded__"
"""The attribute that keeps, for an object of the project, what ``fully_shard`` made of it."""
_BUFFERED = ("BatchNorm", "SyncBatchNorm", "register_buffer", "convert_sync_batchnorm")


_GROUP = "process_group"
"""The attribute that keeps for which group a model is wrapped, where that is said."""
_SHARDED = frozenset({"fsdp", "sharded", "zero3"})
_ASKS = re.compile(
    r"distributed_type\b.*(FSDP|DEEPSPEED)|"
    r"^(self\.)?(is_fsdp_enabled|is_fsdp|is_deepspeed_enabled|fsdp_enabled|use_fsdp)$"
)
_OTHERWISE = re.compile(r"!=|\bnot in\b")


def wrap_model(run: Run, node: ast.Call, how: str, group: Parameter | None = None) -> Value:
    """The wrapped model; building the wrapper is itself a collective."""
    arguments = run.arguments(node)
    inner = arguments[0] if arguments else NOTHING_KNOWN
    if isinstance(inner, Object) and inner.kind == "wrapped":
        return inner
    wrapped = Object("wrapped", type="", node=node, module=run.module, detail=how)
    run.set_attribute(wrapped, "module", inner)
    given = None if group is None else group.of(node)
    if given is not None:
        run.set_attribute(wrapped, _GROUP, run.value(given))
    perform_for(run, node, wrapped, _built_in(callee_name(node) or how, "wrap"))
    if how == "fsdp" and (run.module.qualified_name(node.func) or "").endswith("fully_shard"):
        if isinstance(inner, Object) and inner.kind == "object":
            run.set_attribute(inner, SHARDED, wrapped)
        for name in _changed_in_place(run, node):
            bind(run, name, wrapped)
        run.changed_in_place(inner, wrapped)
    return wrapped


def _changed_in_place(run: Run, node: ast.Call) -> list[ast.Name]:
    """The names of what ``fully_shard`` is given, through a loop over several models too."""
    given = node.args[0] if node.args else None
    if not isinstance(given, ast.Name):
        return []
    loop = run.module.parent(node)
    while loop is not None and not isinstance(loop, (ast.For, *FUNCTIONS)):
        loop = run.module.parent(loop)
    found = [given]
    if (
        isinstance(loop, ast.For)
        and isinstance(loop.target, ast.Name)
        and loop.target.id == given.id
        and isinstance(loop.iter, (ast.Tuple, ast.List))
    ):
        found += [item for item in loop.iter.elts if isinstance(item, ast.Name)]
    return found


def prepared(run: Run, node: ast.Call, arguments: list[Value]) -> Value:
    """What ``accelerator.prepare`` returns: each argument, wrapped or sharded where it can be."""
    found: list[Value] = []
    for value, expression in zip(arguments, node.args, strict=False):
        if isinstance(value, Object) and value.kind == "loader":
            found.append(_prepared_loader(run, value, node))
        elif isinstance(value, Object) and value.kind == "wrapped":
            found.append(value)
        else:
            found.append(_prepared_object(run, value, expression, node))
    return found[0] if len(found) == 1 else listed(tuple(found))


def _prepared_loader(run: Run, loader: Object | None, node: ast.Call) -> Object:
    """A sharded loader; without ``even_batches`` some ranks get a batch less, unless the rest is dropped."""
    length, origin = Varies.PERHAPS, None
    accelerator = _accelerator(run, node)
    if accelerator is not None and accelerator.detail == "uneven" and not _drops_last(loader):
        length = Varies.BY_RANK
        assert accelerator.node is not None
        assert accelerator.module is not None
        text = "even_batches=False"
        origin = Origin(text, accelerator.node, accelerator.module, Varies.BY_RANK)
    return Object(
        "loader", node=node, module=run.module, detail="sharded", length=length, origin=origin
    )


def _prepared_object(run: Run, value: Value, expression: ast.expr, node: ast.Call) -> Value:
    made = expression if isinstance(expression, ast.Call) else ast.Call(expression, [], [])
    written = callee_name(made) or ""
    if "loader" in written or "dataloader" in written or written.endswith("_dl"):
        return _prepared_loader(run, None, node)
    if "optim" in written or "sched" in written:
        return value
    detail = "fsdp" if _shards(run, node) else "prepared"
    wrapped = Object("wrapped", node=node, module=run.module, detail=detail)
    run.set_attribute(wrapped, "module", value)
    return wrapped


def _shards(run: Run, node: ast.Call) -> bool:
    """Whether the Accelerator was made with FSDP or DeepSpeed."""
    accelerator = _accelerator(run, node)
    return accelerator is not None and accelerator.detail == "sharded"


def _accelerator(run: Run, node: ast.Call) -> Object | None:
    if not isinstance(node.func, ast.Attribute):
        return None
    outer, run.items = run.items, []
    receiver = run.value(node.func.value)
    run.items = outer
    return receiver if isinstance(receiver, Object) else None


def forward(run: Run, node: ast.Call, model: Object, arguments: list[Value]) -> Value:
    """The forward of a wrapped model: a collective where it gathers parameters or broadcasts buffers."""
    found = combined(*arguments)
    if _synchronises(run, model):
        perform_for(run, node, model, FORWARD)
    # What goes in may be chosen by the rank; what comes out is data.
    varies = Varies.BY_DATA if found.varies.certain else found.varies
    return Abstract(varies, found.origin, made_by=None if run.inside.no_grad else model)


def perform_for(run: Run, node: ast.AST, model: Object, operation: Operation) -> None:
    """Write down what a wrapped model performs, among the ranks of the group that it is wrapped for."""
    group, known = group_of(run.attribute(model, _GROUP))
    run.items.append(Event(operation, run.place(node), group, known, model=model))


def _synchronises(run: Run, model: Object) -> bool:
    """Whether the forward waits for the other ranks.

    FSDP gathers parameters. DDP prepares the reduction of gradients (its documentation calls forward a
    synchronisation point), and broadcasts buffers, also without gradients; a model that is seen to have none, or
    ``broadcast_buffers=False``, does not then.
    """
    if model.detail in ("engine", "unsharded"):
        # DeepSpeed gathers parameters in ZeRO stage 3 only, and reduces gradients in ``engine.backward``.
        return False
    if model.detail != "ddp" or not run.inside.no_grad:
        return True
    return _may_have_buffers(run, model)


def _may_have_buffers(run: Run, model: Object) -> bool:
    call, module = model.node, model.module
    if not isinstance(call, ast.Call) or module is None:
        return False
    for keyword in call.keywords:
        if keyword.arg == "broadcast_buffers":
            return not (isinstance(keyword.value, ast.Constant) and keyword.value.value is False)
    inner = run.attribute(model, "module")
    seen: list[ast.AST] = [call.args[0]] if call.args else []
    if isinstance(inner, Object) and inner.node is not None:
        seen.append(inner.node)
    elif call.args and isinstance(call.args[0], ast.Name):
        seen += module.flow.assigned_values(call.args[0])
    return any(_has_buffers(module, node) for node in seen)


def _drops_last(loader: Object | None) -> bool:
    call = None if loader is None else loader.node
    return isinstance(call, ast.Call) and any(
        item.arg == "drop_last" and isinstance(item.value, ast.Constant) and bool(item.value.value)
        for item in call.keywords
    )


def _has_buffers(module: Module, node: ast.AST) -> bool:
    """Whether code builds layers with running statistics, or registers buffers."""
    if any(name.startswith(_BUFFERED) for name in called_names(node)):
        return True
    calls = (part.func for part in ast.walk(node) if isinstance(part, ast.Call))
    return any(module.qualified_name(name) in functions_that("builds buffers") for name in calls)


def _built_in(word: str, kind: str = "step") -> Operation:
    return Operation(word, kind, word, None, None, None, False, None, None, False, None)


FORWARD = _built_in("forward")
BACKWARD = _built_in("backward")
STATE = _built_in("state_dict")


def is_sharded(value: Value | None) -> bool:
    """Whether a model is wrapped by FSDP or ZeRO-3, or an Accelerator made for them."""
    return isinstance(value, Object) and value.detail in _SHARDED


def is_of_unknown_stage(value: Value | None) -> bool:
    """Whether the stage of a DeepSpeed engine stands in a file, or nowhere in sight."""
    return not isinstance(value, Object) or value.detail == "engine"


def is_guarded_by_sharding(module: Module, node: ast.AST) -> bool:
    """Whether code runs only for sharded models: in ``if accelerator.distributed_type == DistributedType.FSDP:``."""
    return any(_asks(module, guard.test, guard.positive) for guard in module.guards(node))


def _asks(module: Module, test: ast.expr, holds: bool) -> bool:
    """Whether a test that holds, or does not, says that the model is sharded."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return holds and any(_asks(module, item, holds) for item in test.values)
    if isinstance(test, ast.Name) and (assigned := module.flow.assigned_values(test)):
        return all(_asks(module, item, holds) for item in assigned)
    text = module.text_of(test)
    return _ASKS.search(text) is not None and (_OTHERWISE.search(text) is None) is holds
