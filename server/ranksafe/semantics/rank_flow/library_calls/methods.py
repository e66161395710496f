"""Methods of values that are not followed: of models, lists, tensors, texts."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from ranksafe.semantics.rank_flow.expressions.entries import (
    counted_view,
    entry_at,
    pairs_of,
)
from ranksafe.semantics.rank_flow.expressions.groups import place_in
from ranksafe.semantics.rank_flow.library_calls import device_meshes
from ranksafe.semantics.rank_flow.library_calls.changed_collections import (
    changed_list,
    filled_dictionary,
)
from ranksafe.semantics.rank_flow.library_calls.growing_dictionaries import view
from ranksafe.semantics.rank_flow.library_calls.parts import of_split_method
from ranksafe.semantics.rank_flow.library_calls.pure_functions import of_known_method
from ranksafe.semantics.rank_flow.library_calls.random_numbers import drawn_in_place
from ranksafe.semantics.rank_flow.library_calls.selections import in_place, selected
from ranksafe.semantics.rank_flow.passed_in import OPEN
from ranksafe.semantics.rank_flow.sharding import is_sharded
from ranksafe.semantics.rank_flow.traces import Event
from ranksafe.semantics.rank_flow.values import (
    NOTHING_KNOWN,
    Known,
    Many,
    Sameness,
    Thing,
    Unknown,
    Value,
    combined,
    elementwise,
)
from ranksafe.semantics.rank_flow.wrapped_models import STATE

if TYPE_CHECKING:
    from ranksafe.semantics.rank_flow.interpreter import Interpreter

_SAME_MODEL = frozenset(
    {"to", "cuda", "cpu", "half", "float", "bfloat16", "double", "train", "eval", "requires_grad_"}
)
_KEEPS_SHAPE = _SAME_MODEL | frozenset(
    {
        "clone",
        "detach",
        "contiguous",
        "long",
        "int",
        "bool",
        "abs",
        "exp",
        "log",
        "sigmoid",
        "softmax",
    }
)
_KEEPS_FIRST = frozenset(
    {
        "argmax",
        "flatten",
        "reshape",
        "view",
        "squeeze",
        "unsqueeze",
        "softmax",
        "topk",
        "max",
        "sum",
        "mean",
    }
)
"""With a dimension given, these keep the number of rows."""
_REDUCES = frozenset({"max", "sum", "mean", "topk"})
"""The dimension that is given may be the one that differs, where that is not the first: it is gone then."""
TESTS = frozenset(
    {"item", "any", "all", "isnan", "isinf", "isfinite", "equal", "allclose", "isclose", "tolist"}
)
LOSSES = frozenset(
    {
        "criterion", "loss_fn", "loss_function", "loss_func", "criteria", "model", "net", "network",
        "ddp_model", "compute_loss", "module", "encoder", "policy",
    }
)  # fmt: skip

_SELECTS = frozenset({"nonzero", "unique", "masked_select", "argwhere", "unique_consecutive"})
"""As many elements as the data makes them."""
_STRUCTURE = frozenset(
    {
        "size", "dim", "numel", "keys", "items", "ndimension", "is_floating_point", "is_contiguous", "stride",
        "get_device", "element_size", "is_complex",
    }
)  # fmt: skip
"""What they say of tensors of different data usually is the same."""
_AGREES = ("reduce", "gather", "sync", "average", "avg", "mean", "broadcast", "all_", "global")
_ALGEBRA = frozenset(
    {
        "mul", "mul_", "add", "add_", "sub", "sub_", "div", "div_", "matmul", "logical_and",
        "logical_or", "masked_fill", "masked_fill_", "where", "eq", "ne", "lt", "le", "gt", "ge",
        "maximum", "minimum", "index_select", "copy_",
    }
)  # fmt: skip
"""Of a tensor of which nothing is known, these make what differs where their arguments do."""


def makes_a_loss(word: str) -> bool:
    """Whether a function of this name makes of a rank's data what still belongs to that rank alone."""
    if word in LOSSES:
        return True
    return "loss" in word and not any(part in word for part in _AGREES)


