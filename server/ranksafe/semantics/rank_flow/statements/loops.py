"""Loops: run until what is known at their start no longer changes."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ranksafe.semantics.rank_flow.expressions.reduced_entries import forget_looped
from ranksafe.semantics.rank_flow.generators.exhaustion import breaks_in_handler, exhausts
from ranksafe.semantics.rank_flow.library_calls.filled_lists import lengthen, lengths_after
from ranksafe.semantics.rank_flow.library_calls.iteration import element
from ranksafe.semantics.rank_flow.operations import words
from ranksafe.semantics.rank_flow.run import Around
from ranksafe.semantics.rank_flow.statements.paths import exits_in, joined_states, same_knowledge
from ranksafe.semantics.rank_flow.traces import Exit, Loop, Passed, decisions_in, matters
from ranksafe.semantics.rank_flow.values import (
    SAME,
    Known,
    Many,
    Origin,
    Sameness,
    Share,
    Unknown,
    Value,
    evenness,
    length_of,
    origin_of,
    truth_of,
)
from ranksafe.semantics.units import callee_name

if TYPE_CHECKING:
    from ranksafe.semantics.rank_flow.interpreter import Interpreter

_UNROLLED = 4
_UNROLLED_SENDS = 8
_POINT_TO_POINT = frozenset(
    {"send", "recv", "isend", "irecv", "send_object_list", "recv_object_list"}
)


class Loops:
    """Runs ``for`` and ``while``; says whether the code after them is reached."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._run = interpreter.run
        self._interpreter = interpreter

    def run_for(self, node: ast.For) -> bool:
        """``for``: a short one of known length step by step, others as a loop."""
        before = len(self._run.items)
        reached = self._run_for(node)
        forget_looped(self._interpreter, node, self._run.items[before:])
        return reached

    def _run_for(self, node: ast.For) -> bool:
        iterable = self._interpreter.expressions.value(node.iter)
        iterable = self._interpreter.generators.iterated(iterable, node.iter)
        if self._shards_each(node):
            iterable = self._one_of_each(node.iter)
        count = length_of(iterable)
        self._run.none_used(iterable, node.iter)
        depends = _depends(iterable) and not isinstance(count, Sameness)
        if not isinstance(count, Sameness) and isinstance(iterable, (Many, Known)):
            short = count <= _UNROLLED and not depends
            if (short or _sends_only(node.body, count)) and not _has_break(node.body):
                return self._unrolled(node, iterable, count)
        filled = {} if isinstance(count, Sameness) else lengths_after(self._run.frame, node, count)
        reached = self._loop(
            node,
            iterable,
            count,
            lambda: self._interpreter.assignments.bind_each(node.target, iterable),
        )
        lengthen(self._run.frame, filled)
        return reached

    def _shards_each(self, node: ast.For) -> bool:
        """``for layer in (*model.layers, model): fully_shard(layer)``: each is changed in place."""
        return isinstance(node.iter, (ast.Tuple, ast.List)) and any(
            isinstance(call, ast.Call) and callee_name(call) == "fully_shard"
            for statement in node.body
            for call in ast.walk(statement)
        )

    def _one_of_each(self, display: ast.expr) -> Value:
        """The items of a display; of what is unpacked in it one stands for all."""
        assert isinstance(display, (ast.Tuple, ast.List))
        expressions = self._interpreter.expressions
        return Many(
            tuple(
                element(expressions.value(item.value))
                if isinstance(item, ast.Starred)
                else expressions.value(item)
                for item in display.elts
            )
        )

    def _unrolled(self, node: ast.For, iterable: Value, count: int) -> bool:
        run = self._run
        outer = run.items
        around = run.frame.left
        for index in range(count):
            run.items, run.frame.left = [], []
            self._interpreter.assignments.bind_item(node.target, iterable, index)
            run.frame.unrolled += 1
            reached = self._interpreter.statements.block(node.body)
            run.frame.unrolled -= 1
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
        return self._interpreter.statements.block(node.orelse)

    def run_while(self, node: ast.While) -> bool:
        """``while``."""
        reached = self._loop(node, None, Sameness.UNKNOWN, lambda: None)
        filled = _made_to_divide(node.test)
        if reached and filled is not None and not _has_break(node.body):
            value = self._interpreter.expressions.value(filled)
            if isinstance(value, Unknown):
                value = replace(value, share=Share.EVEN, length=Sameness.UNKNOWN)
                self._interpreter.assignments.bind(filled, value)
        return reached

    def _loop(
        self,
        node: ast.For | ast.While,
        iterable: Value | None,
        count: Any,
        bind: Callable[[], None],
    ) -> bool:
        """Run the body until what is known at its start no longer changes, and once more for the trace."""
        run = self._run
        outer = run.items
        notes = list(run.notes)
        run.frame.loops += 1
        run.around.append(Around(node, _evenness(iterable), _origin(iterable)))
        around, run.frame.left = run.frame.left, []
        for _ in range(1 if run.inside.settling else 3):
            start = run.snapshot()
            run.items = []
            if isinstance(node, ast.While):
                self._interpreter.expressions.value(node.test)
            bind()
            run.inside.settling += 1
            self._interpreter.statements.block(node.body)
            run.inside.settling -= 1
            run.notes = list(notes)
            merged = joined_states(start, run.snapshot(), SAME)
            for _, state in run.frame.left:
                merged = joined_states(merged, state, SAME)
            run.frame.left = []
            run.restore(merged)
            if same_knowledge(start, run.snapshot()):
                break
        if run.inside.settling:
            run.items = outer
            run.frame.loops -= 1
            run.around.pop()
            run.frame.left = around
            return True
        start = run.snapshot()
        run.items = []
        taken_around, run.frame.taken = run.frame.taken, []
        test: Value | None = None
        if isinstance(node, ast.While):
            test = self._interpreter.expressions.value(node.test)
            truth = truth_of(test)
            count = Sameness.SAME if truth is not None else test.sameness
        bind()
        reached = self._interpreter.statements.block(node.body)
        body, run.items = run.items, outer
        run.frame.loops -= 1
        run.around.pop()
        exits, run.frame.left = run.frame.left, around
        source = iterable if iterable is not None else test
        emptied = exhausts(node, run.frame.taken, run.module)
        run.frame.taken = taken_around
        if emptied is not None:
            source, count = emptied, length_of(emptied)
        if matters(body):
            outer.append(Loop(run.place(node), count, body, source, bool(run.inside.joined)))
        elif decisions := tuple(decisions_in(body)):
            outer.append(Passed(run.place(node), decisions))
        if reached:
            run.restore(joined_states(start, run.snapshot(), SAME))
        else:
            run.restore(start)
        for _, state in exits:
            run.restore(joined_states(run.snapshot(), state, SAME))
        if isinstance(node, ast.While) and isinstance(node.test, ast.Constant) and node.test.value:
            broken = any(isinstance(item, Exit) and item.kind == "break" for item in exits_in(body))
            if not broken and not breaks_in_handler(node):
                return False
        left = _has_break(node.body) and any(item.kind == "break" for item in exits_in(body))
        return True if left else self._interpreter.statements.block(node.orelse)


