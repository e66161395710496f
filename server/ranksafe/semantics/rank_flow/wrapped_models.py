"""Wrapping models for several ranks, and calling the wrapped ones."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from ranksafe.semantics.rank_flow.library_calls.layers import has_uneven_shape, through_layer
from ranksafe.semantics.rank_flow.operations import Operation
from ranksafe.semantics.rank_flow.traces import Event
from ranksafe.semantics.rank_flow.values import (
    NOTHING_KNOWN,
    Many,
    Origin,
    Sameness,
    Thing,
    Unknown,
    Value,
    combined,
)
from ranksafe.semantics.units import callee_name
from ranksafe.semantics.walking import FUNCTIONS

if TYPE_CHECKING:
    from ranksafe.semantics.rank_flow.interpreter import Interpreter

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


class WrappedModels:
    """DDP, FSDP and what accelerate prepares."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._run = interpreter.run
        self._interpreter = interpreter

    def wrap(self, node: ast.Call, how: str) -> Value:
        """The wrapped model; building the wrapper is itself a collective."""
        arguments = self._interpreter.calls.arguments(node)
        inner = arguments[0] if arguments else NOTHING_KNOWN
        if isinstance(inner, Thing) and inner.kind == "wrapped":
            return inner
        wrapped = Thing("wrapped", type="", node=node, module=self._run.module, detail=how)
        self._run.set_attribute(wrapped, "module", inner)
        word = callee_name(node) or how
        self._run.items.append(Event(_built_in(word, "wrap"), self._run.place(node), model=wrapped))
        if how == "fsdp" and (self._run.module.qualified_name(node.func) or "").endswith(
            "fully_shard"
        ):
            if isinstance(inner, Thing) and inner.kind == "object":
                self._run.set_attribute(inner, SHARDED, wrapped)
            for held in self._changed_in_place(node):
                self._interpreter.assignments.bind(held, wrapped)
            self._shard_each(node, wrapped)
        return wrapped

    def _changed_in_place(self, node: ast.Call) -> list[ast.expr]:
        """The variables and attributes that hold what ``fully_shard`` is given, also through a loop over several."""
        given = node.args[0] if node.args else None
        if isinstance(given, ast.Attribute):
            return [given]
        if not isinstance(given, ast.Name):
            return []
        loop = self._run.module.parent(node)
        while loop is not None and not isinstance(loop, (ast.For, *FUNCTIONS)):
            loop = self._run.module.parent(loop)
        found: list[ast.expr] = [given]
        if (
            isinstance(loop, ast.For)
            and isinstance(loop.target, ast.Name)
            and loop.target.id == given.id
            and isinstance(loop.iter, (ast.Tuple, ast.List))
        ):
            found += [
                item for item in loop.iter.elts if isinstance(item, (ast.Name, ast.Attribute))
            ]
        return found

    def _shard_each(self, node: ast.Call, wrapped: Thing) -> None:
        """``for layer in model.layers: fully_shard(layer)``: every layer that the attribute holds is sharded."""
        module = self._run.module
        loop = module.parent(node)
        while loop is not None and not isinstance(loop, (ast.For, *FUNCTIONS)):
            if isinstance(loop, ast.If):
                return
            loop = module.parent(loop)
        given = node.args[0] if node.args else None
        if not isinstance(loop, ast.For) or not isinstance(given, ast.Name):
            return
        written, target = loop.iter, loop.target
        if isinstance(written, ast.Call) and getattr(written.func, "id", "") == "enumerate":
            pair = target.elts[-1:] if isinstance(target, ast.Tuple) else []
            written, target = written.args[0] if written.args else written, (pair or [target])[0]
        layers = written.elts if isinstance(written, (ast.Tuple, ast.List)) else [written]
        if getattr(target, "id", "") != given.id:
            return
        for layer in layers:
            starred = isinstance(layer, ast.Starred)
            held = layer.value if isinstance(layer, ast.Starred) else layer
            if isinstance(held, ast.Attribute) and (starred or layers == [written]):
                self._interpreter.assignments.bind(held, replace(NOTHING_KNOWN, each=wrapped))

    def prepared(self, node: ast.Call, arguments: list[Value]) -> Value:
        """What ``accelerator.prepare`` returns: each argument, wrapped or sharded where it can be."""
        found: list[Value] = []
        for value, expression in zip(arguments, node.args, strict=False):
            if isinstance(value, Thing) and value.kind == "loader":
                found.append(self._prepared_loader(value, node))
            elif isinstance(value, Thing) and value.kind == "wrapped":
                found.append(value)
            else:
                found.append(self._prepared_object(value, expression, node))
        return found[0] if len(found) == 1 else Many(tuple(found))

    def _prepared_loader(self, loader: Thing | None, node: ast.Call) -> Thing:
        """A sharded loader; without ``even_batches`` some ranks get a batch less, unless the rest is dropped."""
        length, origin = Sameness.UNKNOWN, None
        accelerator = self._accelerator(node)
        if accelerator is not None and accelerator.detail == "uneven" and not _drops_last(loader):
            length = Sameness.RANK
            assert accelerator.node is not None
            assert accelerator.module is not None
            text = "even_batches=False"
            origin = Origin(text, accelerator.node, accelerator.module, Sameness.RANK)
        return Thing(
            "loader",
            node=node,
            module=self._run.module,
            detail="sharded",
            length=length,
            origin=origin,
        )

    def _prepared_object(self, value: Value, expression: ast.expr, node: ast.Call) -> Value:
        made = expression if isinstance(expression, ast.Call) else ast.Call(expression, [], [])
        written = callee_name(made) or ""
        if "loader" in written or "dataloader" in written or written.endswith("_dl"):
            return self._prepared_loader(None, node)
        if "optim" in written or "sched" in written:
            return value
        detail = "fsdp" if self._shards(node) else "prepared"
        wrapped = Thing("wrapped", node=node, module=self._run.module, detail=detail)
        self._run.set_attribute(wrapped, "module", value)
        return wrapped

    def _shards(self, node: ast.Call) -> bool:
        """Whether the Accelerator was made with FSDP or DeepSpeed."""
        accelerator = self._accelerator(node)
        return accelerator is not None and accelerator.detail == "sharded"

    def _accelerator(self, node: ast.Call) -> Thing | None:
        if not isinstance(node.func, ast.Attribute):
            return None
        outer, self._run.items = self._run.items, []
        receiver = self._interpreter.expressions.value(node.func.value)
        self._run.items = outer
        return receiver if isinstance(receiver, Thing) else None

    def call(self, node: ast.Call, model: Thing, arguments: list[Value]) -> Value:
        """The forward of a wrapped model: a collective where it gathers parameters or broadcasts buffers."""
        found = combined(*arguments)
        run = self._run
        if self._synchronises(model):
            run.items.append(Event(FORWARD, run.place(node), model=model))
        # What goes in may be chosen by the rank; what comes out is data.
        sameness = Sameness.DATA if found.sameness.varies else found.sameness
        made = Unknown(sameness, found.origin, made_by=None if run.inside.no_grad else model)
        shaped = self._shaped(node, model, arguments)
        if shaped is None:
            return made
        return replace(made, shape=shaped.shape, length=shaped.length, origin=shaped.origin)

    def _shaped(self, node: ast.Call, model: Thing, arguments: list[Value]) -> Unknown | None:
        """What the model that is wrapped makes of a tensor whose shape differs; None where that is not known."""
        if not node.args or not any(map(has_uneven_shape, arguments)):
            return None
        run = self._run
        inner = run.attribute(model, "module")
        if not isinstance(inner, Thing) or inner.kind != "object":
            wraps = model.node.args[:1] if isinstance(model.node, ast.Call) else []
            if len(wraps) != 1 or model.module is None:
                return None
            return through_layer(model.module, wraps[0], arguments[0])
        forward = self._interpreter.functions.method(inner, "forward")
        if forward is None or not self._interpreter.functions.is_small(forward):
            return None
        heap = run.heap_now()
        with run.unnoticed():
            found = self._interpreter.followed.entered(node, forward, None, inner)
        run.heap = heap
        return found if has_uneven_shape(found) and isinstance(found, Unknown) else None

    def _synchronises(self, model: Thing) -> bool:
        """Whether the forward waits for the other ranks.

        FSDP gathers parameters. DDP prepares the reduction of gradients (its documentation calls forward a
        synchronisation point), and broadcasts buffers, also without gradients; a model that is seen to have none, or
        ``broadcast_buffers=False``, does not then.
        """
        if model.detail in ("engine", "unsharded"):
            # DeepSpeed gathers parameters in ZeRO stage 3 only, and reduces gradients in ``engine.backward``.
            return False
        if model.detail != "ddp" or not self._run.inside.no_grad:
            return True
        return self._may_have_buffers(model)

    def _may_have_buffers(self, model: Thing) -> bool:
        call, module = model.node, model.module
        if not isinstance(call, ast.Call) or module is None:
            return False
        for keyword in call.keywords:
            if keyword.arg == "broadcast_buffers":
                return not (
                    isinstance(keyword.value, ast.Constant) and keyword.value.value is False
                )
        inner = self._run.attribute(model, "module")
        seen: list[ast.AST] = [call.args[0]] if call.args else []
        if isinstance(inner, Thing) and inner.node is not None:
            seen.append(inner.node)
        elif call.args and isinstance(call.args[0], ast.Name):
            seen += module.flow.assigned_values(call.args[0])
        return any(_has_buffers(node) for node in seen)


def is_wrapped(value: Value | None) -> bool:
    """Whether a value is a wrapped model, or holds nothing else."""
    if isinstance(value, Many):
        return bool(value.items) and all(map(is_wrapped, value.items))
    if isinstance(value, Unknown):
        return isinstance(value.each, Thing) and value.each.kind == "wrapped"
    return isinstance(value, Thing) and value.kind == "wrapped"


def _drops_last(loader: Thing | None) -> bool:
    call = None if loader is None else loader.node
    return isinstance(call, ast.Call) and any(
        item.arg == "drop_last" and isinstance(item.value, ast.Constant) and bool(item.value.value)
        for item in call.keywords
    )


def _has_buffers(node: ast.AST) -> bool:
    """Whether code builds layers with running statistics, or registers buffers."""
    return any(
        (callee_name(call) or "").startswith(_BUFFERED)
        for call in ast.walk(node)
        if isinstance(call, ast.Call)
    )


def _built_in(word: str, kind: str = "step") -> Operation:
    return Operation(word, kind, word, None, None, None, False, None, None, False, None)


FORWARD = _built_in("forward")
BACKWARD = _built_in("backward")
STATE = _built_in("state_dict")
