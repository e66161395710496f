"""Loops: run until what is known at their start no longer changes."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from ranksafe.rank_flow.binding import bind, bind_each, bind_item
from ranksafe.rank_flow.generators.generators import iterated
from ranksafe.rank_flow.library_calls.iteration import element
from ranksafe.rank_flow.operations import words
from ranksafe.rank_flow.run import Run, State
from ranksafe.rank_flow.statements.paths import exits_in, joined_states, same_knowledge
from ranksafe.rank_flow.syntax import called_names, has_break
from ranksafe.rank_flow.traces import Exit, Item, Loop, matters
from ranksafe.rank_flow.values import (
    SAME,
    Abstract,
    Constant,
    Sequence,
    Share,
    Value,
    Varies,
    combined,
    length_of,
    listed,
    origin_of,
    truth_of,
)

_PASSES = 3
_UNROLLED = 4
_UNROLLED_SENDS = 8
_POINT_TO_POINT = frozenset(
    {"send", "recv", "isend", "irecv", "send_object_list", "recv_object_list"}
)


def for_statement(run: Run, node: ast.For) -> bool:
    """``for``: a short one of known length step by step, others as a loop."""
    iterable = run.value(node.iter)
    iterable = iterated(run, iterable, node.iter)
    if _shards_each(node):
        iterable = _one_of_each(run, node.iter)
    count = length_of(iterable)
    run.none_used(iterable, node.iter)
    depends = origin_of(iterable) is not None and not isinstance(count, Varies)
    if not isinstance(count, Varies) and isinstance(iterable, (Sequence, Constant)):
        short = count <= _UNROLLED and not depends
        if (short or _sends_only(node, count)) and not has_break(node):
            return _unrolled(run, node, iterable, count)
    return _loop(run, node, iterable, count, lambda: bind_each(run, node.target, iterable))


def _shards_each(node: ast.For) -> bool:
    """``for layer in (*model.layers, model): fully_shard(layer)``: each is changed in place."""
    return isinstance(node.iter, (ast.Tuple, ast.List)) and "fully_shard" in called_names(node)


def _one_of_each(run: Run, display: ast.expr) -> Value:
    """The items of a display; of what is unpacked in it one stands for all."""
    assert isinstance(display, (ast.Tuple, ast.List))
    return listed(
        tuple(
            element(run.value(item.value)) if isinstance(item, ast.Starred) else run.value(item)
            for item in display.elts
        )
    )


def _unrolled(run: Run, node: ast.For, iterable: Value, count: int) -> bool:
    outer = run.items
    around = run.frame.left
    for index in range(count):
        run.items, run.frame.left = [], []
        bind_item(run, node.target, iterable, index)
        reached = run.block(node.body)
        step, run.items = run.items, outer
        skipped, run.frame.left = run.frame.left, around
        if matters(step):
            outer.append(Loop(run.place(node), 1, step, iterable, bool(run.inside.joined)))
        if not reached and not skipped:
            return False
        for _, state in skipped:
            # ``continue`` ends the step only.
            run.restore(joined_states(run.snapshot(), state, SAME) if reached else state)
            reached = True
    return run.block(node.orelse)


def while_statement(run: Run, node: ast.While) -> bool:
    """``while``."""
    return _loop(run, node, None, Varies.PERHAPS, lambda: None)


@dataclass(slots=True)
class _Pass:
    """What going through a loop's body once has shown."""

    start: State
    body: list[Item]
    test: Value | None
    reached: bool
    left: list[tuple[str, State]]


def _loop(
    run: Run,
    node: ast.For | ast.While,
    iterable: Value | None,
    count: Varies | int,
    bind: Callable[[], None],
) -> bool:
    """Run the body until what is known at its start no longer changes."""
    around = (run.items, run.frame.left)
    run.frame.loops += 1
    last = _settled(run, node, bind)
    run.frame.loops -= 1
    run.items, run.frame.left = around
    if last is None:
        return True
    source = iterable if iterable is not None else last.test
    if last.test is not None:
        count = Varies.NO if truth_of(last.test) is not None else last.test.varies
    if matters(last.body):
        loop = Loop(run.place(node), count, last.body, source, bool(run.inside.joined))
        run.items.append(loop)
    if not last.reached:
        run.restore(last.start)
    elif isinstance(count, Varies) or count == 0:
        # The body may not run at all.
        run.restore(joined_states(last.start, run.snapshot(), SAME))
    for _, state in last.left:
        run.restore(joined_states(run.snapshot(), state, SAME))
    if isinstance(node, ast.While) and not has_break(node):
        _fill_up(run, node.test)
    if isinstance(node, ast.While) and isinstance(node.test, ast.Constant) and node.test.value:
        broken = any(
            isinstance(item, Exit) and item.kind == "break" for item in exits_in(last.body)
        )
        if not broken and not _breaks_in_handler(node):
            return False
    return has_break(node) or run.block(node.orelse)


def _settled(run: Run, node: ast.For | ast.While, bind: Callable[[], None]) -> _Pass | None:
    """The pass that begins with what holds at the start of every step; None inside a loop that is not settled itself,
    where one pass has to do."""
    notes = list(run.notes)
    inner = run.inside.settling > 0
    for _ in range(1 if inner else _PASSES):
        unsettled = run.unsettled_loops
        run.inside.settling += 1
        once = _once(run, node, bind)
        run.inside.settling -= 1
        merged = joined_states(once.start, run.snapshot(), SAME)
        for _, state in once.left:
            merged = joined_states(merged, state, SAME)
        # What a step alone makes, the next makes anew.
        stable = same_knowledge(once.start, merged)
        if stable and not inner and run.unsettled_loops == unsettled:
            return once
        run.notes = list(notes)
        run.restore(merged)
        if stable:
            break
    if inner:
        run.unsettled_loops += 1
        return None
    return _once(run, node, bind)


def _once(run: Run, node: ast.For | ast.While, bind: Callable[[], None]) -> _Pass:
    start = run.snapshot()
    run.items, run.frame.left = [], []
    test = run.value(node.test) if isinstance(node, ast.While) else None
    bind()
    reached = run.block(node.body)
    return _Pass(start, run.items, test, reached, run.frame.left)


def _breaks_in_handler(loop: ast.While) -> bool:
    """Whether an exception may end the loop."""
    return any(
        isinstance(node, ast.ExceptHandler) and any(isinstance(i, ast.Break) for i in node.body)
        for statement in loop.body
        for node in ast.walk(statement)
    )


def _fill_up(run: Run, test: ast.expr) -> None:
    """Behind ``while len(items) % world_size:`` the number of items divides."""
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.NotEq):
        test = test.left
    if not isinstance(test, ast.BinOp) or not isinstance(test.op, ast.Mod):
        return
    counted = test.left.args[0] if isinstance(test.left, ast.Call) and test.left.args else None
    remainder = run.look(test)
    if isinstance(counted, (ast.Name, ast.Attribute)) and isinstance(remainder, Abstract):
        held = run.look(counted)
        if remainder.share is Share.EVEN and isinstance(held, (Abstract, Sequence)):
            bind(run, counted, combined(held).changed(share=Share.EVEN))


def _sends_only(loop: ast.For, count: int) -> bool:
    """Whether the collectives of a loop of few steps are sends and receives: who comes when then shows step by step."""
    called = called_names(loop)
    sends = bool(called & _POINT_TO_POINT)
    return sends and count <= _UNROLLED_SENDS and not (called & words(False) - _POINT_TO_POINT)