def _made_to_divide(test: ast.expr) -> ast.expr | None:
    """What has a length that divides once the test fails: ``xs`` in ``len(xs) % world_size`` and ``... != 0``."""
    match test:
        case ast.Compare(
            left=ast.BinOp() as remainder,
            ops=[ast.NotEq() | ast.Gt()],
            comparators=[ast.Constant(value=0)],
        ):
            return _made_to_divide(remainder)
        case ast.BinOp(
            left=ast.Call(func=ast.Name(id="len"), args=[ast.Name() | ast.Attribute() as counted]),
            op=ast.Mod(),
        ):
            return counted
    return None


def _sends_only(body: list[ast.stmt], count: int) -> bool:
    """Whether the collectives of a loop of few steps are sends and receives: who comes when then shows step by step."""
    called = {
        callee_name(node) or ""
        for item in body
        for node in ast.walk(item)
        if isinstance(node, ast.Call)
    }
    sends = bool(called & _POINT_TO_POINT)
    return sends and count <= _UNROLLED_SENDS and not (called & words(False) - _POINT_TO_POINT)


def _depends(iterable: Value) -> bool:
    """Whether how many steps there are differs, or may differ with the rank."""
    if isinstance(iterable, Many):
        return iterable.origin is not None or iterable.length.varies
    return origin_of(iterable) is not None


def _evenness(iterable: Value | None) -> Sameness:
    return Sameness.UNKNOWN if iterable is None else evenness(iterable)


def _origin(iterable: Value | None) -> Origin | None:
    return None if iterable is None else origin_of(iterable)


def _has_break(body: list[ast.stmt]) -> bool:
    return any(isinstance(node, ast.Break) for item in body for node in ast.walk(item))
