"""Methods of values that are not followed: of models, lists, tensors, texts."""

from __future__ import annotations

import ast

from ranksafe.rank_flow.binding import changed_in_place
from ranksafe.rank_flow.library_objects import library_answer
from ranksafe.rank_flow.run import Run
from ranksafe.rank_flow.tables import methods_that, named
from ranksafe.rank_flow.values import (
    NOTHING_KNOWN,
    Abstract,
    Constant,
    Object,
    Sequence,
    Share,
    Value,
    Varies,
    combined,
    elementwise,
    entry_at,
)
from ranksafe.rank_flow.wrapped_models import STATE, forward, is_sharded, perform_for

_AGREES = ("reduce", "gather", "sync", "average", "avg", "mean", "broadcast", "all_", "global")


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
        answer = library_answer(run, receiver, node, word)
        if answer is None:
            answer = _of_model(run, node, word, receiver, arguments)
        return NOTHING_KNOWN if answer is None else answer
    if word in methods_that("adds") and isinstance(run.module.parent(node), ast.Expr):
        if isinstance(receiver, (Sequence, Abstract)) and isinstance(node.func, ast.Attribute):
            # How many there are now is not followed: their number may well divide.
            found = combined(receiver, *arguments).changed(length=Varies.PERHAPS, share=Share.EVEN)
            if receiver.varies is Varies.PERHAPS and word in methods_that("also of metrics"):
                found = NOTHING_KNOWN
            changed_in_place(run, node.func.value, found)
            return Constant(None)
    if isinstance(receiver, Sequence):
        return _of_sequence(word, receiver, arguments)
    if isinstance(receiver, Abstract):
        entry = entry_at(receiver, arguments[0]) if word == "get" and arguments else None
        if entry is not None:
            return combined(entry, *arguments[1:])
        by_word = run.by_word(word, node)
        return _of_abstract(word, receiver, arguments) if by_word is None else by_word
    return _of_text(receiver, word, arguments) if isinstance(receiver, Constant) else NOTHING_KNOWN


def _of_model(
    run: Run, node: ast.Call, word: str, receiver: Object, arguments: list[Value]
) -> Value | None:
    """Methods of models, of what wraps them, and of objects that are not followed; None where nothing is known."""
    if word == "unwrap_model" and arguments:
        model = arguments[0]
        inner = run.attribute(model, "module") if isinstance(model, Object) else None
        return model if inner is None else inner
    if word in methods_that("gives itself") and receiver.kind != "work":
        return receiver
    if receiver.kind == "object":
        # An attribute that was not followed, a layer most likely, is called.
        return combined(*arguments)
    if word == "generate" and not is_sharded(receiver):
        return generated(arguments)
    if receiver.kind != "wrapped":
        return None
    if word == "module":
        # The replica itself: nothing is synchronised.
        return combined(*arguments)
    if word in ("forward", "__call__"):
        return forward(run, node, receiver, arguments)
    gathers = is_sharded(receiver) and (receiver.detail != "zero3" or word == "generate")
    if gathers and word in methods_that("gathers state"):
        perform_for(run, node, receiver, STATE)
        return Object("value", node=node, module=run.module)
    return None


def generated(values: list[Value]) -> Abstract:
    """Generated sequences are as long as the data of the rank makes them."""
    found = combined(*values)
    return found.changed(shape=found.varies) if found.varies.certain else found


def _of_sequence(word: str, receiver: Sequence, arguments: list[Value]) -> Value:
    if word == "copy":
        return receiver
    return combined(receiver, *arguments)


def _of_abstract(word: str, receiver: Abstract, arguments: list[Value]) -> Value:
    """Methods of a tensor, or of anything else of which only that is known whether it differs."""
    if receiver.varies is Varies.PERHAPS:
        given = combined(*arguments)
        if makes_a_loss(word) or word in methods_that("algebra"):
            return given
        return Abstract(made_by=receiver.made_by or given.made_by)
    found = combined(receiver, *arguments)
    if receiver.varies is Varies.NO and not receiver.made_by:
        return found
    if word in methods_that("selects") and receiver.varies.certain:
        return found.changed(shape=Varies.BY_DATA, length=Varies.BY_DATA)
    if word in methods_that("keeps shape") or (
        word in methods_that("keeps rows") and arguments and not _over_rows(word, arguments)
    ):
        return elementwise(receiver)
    if word == "generate":
        return generated([receiver, *arguments])
    if word in methods_that("tests"):
        return found.changed(decides=True)
    if word in methods_that("asks size"):
        if receiver.own_item:
            return Abstract(Varies.BY_DATA, receiver.origin)
        if receiver.length.certain:
            return Abstract(receiver.length, receiver.origin)
    return NOTHING_KNOWN if word in methods_that("asks structure") else found


def _over_rows(word: str, arguments: list[Value]) -> bool:
    """``mean(0)``: one row is left of all."""
    first = arguments[0]
    return word in methods_that("reduces") and isinstance(first, Constant) and first.constant == 0


def _of_text(receiver: Constant, word: str, arguments: list[Value]) -> Value:
    if isinstance(receiver.constant, str) and word in ("lower", "upper", "strip") and not arguments:
        return Constant(getattr(receiver.constant, word)(), receiver.origin)
    return combined(receiver, *arguments)
