"""Collective operations on one rank: groups, roots, shapes, and what is equal on all ranks afterwards."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from ranksafe.semantics.rank_flow.accelerators import wait_of
from ranksafe.semantics.rank_flow.expressions.reduced_entries import forget_entry
from ranksafe.semantics.rank_flow.group_roots import GroupRoots, has_root, root_in_group
from ranksafe.semantics.rank_flow.library_calls import device_meshes
from ranksafe.semantics.rank_flow.library_calls.batched_sends import batched, note_own_peer
from ranksafe.semantics.rank_flow.library_calls.layers import has_uneven_shape
from ranksafe.semantics.rank_flow.object_lists import ObjectLists
from ranksafe.semantics.rank_flow.operations import Operation
from ranksafe.semantics.rank_flow.sharding import (
    FOR_ZERO3,
    is_guarded_by_sharding,
    is_of_unknown_stage,
    is_sharded,
)
from ranksafe.semantics.rank_flow.traces import Event
from ranksafe.semantics.rank_flow.values import (
    NOTHING_KNOWN,
    SAME,
    Known,
    Many,
    Sameness,
    Thing,
    Unknown,
    Value,
    combined,
)
from ranksafe.semantics.rank_flow.wrapped_models import WRAPS

if TYPE_CHECKING:
    from ranksafe.semantics.rank_flow.interpreter import Interpreter

_TRAINING_ARGUMENTS = (
    "TrainingArguments", "Seq2SeqTrainingArguments", "SFTConfig", "DPOConfig", "GRPOConfig", "KTOConfig", "ORPOConfig",
    "CPOConfig", "RewardConfig", "RLOOConfig", "PPOConfig", "GKDConfig",
)  # fmt: skip

_WITH_TENSOR = frozenset({"collective", "point-to-point"})
_SAME_SHAPE = frozenset({"all_reduce", "reduce", "broadcast"})


class CollectiveCalls:
    """Evaluates calls of the table's operations."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._run = interpreter.run
        self._interpreter = interpreter
        self._lists = ObjectLists(interpreter)
        self._roots = GroupRoots(interpreter)

    def value(self, node: ast.Call, operation: Operation, receiver: Value | None) -> Value:
        """What the operation returns; it is written to the trace if it synchronises ranks here."""
        run = self._run
        arguments = self._interpreter.calls.arguments(node)
        if self._is_off(node, operation):
            return combined(*arguments)
        operation = wait_of(operation, receiver) or operation
        sharded = operation.only == "sharded" and operation.word != "full_tensor"
        if sharded and not self._is_wrapped(receiver, arguments, "fsdp"):
            trainer = operation.name.startswith("transformers.Trainer.") and self._trains_sharded()
            if not (
                trainer
                or is_guarded_by_sharding(run.module, node)
                or (operation.name in FOR_ZERO3 and is_of_unknown_stage(receiver))
            ):
                return combined(*arguments)
        if operation.only == "wrapped" and operation.word != "backward":
            if not self._is_wrapped(receiver, arguments, None):
                return combined(*arguments)
        if operation.kind == "wrap" and operation.name in WRAPS:
            return self._interpreter.models.wrap(node, WRAPS[operation.name])
        if operation.kind == "wrap":
            made = self._interpreter.wrapped_by_libraries.value(
                node, operation, receiver, arguments
            )
            if made is not None:
                return made
        if operation.word == "backward" and run.inside.no_sync:
            return SAME
        if operation.word in ("prepare", "init_process_group", "accumulate"):
            return (
                self._interpreter.models.prepared(node, arguments)
                if operation.word == "prepare"
                else SAME
            )
        if operation.word == "batch_isend_irecv" and (sent := batched(arguments)) is not None:
            run.items.extend(sent)
            return Thing("work", node=node, module=run.module)
        group, group_known = self._group(node, operation)
        event = Event(operation, run.place(node), group, group_known)
        if isinstance(receiver, Thing) and receiver.kind in ("library", "wrapped"):
            event.model = receiver
        if operation.root is not None:
            root = operation.root.of(node)
            if (of_group := root_in_group(node)) is not None:
                event.root = self._roots.of_member(of_group, group)
            elif root is not None:
                event.root = self._interpreter.expressions.value(root)
            elif operation.root_default is not None:
                event.root = Known(operation.root_default)
            if operation.kind == "point-to-point":
                event.peer = event.root
                tag = None if operation.tag is None else operation.tag.of(node)
                if tag is not None:
                    event.tag = self._interpreter.expressions.value(tag)
        if isinstance(event.peer, Known) and isinstance(event.peer.constant, int):
            run.largest_rank = max(run.largest_rank, event.peer.constant)
            note_own_peer(run, node, event)
        self._tensor_of(event, node, operation)
        self._lists.note_misuse(event, node, operation)
        if group is not None and group.detail is not None:
            if run.world.rank not in group.detail:
                run.note("outside-group", node, event=event)
            elif not has_root(event, (("", group),)):
                sends = operation.kind == "point-to-point"
                run.note("outside-group" if sends else "foreign-root", node, event=event)
        elif not group_known and operation.kind == "collective":
            self._roots.note_foreign(event, node, operation)
        elif operation.kind == "collective":
            self._roots.note_own(event, node)
        run.items.append(event)
        result = self._result(node, operation, event)
        if isinstance(result, Thing) and result.kind == "group":
            event.members = result.detail
            if any(item.arg == "use_local_synchronization" for item in node.keywords):
                # Only the members meet then.
                event.group, event.members = result, None
                event.group_known = result.detail is not None
        if self._is_asynchronous(node, operation):
            return Thing("work", node=node, module=run.module)
        return result

    def _group(self, node: ast.Call, operation: Operation) -> tuple[Thing | None, bool]:
        expression = None if operation.group is None else operation.group.of(node)
        if expression is None:
            return None, True
        value = self._interpreter.expressions.value(expression)
        if isinstance(value, Thing) and value.kind == "group":
            return value, value.detail is not None
        if isinstance(value, Known) and value.constant is None:
            return None, True
        name = self._run.module.qualified_name(expression)
        if name is not None and name.endswith(".group.WORLD"):
            return None, True
        return None, False

    def _is_off(self, node: ast.Call, operation: Operation) -> bool:
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

    def _is_asynchronous(self, node: ast.Call, operation: Operation) -> bool:
        if operation.always_asynchronous:
            return True
        if operation.asynchronous is None:
            return False
        given = operation.asynchronous.of(node)
        return isinstance(given, ast.Constant) and given.value is True

    def _trains_sharded(self) -> bool:
        """Whether the file gives a Trainer's arguments FSDP or DeepSpeed."""
        module = self._run.module
        return any(
            keyword.arg in ("fsdp", "deepspeed", "fsdp_config")
            and not (isinstance(keyword.value, ast.Constant) and not keyword.value.value)
            for name in _TRAINING_ARGUMENTS
            for call in module.calls_written(name)
            for keyword in call.keywords
        )

    def _is_wrapped(self, receiver: Value | None, values: list[Value], how: str | None) -> bool:
        found = [value for value in (receiver, *values) if isinstance(value, Thing)]
        if how == "fsdp":
            return any(is_sharded(thing) for thing in found)
        return any(thing.kind == "wrapped" for thing in found)

    def _tensor_of(self, event: Event, node: ast.Call, operation: Operation) -> None:
        """Shape and element type of what is communicated, where they are known."""
        name = operation.name
        if not name.startswith(("torch.distributed.", "accelerate.")):
            return
        takes_output = name.startswith("torch.distributed.all_gather")
        if "object" in operation.word:
            if node.args:
                value = self._interpreter.expressions.look(node.args[0])
                if isinstance(value, Many) and operation.word == "broadcast_object_list":
                    event.shape = (len(value.items),)
            return
        position = 1 if takes_output else 0
        if position >= len(node.args) or operation.kind not in _WITH_TENSOR:
            return
        value = self._interpreter.expressions.look(node.args[position])
        if isinstance(value, Many) and name.startswith("accelerate."):
            # ``gather((predictions, references))`` gathers one after the other.
            value = next(filter(has_uneven_shape, value.items), value)
        if not isinstance(value, Unknown):
            return
        event.shape, event.dtype = value.shape, value.dtype
        if operation.kind == "point-to-point":
            return
        varies = isinstance(value.shape, Sameness) and value.shape.varies
        if varies and "gather" in operation.word:
            self._run.note("shape", node, value=value, event=event)
        elif varies and value.length.varies and operation.word in _SAME_SHAPE:
            if event.group is None and event.group_known:
                self._run.note("reduced-shape", node, value=value, event=event)

    def _result(self, node: ast.Call, operation: Operation, event: Event) -> Value:
        run = self._run
        same: Value = replace(SAME if event.group is None else NOTHING_KNOWN, agreed=True)
        if operation.complete_on_root:
            root = event.root.constant if isinstance(event.root, Known) else 0
            origin = run.origin(node, Sameness.DATA)
            same = Unknown(Sameness.DATA, origin, complete_on=root if isinstance(root, int) else 0)
        result = operation.result
        if result == "return":
            return same
        if result is not None and not isinstance(result, str):
            target = result.of(node)
            if isinstance(target, ast.Subscript):
                forget_entry(self._interpreter, target, same)
            if isinstance(target, (ast.Name, ast.Attribute)):
                before = self._interpreter.expressions.look(target)
                self._send_from_here(event, before)
                if isinstance(before, Many):
                    self._interpreter.assignments.bind(target, Many((same,) * len(before.items)))
                elif isinstance(before, Unknown) or (
                    isinstance(before, Known) and before.constant is not None
                ):
                    self._interpreter.assignments.bind(target, same)
            return NOTHING_KNOWN
        if operation.word == "init_device_mesh":
            return device_meshes.made(self._interpreter, node) or NOTHING_KNOWN
        if operation.kind == "group-construction":
            return self._new_group(node, operation)
        if operation.word.endswith("state_dict"):
            # Whatever is in it, it is there: code asks ``state_dict is not None``.
            return Thing("value", node=node, module=run.module)
        return NOTHING_KNOWN

    def _send_from_here(self, event: Event, sent: Value) -> None:
        """On the source of a broadcast, what is sent is what all ranks have afterwards."""
        root = event.root.constant if isinstance(event.root, Known) else None
        if not event.operation.word.startswith("broadcast") or root != self._run.world.rank:
            return
        items = sent.items if isinstance(sent, Many) else (sent,)
        variables = self._run.frame.variables
        for name, value in variables.items():
            if isinstance(value, Unknown) and any(value is item for item in items):
                variables[name] = replace(value, sameness=Sameness.SAME)

    def _new_group(self, node: ast.Call, operation: Operation) -> Value:
        if operation.name.rpartition(".")[2] != "new_group":
            return self._roots.subgroups(node, operation) or NOTHING_KNOWN
        given = node.args[0] if node.args else None
        for item in node.keywords:
            if item.arg == "ranks":
                given = item.value
        members: tuple[int, ...] | None = None
        if given is None:
            members = tuple(range(self._run.world.size))
        else:
            value = self._interpreter.expressions.value(given)
            if isinstance(value, Many):
                constants = [item.constant for item in value.items if isinstance(item, Known)]
                if len(constants) == len(value.items) and all(
                    isinstance(item, int) for item in constants
                ):
                    members = tuple(sorted(constants))
            elif isinstance(value, Known) and isinstance(value.constant, (range, tuple)):
                members = tuple(value.constant)
        if members:
            self._run.largest_rank = max(self._run.largest_rank, *members)
        return Thing("group", node=node, module=self._run.module, detail=members)
