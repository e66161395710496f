"""``torch.distributed.P2POp`` and the batches that are sent with ``batch_isend_irecv``."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ranksafe.semantics.rank_flow.operations import Parameter, operation_named
from ranksafe.semantics.rank_flow.traces import Event
from ranksafe.semantics.rank_flow.values import Known, Many, Thing, Unknown, Value, truth_of

if TYPE_CHECKING:
    from ranksafe.semantics.module import Module
    from ranksafe.semantics.rank_flow.interpreter import Interpreter
    from ranksafe.semantics.rank_flow.run import Run

# torch/distributed/distributed_c10d.py:P2POp.__new__ (torch 2.13.0)
_OPERATION = Parameter("op", 0)
_TENSOR = Parameter("tensor", 1)
_PEER = Parameter("peer", 2)
_GROUP = Parameter("group", 3)
_TAG = Parameter("tag", 4)
_BACKEND = Parameter("backend", 0)
_REFUSED = frozenset({"send", "send_object_list"})
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
    if _GROUP.of(node) is None:
        note_own_peer(run, node, event)
    return Thing(_KIND, node=node, module=run.module, detail=event)


def note_own_peer(run: Run, node: ast.Call, event: Event) -> None:
    """Note what a rank sends to itself, which fails.

    ``send`` refuses it (torch 2.13.0, distributed_c10d.py:_check_not_self_rank); gloo has no pair of a rank with
    itself, so that ``isend`` fails there, while NCCL can do it in a batch.
    """
    # A parameter that is called ``rank`` may be any rank.
    named = isinstance(event.peer, Known) and event.peer.origin is None
    peer = event.peer.constant if named and isinstance(event.peer, Known) else None
    if peer != run.world.rank or event.group is not None or not event.group_known:
        return
    word = event.operation.word
    if word in _REFUSED or (word == "isend" and _runs_gloo(run.module)):
        run.note("own-peer", node, event=event)


def _runs_gloo(module: Module) -> bool:
    """Whether the file makes its process group of the backend gloo and of no other one."""
    given = [_BACKEND.of(call) for call in module.calls_written("init_process_group")]
    return bool(given) and all(getattr(item, "value", None) == "gloo" for item in given)


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
