"""Methods of values that are not followed: of models, lists, tensors, texts."""

from __future__ import annotations

import ast
from dataclasses import replace

from ranksafe.rank_flow.binding import bind
from ranksafe.rank_flow.library_calls.growing_lists import list_method
from ranksafe.rank_flow.library_objects import library_answer
from ranksafe.rank_flow.run import Run
from ranksafe.rank_flow.sharding import is_sharded
from ranksafe.rank_flow.tables import named
from ranksafe.rank_flow.traces import Event
from ranksafe.rank_flow.values import (
    NOTHING_KNOWN,
    Abstract,
    Constant,
    Object,
    Sequence,
    Value,
    Varies,
    combined,
    elementwise,
)
from ranksafe.rank_flow.wrapped_models import STATE, forward

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
_REDUCES = frozenset({"argmax", "max", "sum", "mean"})
_KEEPS_FIRST = _REDUCES | frozenset(
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
TESTS = frozenset(
    {"item", "any", "all", "isnan", "isinf", "isfinite", "equal", "allclose", "isclose", "tolist"}
)
_SELECTS = frozenset({"nonzero", "unique", "masked_select", "argwhere", "unique_consecutive"})
"""As many elements as the data makes them."""
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
    if word in named("loss function"):
        return True
    return "loss" in word and not any(part in word for part in _AGREES)


def method_call(
    run: Run, node: ast.Call, word: str, receiver: Value, arguments: list[Value]
) -> Value:
    """What the method returns; ``word`` is its name."""
    if isinstance(receiver, Object):
        if word == "unwrap_model" and arguments:
            model = arguments[0]
            inner = run.attribute(model, "module") if isinstance(model, Object) else None
            return model if inner is None else inner
        answer = library_answer(run, receiver, node, word)
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
        if word == "generate" and not is_sharded(receiver):
            found = combined(*arguments)
            return replace(found, shape=found.varies) if found.varies.certain else found
        if receiver.kind == "wrapped" and word == "module":
            # The replica itself: nothing is synchronised.
            return combined(*arguments)
        if receiver.kind == "wrapped" and word in ("forward", "__call__"):
            return forward(run, node, receiver, arguments)
        if receiver.kind == "wrapped" and is_sharded(receiver):
            if receiver.detail == "zero3" and word != "generate":
                return NOTHING_KNOWN
            if word in ("state_dict", "generate", "clip_grad_norm_", "load_state_dict"):
                run.items.append(Event(STATE, run.place(node), model=receiver))
                return Object("value", node=node, module=run.module)
        return NOTHING_KNOWN
    if list_method(run, node, word, receiver, arguments):
        return Constant(None)
    if isinstance(receiver, Sequence):
        if word in ("append", "extend") and isinstance(node.func, ast.Attribute):
            if arguments and isinstance(node.func.value, ast.Name):
                added = receiver.items + tuple(arguments[:1])
                if len(added) <= 64 and word == "append" and not run.frame.loops:
                    bind(run, node.func.value, Sequence(added))
                else:
                    bind(run, node.func.value, combined(*receiver.items, *arguments))
            return Constant(None)
        if word == "copy":
            return receiver
        if word == "index" and arguments and isinstance(arguments[0], Constant):
            for index, item in enumerate(receiver.items):
                if isinstance(item, Constant) and item.constant == arguments[0].constant:
                    return Constant(index, arguments[0].origin)
        return combined(receiver, *arguments)
    if isinstance(receiver, Abstract):
        if word in ("append", "extend", "add", "update") and isinstance(node.func, ast.Attribute):
            if isinstance(node.func.value, ast.Name) and arguments:
                bind(run, node.func.value, combined(receiver, *arguments))
            return Constant(None)
        by_word = run.by_word(word, node)
        if by_word is not None:
            return by_word
        if receiver.varies is Varies.PERHAPS or (
            receiver.varies is Varies.NO and not receiver.made_by
        ):
            if receiver.varies is Varies.NO:
                return combined(receiver, *arguments)
            found = combined(*arguments)
            if makes_a_loss(word) or word in _ALGEBRA:
                return found
            return replace(NOTHING_KNOWN, made_by=receiver.made_by or found.made_by)
        if word in _SELECTS and receiver.varies.certain:
            found = combined(receiver, *arguments)
            return replace(found, shape=Varies.BY_DATA, length=Varies.BY_DATA)
        if word in _KEEPS_SHAPE:
            return elementwise(receiver)
        if word in _KEEPS_FIRST and arguments and not _over_rows(word, arguments):
            return elementwise(receiver)
        if word == "generate":
            found = combined(receiver, *arguments)
            return replace(found, shape=found.varies) if found.varies.certain else found
        if word in TESTS:
            return replace(combined(receiver, *arguments), decides=True)
        if word in ("size", "numel") and receiver.own_item:
            return Abstract(Varies.BY_DATA, receiver.origin)
        if word in ("size", "numel") and receiver.length.certain:
            return Abstract(receiver.length, receiver.origin)
        if word in ("size", "dim", "numel", "keys", "items"):
            return NOTHING_KNOWN
        return combined(receiver, *arguments)
    if isinstance(receiver, Constant):
        return _of_text(receiver, word, arguments)
    return NOTHING_KNOWN


def _over_rows(word: str, arguments: list[Value]) -> bool:
    """``mean(0)``: one row is left of all."""
    first = arguments[0]
    return word in _REDUCES and isinstance(first, Constant) and first.constant == 0


def _of_text(receiver: Constant, word: str, arguments: list[Value]) -> Value:
    if isinstance(receiver.constant, str) and word in ("lower", "upper", "strip") and not arguments:
        return Constant(getattr(receiver.constant, word)(), receiver.origin)
    return combined(receiver, *arguments)
