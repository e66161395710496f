"""Collective operations on one rank: groups, roots, shapes, and what is equal on all ranks afterwards."""

from __future__ import annotations

import ast

from ranksafe.rank_flow.binding import bind
from ranksafe.rank_flow.expressions.groups import Groups, group_of, may_have
from ranksafe.rank_flow.object_lists import note_misuse
from ranksafe.rank_flow.operations import Operation
from ranksafe.rank_flow.run import Run
from ranksafe.rank_flow.syntax import argument
from ranksafe.rank_flow.tables import functions_that
from ranksafe.rank_flow.traces import Event
from ranksafe.rank_flow.values import (
    NOTHING_KNOWN,
    SAME,
    Abstract,
    Constant,
    Object,
    Sequence,
    Value,
    Varies,
    combined,
    whole_number,
)
from ranksafe.rank_flow.wrapped_by_libraries import wrapped_by_library
from ranksafe.rank_flow.wrapped_models import (
    WRAPS,
    is_guarded_by_sharding,
    is_of_unknown_stage,
    is_sharded,
    prepared,
    wrap_model,
)


def perform(run: Run, node: ast.Call, operation: Operation, receiver: Value | None) -> Value:
    """What the operation returns; it is written to the trace if it synchronises ranks here."""
    arguments = run.arguments(node)
    if _is_local(run, node, operation, receiver, arguments):
        return combined(*arguments)
    made = _wrapped(run, node, operation, receiver, arguments)
    if made is not None:
        return made
    event = _event(run, node, operation, receiver)
    _tensor_of(run, event, node, operation)
    note_misuse(run, event, node, operation)
    _note_membership(run, event, node, operation)
    run.items.append(event)
    result = _result(run, node, operation, event)
    if isinstance(result, Object) and result.kind == "group":
        event.members = result.detail
        if any(item.arg == "use_local_synchronization" for item in node.keywords):
            # Only the members meet then.
            event.group, event.members = result, None
            event.group_known = result.detail is not None
    if operation.is_asynchronous(node):
        return Object("work", node=node, module=run.module)
    return result


def _is_local(
    run: Run, node: ast.Call, operation: Operation, receiver: Value | None, values: list[Value]
) -> bool:
    """Whether no other rank has to take part: it is turned off, or for models that are sharded or wrapped."""
    if _is_off(node, operation):
        return True
    things = [value for value in (receiver, *values) if isinstance(value, Object)]
    if operation.only == "wrapped" and operation.word != "backward":
        return not any(thing.kind == "wrapped" for thing in things)
    if (
        operation.only != "sharded"
        or operation.word == "full_tensor"
        or any(map(is_sharded, things))
    ):
        return False
    of_trainer = operation.name.startswith("transformers.Trainer.") and _trains_sharded(run)
    of_engine = operation.name in functions_that("gathers for ZeRO-3") and is_of_unknown_stage(
        receiver
    )
    return not (of_trainer or of_engine or is_guarded_by_sharding(run.module, node))


def _wrapped(
    run: Run, node: ast.Call, operation: Operation, receiver: Value | None, values: list[Value]
) -> Value | None:
    """What calls return that wrap something, or that mean something only for what is wrapped; None for others."""
    if operation.kind == "wrap":
        if operation.name in WRAPS:
            return wrap_model(run, node, WRAPS[operation.name], operation.group)
        made = wrapped_by_library(run, node, operation, receiver, values)
        if made is not None:
            return made
    if operation.word == "prepare":
        return prepared(run, node, values)
    delayed = operation.word == "backward" and run.inside.no_sync
    return SAME if delayed or operation.word in ("init_process_group", "accumulate") else None


def _event(run: Run, node: ast.Call, operation: Operation, receiver: Value | None) -> Event:
    given = None if operation.group is None else operation.group.of(node)
    group, group_known = group_of(None if given is None else run.value(given))
    event = Event(operation, run.place(node), group, group_known)
    if isinstance(receiver, Object) and receiver.kind in ("library", "wrapped"):
        event.model = receiver
    root = None if operation.root is None else operation.root.of(node)
    if root is not None:
        event.root = run.value(root)
    elif operation.root_default is not None:
        event.root = Constant(operation.root_default)
    if operation.kind == "point-to-point":
        event.peer = event.root
        tag = None if operation.tag is None else operation.tag.of(node)
        event.tag = None if tag is None else run.value(tag)
        run.largest_rank = max(run.largest_rank, whole_number(event.peer) or 0)
    return event


def _note_membership(run: Run, event: Event, node: ast.Call, operation: Operation) -> None:
    """A collective of a group by a rank outside it, or with a root outside it."""
    group = event.group
    if group is not None and group.detail is not None:
        if run.world.rank not in group.detail:
            run.note("outside-group", node, event=event)
        elif not _has_root(event, (("", group),)):
            sends = operation.kind == "point-to-point"
            run.note("outside-group" if sends else "foreign-root", node, event=event)
    elif not event.group_known and operation.kind == "collective":
        _note_foreign_root(run, event, node, operation)