class Methods:
    """Evaluates calls of methods."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._run = interpreter.run
        self._interpreter = interpreter

    def _changed(
        self, node: ast.Call, word: str, receiver: Unknown, arguments: list[Value]
    ) -> Unknown | None:
        """A tensor after ``x.add_(y)``, ``x.normal_(generator=g)``; None where it differs no more than before."""
        drawn = drawn_in_place(self._run, node, word, arguments)
        after = combined(receiver, *arguments) if drawn is None else combined(drawn)
        if after.sameness is not Sameness.DATA or receiver.sameness.varies:
            return None
        after = replace(after, shape=receiver.shape, dtype=receiver.dtype)
        if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
            self._interpreter.assignments.bind(node.func.value, after)
        return after

    def value(self, node: ast.Call, word: str, receiver: Value, arguments: list[Value]) -> Value:
        """What the method returns; ``word`` is its name."""
        run = self._run
        if isinstance(receiver, Thing) and receiver.kind == OPEN:
            receiver = NOTHING_KNOWN
        if isinstance(receiver, Thing):
            if word == "unwrap_model" and arguments:
                model = arguments[0]
                inner = run.attribute(model, "module") if isinstance(model, Thing) else None
                return model if inner is None else inner
            answer = self._interpreter.library_objects.answer(receiver, node, word)
            if answer is None:
                answer = device_meshes.answer(self._interpreter, receiver, node, word)
            if answer is None:
                answer = place_in(run, receiver, node, word)
            if answer is not None:
                return answer
            if receiver.kind == "object" and word not in _SAME_MODEL:
                # An attribute that was not followed, a layer most likely, is called.
                return combined(*arguments)
            if receiver.kind == "work" and word in ("wait", "synchronize"):
                run.waited.add(receiver)
                return NOTHING_KNOWN
            if word in _SAME_MODEL:
                return receiver
            if receiver.kind == "wrapped" and word == "module":
                # The replica itself: nothing is synchronised.
                return combined(*arguments)
            if receiver.kind == "wrapped" and word in ("forward", "__call__"):
                return self._interpreter.models.call(node, receiver, arguments)
            if receiver.kind == "wrapped" and is_sharded(receiver):
                if receiver.detail == "zero3" and word != "generate":
                    return NOTHING_KNOWN
                if word in ("state_dict", "generate", "clip_grad_norm_", "load_state_dict"):
                    run.items.append(Event(STATE, run.place(node), model=receiver))
                    return Thing("value", node=node, module=run.module)
            return NOTHING_KNOWN
        if self._interpreter.lists.call(node, word, receiver, arguments):
            return Known(None)
        seen = view(receiver, word)
        if seen is not None:
            return seen
        if isinstance(receiver, Many):
            if word in ("append", "extend") and isinstance(node.func, ast.Attribute):
                if arguments and isinstance(node.func.value, ast.Name):
                    added = receiver.items + tuple(arguments[:1])
                    if len(added) <= 64 and word == "append" and not run.frame.loops:
                        self._interpreter.assignments.bind(node.func.value, Many(added))
                    else:
                        self._interpreter.assignments.bind(
                            node.func.value, combined(*receiver.items, *arguments)
                        )
                return Known(None)
            if word == "copy":
                return receiver
            changed = changed_list(self._interpreter, node, word, receiver, arguments)
            if changed is not None:
                return changed
            if word == "index" and arguments and isinstance(arguments[0], Known):
                for index, item in enumerate(receiver.items):
                    if isinstance(item, Known) and item.constant == arguments[0].constant:
                        return Known(index, arguments[0].origin)
            return combined(receiver, *arguments)
        if isinstance(receiver, Unknown):
            filled = filled_dictionary(self._interpreter, node, word, receiver, arguments)
            if filled is not None:
                return filled
            if word in ("append", "extend", "add", "update") and isinstance(
                node.func, ast.Attribute
            ):
                if isinstance(node.func.value, ast.Name) and arguments:
                    self._interpreter.assignments.bind(
                        node.func.value, combined(receiver, *arguments)
                    )
                elif isinstance(node.func.value, ast.Subscript) and arguments:
                    # ``history["loss"].append(loss)``
                    found = combined(receiver, *arguments)
                    if found.sameness > receiver.sameness:
                        self._interpreter.assignments.bind(node.func.value, found)
                elif receiver.entries is not None and isinstance(node.func.value, ast.Attribute):
                    self._interpreter.assignments.bind(
                        node.func.value, combined(receiver, *arguments)
                    )
                return Known(None)
            if word in ("view", "reshape") and (size := _size_of(arguments)) is not None:
                return replace(combined(receiver), shape=size)
            parts = of_split_method(run, node, word, [receiver, *arguments])
            if parts is not None:
                return parts
            counted = counted_view(receiver, word)
            if counted is not None and not arguments:
                return counted
            by_word = self._interpreter.expressions.by_word(word, node)
            if by_word is not None:
                return by_word
            if in_place(word) and (changed := self._changed(node, word, receiver, arguments)):
                return changed
            if word in ("get", "pop") and arguments:
                if receiver.steps == 0 and receiver.entries == () and len(arguments) == 1:
                    return Known(None, receiver.origin)
                entry = entry_at(receiver, arguments[0])
                if entry is not None:
                    return entry
            if word == "numel" and isinstance(receiver.shape, Sameness) and receiver.shape.varies:
                # What a rank's part holds is its data.
                return Unknown(Sameness.DATA, receiver.origin)
            if receiver.sameness is Sameness.UNKNOWN or (
                receiver.sameness is Sameness.SAME and not receiver.made_by
            ):
                if receiver.sameness is Sameness.SAME:
                    return combined(receiver, *arguments)
                found = combined(*arguments)
                if makes_a_loss(word) or word in _ALGEBRA:
                    return found
                return replace(NOTHING_KNOWN, made_by=receiver.made_by or found.made_by)
            if word in _SELECTS and receiver.sameness.varies:
                return selected(node, combined(receiver, *arguments))
            if word in _KEEPS_SHAPE:
                return elementwise(receiver)
            if word in _KEEPS_FIRST and arguments and isinstance(receiver.shape, Sameness):
                found = elementwise(receiver)
                if word in _REDUCES and (arguments[0] == Known(0) or not receiver.length.varies):
                    found = replace(found, shape=Sameness.UNKNOWN)
                return replace(found, length=Sameness.UNKNOWN) if word in _REDUCES else found
            if word == "tolist" and receiver.length is Sameness.DATA:
                return replace(combined(receiver), length=receiver.length)
            if word in TESTS:
                return replace(combined(receiver, *arguments), decides=True)
            if word in ("size", "numel") and receiver.own_item:
                return Unknown(Sameness.DATA, receiver.origin)
            if word == "size" and node.args and not _is_zero(node.args[0]):
                return NOTHING_KNOWN
            if word in ("size", "numel") and receiver.length.varies:
                return Unknown(receiver.length, receiver.origin)
            if word == "items" and not arguments:
                return pairs_of(receiver)
            if word in _STRUCTURE:
                return NOTHING_KNOWN
            return combined(receiver, *arguments)
        if isinstance(receiver, Known):
            found_text = of_known_method(receiver, word, arguments) if not node.keywords else None
            return combined(receiver, *arguments) if found_text is None else found_text
        return NOTHING_KNOWN


def _size_of(arguments: list[Value]) -> tuple[int, ...] | None:
    """The shape that ``view(2, 3)`` asks for, where all of it is known."""
    sizes = [item.constant for item in arguments if isinstance(item, Known)]
    known = 0 < len(sizes) == len(arguments)
    return (
        tuple(sizes) if known and all(type(size) is int and size >= 0 for size in sizes) else None
    )


def _is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 0
