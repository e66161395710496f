"""Exceptions: handlers, which one rank may run alone."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ranksafe.semantics.rank_flow.statements.paths import exits_in, joined_states
from ranksafe.semantics.rank_flow.traces import Call, Decision, Event, Exit, Item, events_in
from ranksafe.semantics.rank_flow.values import NOTHING_KNOWN

if TYPE_CHECKING:
    from ranksafe.semantics.rank_flow.interpreter import Interpreter

_UNIFORM_EXCEPTIONS = frozenset(
    {
        "ImportError", "ModuleNotFoundError", "AttributeError", "NotImplementedError", "NameError",
        "TypeError", "KeyboardInterrupt", "SystemExit", "GeneratorExit",
    }
)  # fmt: skip
_NOT_THERE = frozenset({"AttributeError", "NameError", "UnboundLocalError"})
_READING = frozenset(
    {"OSError", "IOError", "FileNotFoundError", "PermissionError", "Exception", "BaseException"}
    | {"JSONDecodeError", "ValueError", "KeyError", "RuntimeError"}
)


class Exceptions:
    """Runs ``try``; notes handlers that part the ranks. Says whether the code after it is reached."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._run = interpreter.run
        self._interpreter = interpreter

    def run(self, node: ast.Try) -> bool:
        """``try``: the body, then every handler as if an exception came before the body did anything."""
        run = self._run
        start = run.snapshot()
        outer = run.items
        run.items = []
        noted = len(run.notes)
        reached = self._interpreter.statements.block(node.body)
        if any(_exception_names(handler) & _NOT_THERE for handler in node.handlers):
            # Whoever lacks the value goes on in the handler.
            run.notes[noted:] = [note for note in run.notes[noted:] if note.kind != "value"]
        if reached:
            reached = self._interpreter.statements.block(node.orelse)
        body, run.items = run.items, outer
        outer.extend(body)
        end = run.snapshot()
        for handler in node.handlers:
            run.restore(start)
            run.items = []
            run.inside.handler += 1
            handled = self._interpreter.statements.block(handler.body)
            run.inside.handler -= 1
            inside, run.items = run.items, outer
            if not self._uniform(handler):
                self._judge_handler(handler, inside, body, handled)
                if handled:
                    end = joined_states(end, run.snapshot(), NOTHING_KNOWN)
            elif not reached and handled:
                reached = True
        run.restore(end)
        return self._interpreter.statements.block(node.finalbody) and reached

    def _judge_handler(
        self, handler: ast.ExceptHandler, inside: list[Any], body: list[Any], handled: bool
    ) -> None:
        events = list(events_in(inside, certain=True))
        if events:
            self._run.note("handler", events[0].place.node, branch=handler, event=events[0])
            return
        skipped = list(events_in(body, certain=True))
        stepped = [event for event in skipped if not _is_data_parallel_forward(event)]
        parts = any(isinstance(item, Decision) for item in body)
        goes_on = handled or any(
            isinstance(item, Exit) and item.kind == "continue" for item in exits_in(inside)
        )
        if skipped and not _gives_up(inside) and _raises_by_rank(body):
            self._run.note("swallowed", handler, branch=handler, event=skipped[-1])
            return
        frame = self._run.frame
        if (
            skipped
            and goes_on
            and (
                (stepped and _catches_memory(handler))
                or (
                    (frame.loops or frame.unrolled or frame.called_in_loop)
                    and self._catches_step_failures(handler)
                )
                or (parts and self._catches_reading(handler))
            )
        ):
            self._run.note("swallowed", handler, branch=handler, event=skipped[-1])

    def _uniform(self, handler: ast.ExceptHandler) -> bool:
        """Whether the handler is for what happens on all ranks alike: a version without a function, an interrupt."""
        names = _exception_names(handler)
        return bool(names) and names <= _UNIFORM_EXCEPTIONS

    def _catches_step_failures(self, handler: ast.ExceptHandler) -> bool:
        names = _exception_names(handler)
        return not names or not names.isdisjoint(
            {"Exception", "BaseException", "RuntimeError", "OutOfMemoryError", "ValueError"}
        )

    def _catches_reading(self, handler: ast.ExceptHandler) -> bool:
        """Whether the handler is for what one rank alone may meet when it alone reads something."""
        names = _exception_names(handler)
        return not names or not names.isdisjoint(_READING)


def _raises_by_rank(items: list[Item]) -> bool:
    """Whether this rank, because it is this rank, raises in the body or in a call in it."""
    decided = False
    for item in items:
        if isinstance(item, Decision) and item.condition.sameness.varies:
            decided = True
        elif isinstance(item, Exit):
            return decided and item.kind == "raise"
        elif isinstance(item, Call) and _raises_by_rank(item.body):
            return True
    return False


def _gives_up(items: list[Item]) -> bool:
    """Whether a handler raises, or ends the process."""
    return any(item.kind in ("raise", "exit") for item in exits_in(items))


def _is_data_parallel_forward(event: Event) -> bool:
    """The forward of a replica: whether ranks wait for each other is decided by the backward."""
    return (
        event.operation.word == "forward"
        and event.model is not None
        and event.model.detail == "ddp"
    )


def _catches_memory(handler: ast.ExceptHandler) -> bool:
    """Whether the handler is for a device out of memory, which depends on the rank's own batch."""
    if "OutOfMemoryError" in _exception_names(handler):
        return True
    return any(
        isinstance(item, ast.Constant)
        and isinstance(item.value, str)
        and "out of memory" in item.value.lower()
        for statement in handler.body
        for item in ast.walk(statement)
    )


def _exception_names(handler: ast.ExceptHandler) -> set[str]:
    if handler.type is None:
        return set()
    types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return {
        item.attr if isinstance(item, ast.Attribute) else item.id
        for item in types
        if isinstance(item, (ast.Attribute, ast.Name))
    }
