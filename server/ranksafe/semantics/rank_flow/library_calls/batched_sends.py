"""``torch.distributed.P2POp`` and the batches that are sent with ``batch_isend_irecv``."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ranksafe.semantics.rank_flow.operations import Parameter, operation_named
from ranksafe.semantics.rank_flow.traces import Event
from ranksafe.semantics.rank_flow.values import Known, Many, Thing, Unknown, Value, truth_of

if TYPE_CHECKING:
    from ranksafe.semantics.rank_flow.interpreter import Interpreter

# torch/distributed/distributed_c10d.py:P2POp.__new__ (torch 2.13.0)
_OPERATION = Parameter("op", 0)
_TENSOR = Parameter("tensor", 1)
_PEER = Parameter("peer", 2)
_TAG = Parameter("tag", 4)
_BEGUN = frozenset({"isend", "irecv"})
_KIND = "send-or-receive"


def single(interpreter: Interpreter, node: ast.Call, name: str) -> Thing | None:
    """One operation of a batch, which nothing sends yet; None for other calls."""
    if name.rpartition(".")[2] != "P2POp" or not name.startswith("torch.distributed."):
        return None
    run = interpreter.run
    made = Thing(_KIND, node=node, module=run.module)
    written = _OPERATION.of(node)
    peer = _PEER.of(node)
    if written is None or peer is None:
        return made
    called = run.module.qualified_name(_chosen(interpreter, written))
    operation = None if called is None else operation_named(called)
    if operation is None or operation.word not in _BEGUN:
        return made
    event = Event(operation, run.place(node))
    event.peer = event.root = interpreter.expressions.value(peer)
    given = _TENSOR.of(node)
    tensor = None if given is None else interpreter.expressions.value(given)
    if isinstance(tensor, Unknown):
        event.shape, event.dtype = tensor.shape, tensor.dtype
    tag = _TAG.of(node)
    if tag is not None:
        event.tag = interpreter.expressions.value(tag)
    if isinstance(event.peer, Known) and isinstance(event.peer.constant, int):
        run.largest_rank = max(run.largest_rank, event.peer.constant)
    return Thing(_KIND, node=node, module=run.module, detail=event)


def batched(arguments: list[Value]) -> list[Event] | None:
    """The sends and receives of a batch, in order; None where one of them is not known."""
    if not arguments or not isinstance(arguments[0], Many):
        return None
    found = [
        item.detail
        for item in arguments[0].items
        if isinstance(item, Thing) and item.kind == _KIND and isinstance(item.detail, Event)
    ]
    return found if len(found) == len(arguments[0].items) else None


def _chosen(interpreter: Interpreter, node: ast.expr) -> ast.expr:
    """``dist.isend if rank == 0 else dist.irecv``: the function that this rank takes."""
    if isinstance(node, ast.IfExp):
        truth = truth_of(interpreter.expressions.value(node.test))
        if truth is not None:
            return _chosen(interpreter, node.body if truth else node.orelse)
    return node
