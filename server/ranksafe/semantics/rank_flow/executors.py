"""Functions handed to an executor, which runs them beside collectives of the function that hands them over."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ranksafe.semantics.rank_flow.functions import Functions
from ranksafe.semantics.rank_flow.operations import operations
from ranksafe.semantics.units import callee_name
from ranksafe.semantics.walking import FUNCTIONS

if TYPE_CHECKING:
    from ranksafe.semantics.module import Module

_EXECUTORS = (
    "concurrent.futures.ThreadPoolExecutor",
    "concurrent.futures.thread.ThreadPoolExecutor",
)
_WAITING = frozenset({"result", "shutdown", "wait", "as_completed", "join", "exception", "gather"})
_DEPTH = 3


def run_beside(module: Module, functions: Functions) -> Iterator[ast.AST]:
    """Functions of the file that a thread of a pool runs while the main path performs collectives.

    Only where such a collective, of the default group, follows before anything waits for the thread: a pool that does
    all the work, or whose result is awaited at once, keeps the order.
    """
    for call, position in _submissions(module):
        if not _collective_follows(module, call, _DEPTH):
            continue
        given = module.argument_node(call, "fn", position)
        found = None if given is None else _function(module, functions, given)
        if found is not None:
            yield from _reached(module, functions, found)


def performs_on_default_group(module: Module, call: ast.Call) -> bool:
    """Whether a call is a collective for which no group is given."""
    operation = operations().get(module.qualified_name(call.func) or "")
    if operation is None or operation.kind != "collective" or operation.only:
        return False
    return operation.group is None or operation.group.of(call) is None


def _submissions(module: Module) -> Iterator[tuple[ast.Call, int]]:
    makes_pools = any(True for _ in module.calls(*_EXECUTORS))
    for call in module.calls_written("submit"):
        holder = call.func.value if isinstance(call.func, ast.Attribute) else None
        if holder is None:
            continue
        written = module.text_of(holder).lower()
        if module.type_of(holder) in _EXECUTORS or (
            makes_pools and written.endswith(("executor", "pool"))
        ):
            yield call, 0
    for call in module.calls_written("run_in_executor"):
        if call.args and isinstance(call.args[0], ast.Constant) and call.args[0].value is None:
            yield call, 1


def _collective_follows(module: Module, call: ast.Call, depth: int) -> bool:
    """Whether the main path comes to a collective of the default group before it waits for the thread."""
    function = module.enclosing_function(call)
    if isinstance(module.parent(call), (ast.Attribute, ast.Await)) or function is None:
        return False
    order = module.order_of
    inside = set(map(id, ast.walk(call)))
    calls = [
        item
        for item in module.nodes(ast.Call, function)
        if isinstance(item, ast.Call)
        and id(item) not in inside
        and module.enclosing_function(item) is function
    ]
    later = [item for item in calls if order(item) > order(call)]
    loop = module.parent(call)
    while loop is not None and loop is not function and not isinstance(loop, (ast.For, ast.While)):
        if isinstance(loop, (ast.With, ast.AsyncWith)) and _makes_pool(module, loop):
            # The end of the block waits for the pool.
            within = set(map(id, ast.walk(loop)))
            later = [item for item in later if id(item) in within]
        loop = module.parent(loop)
    for item in later:
        if callee_name(item) in _WAITING:
            return False
        if performs_on_default_group(module, item):
            return True
    if depth == 0 or not isinstance(function, FUNCTIONS):
        return False
    return any(
        _collective_follows(module, caller, depth - 1)
        for caller in module.calls_written(function.name)
        if module.function_called(caller) is function
    )


def _makes_pool(module: Module, block: ast.With | ast.AsyncWith) -> bool:
    return any(
        isinstance(item.context_expr, ast.Call)
        and module.qualified_name(item.context_expr.func) in _EXECUTORS
        for item in block.items
    )


def _function(module: Module, functions: Functions, given: ast.expr) -> ast.AST | None:
    if isinstance(given, ast.Name):
        found = functions.named(module, given)
        if found is not None and isinstance(found.node, FUNCTIONS) and found.module is module:
            return found.node
    elif isinstance(given, ast.Attribute):
        cls = module.class_of_self(given.value)
        return None if cls is None else module.method(cls, given.attr)
    return None


def _reached(module: Module, functions: Functions, function: ast.AST) -> Iterator[ast.AST]:
    """The function and what it calls by name in the same file."""
    pending, seen = [function], {id(function)}
    while pending and len(seen) < 20:
        current = pending.pop(0)
        yield current
        for call in module.nodes(ast.Call, current):
            assert isinstance(call, ast.Call)
            called = _function(module, functions, call.func)
            if called is not None and id(called) not in seen:
                seen.add(id(called))
                pending.append(called)