def _note_foreign_root(run: Run, event: Event, node: ast.Call, operation: Operation) -> None:
    """One of several groups, and the root is in none of those of this rank."""
    expression = None if operation.group is None else operation.group.of(node)
    value = None if expression is None else run.look(expression)
    if isinstance(value, Abstract) and value.groups:
        rank = run.world.rank
        mine = tuple(item for item in value.groups if may_have((item,), rank))
        if mine and not _has_root(event, mine):
            run.note("foreign-root", node, event=event)


def _has_root(event: Event, groups: Groups) -> bool:
    """Whether the root, a rank of all processes, may be in one of the groups."""
    root = whole_number(event.root)
    return root is None or may_have(groups, root)


def _is_off(node: ast.Call, operation: Operation) -> bool:
    """Whether the arguments say that nothing is sent: ``self.log(...)`` without ``sync_dist=True``."""
    if operation.when is not None:
        given = operation.when.of(node)
        if not isinstance(given, ast.Constant) or given.value is not True:
            return True
    for parameter, value in operation.unless:
        given = parameter.of(node)
        if isinstance(given, ast.Constant) and given.value == value:
            return True
    return False


def _trains_sharded(run: Run) -> bool:
    """Whether the file gives a Trainer's arguments FSDP or DeepSpeed."""
    module = run.module
    return any(
        keyword.arg in ("fsdp", "deepspeed", "fsdp_config")
        and not (isinstance(keyword.value, ast.Constant) and not keyword.value.value)
        for name in functions_that("training arguments")
        for call in module.calls_written(name)
        for keyword in call.keywords
    )


def _tensor_of(run: Run, event: Event, node: ast.Call, operation: Operation) -> None:
    """Shape and element type of what is communicated, where they are known."""
    name = operation.name
    if not name.startswith(("torch.distributed.", "accelerate.")):
        return
    takes_output = name.startswith("torch.distributed.all_gather")
    if "object" in operation.word:
        if node.args:
            value = run.look(node.args[0])
            if isinstance(value, Sequence) and operation.word == "broadcast_object_list":
                event.shape = (len(value.items),)
        return
    position = 1 if takes_output else 0
    if position >= len(node.args) or operation.kind != "collective":
        return
    value = run.look(node.args[position])
    if not isinstance(value, Abstract):
        return
    event.shape = value.shape
    varies = isinstance(value.shape, Varies) and value.shape.certain
    if varies and "gather" in operation.word:
        run.note("shape", node, value=value, event=event)


def _result(run: Run, node: ast.Call, operation: Operation, event: Event) -> Value:
    same: Value = (SAME if event.group is None else NOTHING_KNOWN).changed(agreed=True)
    if operation.complete_on_root:
        origin = run.origin(node, Varies.BY_DATA)
        same = Abstract(Varies.BY_DATA, origin, complete_on=whole_number(event.root) or 0)
    result = operation.result
    if result == "return":
        return same
    if result is not None and not isinstance(result, str):
        target = result.of(node)
        if isinstance(target, (ast.Name, ast.Attribute, ast.Subscript)):
            before = run.look(target)
            _send_from_here(run, event, before)
            after: Value = same
            if isinstance(before, Sequence):
                after = Sequence((same,) * len(before.items))
            if isinstance(before, (Sequence, Abstract)) or (
                isinstance(before, Constant) and before.constant is not None
            ):
                bind(run, target, after)
                run.changed_in_place(before, after)
        return NOTHING_KNOWN
    if operation.kind == "group-construction":
        return _new_group(run, node, operation)
    if operation.word.endswith("state_dict"):
        # Whatever is in it, it is there: code asks ``state_dict is not None``.
        return Object("value", node=node, module=run.module)
    return NOTHING_KNOWN


def _send_from_here(run: Run, event: Event, sent: Value) -> None:
    """On the source of a broadcast, what is sent is what all ranks have afterwards."""
    if not event.operation.word.startswith("broadcast"):
        return  # Before the rank is asked for: who asks is looked at on every rank.
    if whole_number(event.root) != run.world.rank:
        return
    for item in sent.items if isinstance(sent, Sequence) else (sent,):
        if isinstance(item, Abstract):
            run.changed_in_place(item, item.changed(varies=Varies.NO))


def _new_group(run: Run, node: ast.Call, operation: Operation) -> Value:
    if operation.name.rpartition(".")[2] != "new_group":
        return NOTHING_KNOWN
    given = argument(node, 0, "ranks")
    members: tuple[int, ...] | None = None
    if given is None:
        members = tuple(range(run.world.size))
    else:
        value = run.value(given)
        if isinstance(value, Sequence):
            constants = [item.constant for item in value.items if isinstance(item, Constant)]
            if len(constants) == len(value.items) and all(
                isinstance(item, int) for item in constants
            ):
                members = tuple(sorted(constants))
        elif isinstance(value, Constant) and isinstance(value.constant, (range, tuple)):
            members = tuple(value.constant)
    if members:
        run.largest_rank = max(run.largest_rank, *members)
    return Object("group", node=node, module=run.module, detail=members)
