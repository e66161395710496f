"""Exceptions: handlers, which one rank may run alone."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ranksafe.semantics.rank_flow.run import Handler
from ranksafe.semantics.rank_flow.statements.paths import exits_in, joined_states
from ranksafe.semantics.rank_flow.statements.raised_alone import (
    catches,
    given_up,
    met_alone,
    without_failures,
)
from ranksafe.semantics.rank_flow.statements.raised_by_data import raised_by_data
from ranksafe.semantics.rank_flow.traces import (
    Branch,
    Call,
    Decision,
    Event,
    Exit,
    Failure,
    Item,
    Yield,
    events_in,
    matters,
)
from ranksafe.semantics.rank_flow.values import NOTHING_KNOWN, Sameness, Unknown
from ranksafe.semantics.units import callee_name

if TYPE_CHECKING:
    from ranksafe.semantics.module import Module
    from ranksafe.semantics.rank_flow.interpreter import Interpreter

_UNIFORM_EXCEPTIONS = frozenset(
    {
        "ImportError", "ModuleNotFoundError", "AttributeError", "NotImplementedError", "NameError",
        "TypeError", "KeyboardInterrupt", "SystemExit", "GeneratorExit",
    }
)  # fmt: skip
_NOT_THERE = frozenset({"AttributeError", "NameError", "UnboundLocalError"})
_FILES = frozenset({"OSError", "IOError", "FileNotFoundError", "PermissionError", "EOFError"})
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
        run.inside.trying += 1
        reached = self._interpreter.statements.block(node.body)
        run.inside.trying -= 1
        tried = list(run.items)
        if any(_exception_names(handler) & _NOT_THERE for handler in node.handlers):
            # Whoever lacks the value goes on in the handler.
            run.notes[noted:] = [note for note in run.notes[noted:] if note.kind != "value"]
        if reached:
            reached = self._interpreter.statements.block(node.orelse)
        body, run.items = run.items, outer
        outer.extend(body)
        end = run.snapshot()
        raised = self._raised(node, body)
        again: list[tuple[Exit | Failure, frozenset[str]]] = []
        for handler in node.handlers:
            run.restore(start)
            run.items = []
            run.inside.handler += 1
            condition = run.frame.condition
            run.frame.condition = condition or raised
            handled = self._interpreter.statements.block(handler.body)
            run.frame.condition = condition
            run.inside.handler -= 1
            inside, run.items = run.items, outer
            again += self.judge_raised(handler, inside, tried, [body[len(tried) :]])
            self._hold_open(handler, inside, tried)
            if not self._uniform(handler):
                noted = len(run.notes)
                self._judge_handler(handler, inside, body, handled)
                if handled:
                    end = joined_states(end, run.snapshot(), raised or NOTHING_KNOWN)
                elif raised is not None and len(run.notes) == noted:
                    self._leaves_alone(handler, inside, raised)
            elif not reached and handled:
                reached = True
        for item, names in again:
            item.raises = names
        if not run.inside.trying:
            outer[:] = without_failures(outer)
        run.restore(end)
        return self._interpreter.statements.block(node.finalbody) and reached

    def judge_raised(
        self, handler: ast.ExceptHandler | ast.Call, inside: list[Item], body: list[Item],
        later: list[list[Item]],
    ) -> list[tuple[Exit | Failure, frozenset[str]]]:  # fmt: skip
        """Note a handler that catches what one rank alone raises in the body, where it skips a collective.

        `inside`: what the handler does; `later`: what follows the body where nothing is raised. Returns what goes on to
        the ``try`` around, which the other handlers of this one do not see, with the names it then has.
        """
        again: list[tuple[Exit | Failure, frozenset[str]]] = []
        names = _exception_names(handler)
        left = given_up(inside)
        for item, origin, event in list(met_alone(body, later)):
            if not catches(names, item):
                continue
            if left is not None and left.kind == "raise":
                bare = getattr(left.place.node, "exc", None) is None
                again.append((item, item.raises if bare else left.raises))
            item.raises = frozenset()
            if event is None or left is not None or _hands_on(handler):
                continue
            kind = "swallowed"
            if isinstance(item, Failure) and item.by_branch:
                kind = "swallowed-by-rank"
            value = Unknown(Sameness.DATA, origin)
            self._run.note(kind, handler, branch=handler, value=value, event=event)
        return again

    def _hold_open(self, handler: ast.ExceptHandler, inside: list[Item], body: list[Item]) -> None:
        """A ``try`` around the ``yield`` of a context catches what the ``with`` raises."""
        if not self._run.frame.generates:
            return
        for index, item in enumerate(body):
            if isinstance(item, Yield):
                self._run.frame.catches.append(Handler(handler, inside, body[index + 1 :]))

    def _raised(self, node: ast.Try, body: list[Item]) -> Unknown | None:
        """Whether the body raises, where each rank's data decides it and no collective in it does."""
        names = [_exception_names(handler) for handler in node.handlers]
        if any("StopIteration" in found for found in names) or next(events_in(body), None):
            return None
        if all(self._uniform(handler) for handler in node.handlers):
            return None
        return raised_by_data(self._interpreter, node.body)

    def _leaves_alone(
        self, handler: ast.ExceptHandler, inside: list[Item], raised: Unknown
    ) -> None:
        """A handler that skips the rest of a step, or leaves the loop or the function, on one rank."""
        run = self._run
        if matters(inside) and not _gives_up(inside):
            run.items.append(Branch(run.place(handler), raised, inside, []))
        if any(item.kind == "return" for item in exits_in(inside)):
            run.frame.condition = run.frame.condition or raised

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
        if _hands_on(handler):
            return
        if skipped and not _gives_up(inside) and _raises_by_rank(body):
            self._run.note("swallowed", handler, branch=handler, event=skipped[-1])
            return
        run = self._run
        frame = run.frame
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
                or (frame.loops and _reads_before(skipped[0], handler, run.module))
            )
        ):
            run.note("swallowed", handler, branch=handler, event=skipped[-1])

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


def _reads_before(event: Event, handler: ast.ExceptHandler, module: Module) -> bool:
    """Whether the body reads a file before its first collective, and the handler is for files that cannot be read."""
    body = module.parent(handler)
    if not isinstance(body, ast.Try) or _exception_names(handler).isdisjoint(_FILES):
        return False
    order = module.order_of
    return any(
        isinstance(item, ast.Call)
        and callee_name(item) in ("open", "load", "read", "load_file", "read_text", "read_bytes")
        and order(item) < order(event.place.node)
        for statement in body.body
        for item in ast.walk(statement)
    )


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


def _hands_on(handler: ast.ExceptHandler | ast.Call) -> bool:
    """Whether the exception itself is given to another process or thread, which decides what becomes of it."""
    if isinstance(handler, ast.Call):
        return False
    return any(
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in ("send", "put", "put_nowait", "set_exception")
        and any(isinstance(item, ast.Name) and item.id == handler.name for item in call.args)
        for call in ast.walk(handler)
    )


def _exception_names(handler: ast.ExceptHandler | ast.Call) -> set[str]:
    """What a handler, or ``suppress(...)``, catches; empty for everything."""
    if isinstance(handler, ast.Call):
        types = handler.args
    elif handler.type is None:
        return set()
    else:
        types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return {
        item.attr if isinstance(item, ast.Attribute) else item.id
        for item in types
        if isinstance(item, (ast.Attribute, ast.Name))
    }
