"""Exceptions: handlers, which one rank may run alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ranksafe.rank_flow.run import Run
from ranksafe.rank_flow.statements.paths import exits_in, joined_states
from ranksafe.rank_flow.tables import functions_that, methods_that
from ranksafe.rank_flow.traces import (
    Branch,
    Decision,
    Event,
    Exit,
    Item,
    Place,
    events_in,
    inner_items,
)
from ranksafe.rank_flow.values import NOTHING_KNOWN, is_agreed


def try_statement(run: Run, node: ast.Try) -> bool:
    """``try``: the body, then every handler as if an exception came before the body did anything."""
    start = run.snapshot()
    outer = run.items
    run.items = []
    reached = run.block(node.body)
    if reached:
        reached = run.block(node.orelse)
    body, run.items = run.items, outer
    outer.extend(body)
    end = run.snapshot()
    for handler in node.handlers:
        run.restore(start)
        run.items = []
        run.inside.handler += 1
        handled = run.block(handler.body)
        run.inside.handler -= 1
        inside, run.items = run.items, outer
        if not _uniform(handler) and not _raised_together(run, handler, body):
            _judge_handler(run, handler, inside, body, handled)
            if handled:
                end = joined_states(end, run.snapshot(), NOTHING_KNOWN)
        elif not reached and handled:
            reached = True
    run.restore(end)
    return run.block(node.finalbody) and reached


def _judge_handler(
    run: Run, handler: ast.ExceptHandler, inside: list[Item], body: list[Item], handled: bool
) -> None:
    events = list(events_in(inside, certain=True))
    if events and _tries_again(events, body) and not _catches_memory(handler):
        return
    if events:
        place = events[0].place
        elsewhere = place.module is not run.module
        node = place.calls[len(run.frame.calls)][0] if elsewhere else place.node
        run.note("handler", node, branch=handler, event=events[0])
        return
    skipped = [
        event for event in events_in(body, certain=True) if not _comes_first(run, handler, event)
    ]
    stepped = [event for event in skipped if not _is_data_parallel_forward(event)]
    parts = any(isinstance(item, Decision) for item in body)
    goes_on = handled or any(
        isinstance(item, Exit) and item.kind == "continue" for item in exits_in(inside)
    )
    frame = run.frame
    if (
        skipped
        and goes_on
        and not _hands_on(handler)
        and (
            (stepped and _catches_memory(handler))
            or ((frame.loops or frame.called_in_loop) and _catches(handler, "exception of a step"))
            or (parts and _catches(handler, "exception of reading"))
        )
    ):
        run.note("swallowed", handler, branch=handler, event=skipped[-1])


def _comes_first(run: Run, handler: ast.ExceptHandler, event: Event) -> bool:
    """Whether nothing of the body comes before a collective, there or in the function that it calls, so that no
    exception of one rank skips it; a model's step may raise one itself."""
    tried = run.module.parent(handler)
    if event.operation.kind == "step" or not isinstance(tried, ast.Try):
        return False
    place = event.place
    way = [*place.calls[len(run.frame.calls) :], (place.node, place.module)]
    functions = [module.enclosing_function(node) for node, module in way[1:]]
    blocks = [tried.body, *(function.body for function in functions if function is not None)]
    return len(blocks) == len(way) and all(
        module.is_inside(node, _first(block))
        for (node, module), block in zip(way, blocks, strict=True)
    )


def _first(block: list[ast.stmt]) -> ast.stmt:
    """The first statement that does something, which a docstring does not."""
    first, *others = block
    is_text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return others[0] if is_text and others else first


def _tries_again(events: list[Event], body: list[Item]) -> bool:
    """Whether a rank that comes here performs what the others did: ``backward()`` of the mean, where that of the vector
    was refused. What a wrapped model sends is the same both times, which is not known of other collectives."""
    words = [event.operation.word for event in events_in(body, certain=True)]
    is_step = all(event.operation.kind == "step" for event in events)
    return is_step and words == [event.operation.word for event in events]


def _hands_on(handler: ast.ExceptHandler) -> bool:
    """Whether somebody else is given the exception itself, who decides what becomes of the job."""
    return any(
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr not in methods_that("logs")
        and any(isinstance(item, ast.Name) and item.id == handler.name for item in call.args)
        for statement in handler.body
        for call in ast.walk(statement)
    )


def _uniform(handler: ast.ExceptHandler) -> bool:
    """Whether the handler is for what happens on all ranks alike: a version without a function, an interrupt."""
    names = _exception_names(handler)
    return bool(names) and names <= functions_that("exception of all ranks")


def _raised_together(run: Run, handler: ast.ExceptHandler, body: list[Item]) -> bool:
    """Whether the handler is for a class of the project that the body raises only where ranks have agreed to."""
    caught = None if handler.type is None else run.functions.named(run.module, handler.type)
    if caught is None:
        return False
    agreed = []
    for place, together in _raised(body):
        exception = getattr(place.node, "exc", None)
        written: ast.expr | None = getattr(exception, "func", exception)
        raised = None if written is None else run.functions.named(place.module, written)
        if raised is not None and place.module.is_subclass(raised.type, caught.type):
            agreed.append(together)
    return bool(agreed) and all(agreed)


def _raised(items: list[Item], together: bool = False) -> Iterator[tuple[Place, bool]]:
    """Where exceptions are raised, and whether a branch around it asks what comes out of a collective."""
    for item in items:
        if isinstance(item, Exit) and item.kind == "raise":
            yield item.place, together
        here = together or (isinstance(item, Branch) and is_agreed(item.condition))
        yield from _raised(inner_items(item), here)


def _catches(handler: ast.ExceptHandler, role: str) -> bool:
    """Whether the handler is for what one rank alone may meet in a step, or when it alone reads something."""
    names = _exception_names(handler)
    return not names or not names.isdisjoint(functions_that(role))


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
