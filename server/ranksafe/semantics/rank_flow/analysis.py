"""Rank flow of one file: every function and the file itself, looked at as each rank of a small world runs it."""

from __future__ import annotations

import ast
import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from ranksafe.semantics.facts import is_main_guard
from ranksafe.semantics.rank_flow.caller_counts import even_loops, without_even_loops
from ranksafe.semantics.rank_flow.comparison.comparison import Comparison
from ranksafe.semantics.rank_flow.comparison.loops import counts_by_rank
from ranksafe.semantics.rank_flow.diagram import Traces, rows
from ranksafe.semantics.rank_flow.functions import Functions
from ranksafe.semantics.rank_flow.interpreter import Interpreter
from ranksafe.semantics.rank_flow.into_issues import (
    of_decision,
    of_difference,
    of_mismatch,
    of_notes,
)
from ranksafe.semantics.rank_flow.issues import Issue, Kind, where_they_part
from ranksafe.semantics.rank_flow.local_decisions import local_decisions
from ranksafe.semantics.rank_flow.operations import words
from ranksafe.semantics.rank_flow.other_paths import other_paths
from ranksafe.semantics.rank_flow.point_to_point import communicates, unlike, unmatched
from ranksafe.semantics.rank_flow.roots import roots_around
from ranksafe.semantics.rank_flow.run import Frame, Heap, TooLarge
from ranksafe.semantics.rank_flow.sources import World
from ranksafe.semantics.rank_flow.unwaited import unwaited
from ranksafe.semantics.rank_flow.values import NOTHING_KNOWN, Known, Thing, Unknown
from ranksafe.semantics.units import callee_name
from ranksafe.semantics.walking import FUNCTIONS

if TYPE_CHECKING:
    from ranksafe.semantics.module import Module
    from ranksafe.semantics.units import Unit

logger = logging.getLogger(__name__)

TASK = "rank flow"
"""The name under which a unit keeps its issues."""
_LARGEST_WORLD = 8
_NOT_ROOTS = frozenset({"__enter__", "__exit__", "__aenter__", "__aexit__"})


class RankFlow:
    """The analysis of one file."""

    def __init__(self, module: Module, ranks: int | None = None) -> None:
        self._module = module
        self._ranks = ranks
        """How many ranks there will be; None: not known."""
        self._functions = Functions(module)
        self._initialised: dict[
            tuple[int, World], tuple[Thing, Heap, frozenset[tuple[object, ...]]]
        ] = {}

    def issues(self) -> list[Issue]:
        """Everything found, in source order, each place once."""
        module = self._module
        found: dict[tuple[Kind, int], Issue] = {}
        flow = [issue for unit in module.all_units() for issue in self._of_unit(unit)]
        for issue in where_they_part(without_even_loops([*flow, *self._at_top()])):
            found.setdefault((issue.kind, id(issue.place.node)), issue)
        for issue in (*other_paths(module, self._functions), *unwaited(module)):
            found.setdefault((issue.kind, id(issue.place.node)), issue)
        order = module.order_of
        return sorted(found.values(), key=lambda item: order(item.place.node))

    def traces_around(self, line: int) -> Traces | None:
        """What ranks 0 and 1 of two do in the function around a 0-based line, or in the file outside functions.

        Of functions in functions the outermost that performs something. None when that is too much to follow.
        """
        found: Traces | None = None
        for root, cls in roots_around(self._module, line):
            try:
                runs = [self._run(root, cls, World(rank, 2)).run for rank in range(2)]
            except (TooLarge, RecursionError):
                return None
            assert root.node is not None
            found = Traces(root.node, self._module, runs[0].items, runs[1].items)
            if rows(found):
                break
        return found

    # -- roots

    def _of_unit(self, unit: Unit) -> list[Issue]:
        """The issues of the function that is a unit, computed again when something that it read has changed."""
        kept = unit.results.get(TASK)
        if kept is None or kept[2] != self._ranks:
            with self._module.reading() as reads:
                issues: list[Issue] = []
                for node in unit.nodes:
                    if isinstance(node, FUNCTIONS) and node.name not in _NOT_ROOTS:
                        cls = None if unit.owner is None else unit.owner.node
                        issues += self._of_function(node, cls)
                        for inner in ast.walk(node):
                            # Called through a decorator, a callback or not at all: the call around does not run it.
                            if inner is not node and isinstance(inner, FUNCTIONS):
                                issues += _without_receivers(self._of_function(inner, None))
            kept = unit.results[TASK] = (issues, frozenset(reads), self._ranks)
        found: list[Issue] = kept[0]
        return found

    def _of_function(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef, cls: ast.ClassDef | None
    ) -> Iterator[Issue]:
        function = Thing("function", node=node, module=self._module)
        if not self._functions.worth_a_look(function):
            return iter(())
        return self._own(self._root(function, cls))

    def _own(self, issues: Iterator[Issue]) -> Iterator[Issue]:
        return (issue for issue in issues if issue.place.module is self._module)

    def _at_top(self) -> list[Issue]:
        """The issues of the statements outside functions; that the file calls its ``main`` says nothing more."""
        module = self._module
        if not any(self._performs_at_top(statement) for statement in module.tree.body):
            return []
        return list(self._own(self._root(Thing("module", node=module.tree, module=module), None)))

    def _performs_at_top(self, statement: ast.stmt) -> bool:
        if isinstance(statement, (*FUNCTIONS, ast.ClassDef, ast.Import, ast.ImportFrom)):
            return False
        if isinstance(statement, ast.If) and is_main_guard(statement.test):
            return any(self._performs_at_top(item) for item in statement.body)
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            if not statement.value.args and not statement.value.keywords:
                return _words_at_top(statement, self._module)
        return self._functions.performs(Thing("function", node=statement, module=self._module))

    # -- one root

    def _root(self, root: Thing, cls: ast.ClassDef | None) -> Iterator[Issue]:
        try:
            runs = [self._run(root, cls, World(rank, 2)) for rank in range(2)]
            yield from self._compared(root, runs)
            size = self._larger_world(runs)
            if size is not None:
                yield from self._compared(
                    root, [self._run(root, cls, World(rank, size)) for rank in range(size)]
                )
        except (TooLarge, RecursionError):
            name = getattr(root.node, "name", "the file")
            logger.debug("rank flow of %s in %s is too large", name, self._module.path)

    def _larger_world(self, runs: list[Interpreter]) -> int | None:
        """The size of a second world, when two ranks do not show what the code does."""
        largest = max(run.run.largest_rank for run in runs)
        if self._ranks is not None and 2 < self._ranks <= _LARGEST_WORLD:
            if largest >= 1 or any(
                communicates(run.run.items) or counts_by_rank(run.run.items) for run in runs
            ):
                return self._ranks
        if largest >= 2:
            return min(largest + 1, _LARGEST_WORLD)
        return 4 if any(run.run.depends_on_parity for run in runs) else None

    def _guarded(self, root: Thing, interpreter: Interpreter) -> bool:
        """Whether a decorator keeps this rank out of the function."""
        if not isinstance(root.node, FUNCTIONS):
            return False
        interpreter.run.frame = Frame(self._module, root.node, is_root=True)
        return interpreter.followed.skips(root.node, root.node)

    def _run(self, root: Thing, cls: ast.ClassDef | None, world: World) -> Interpreter:
        interpreter = Interpreter(world, self._functions)
        module = self._module
        if isinstance(root.node, ast.Module):
            interpreter.run_module(Frame(module, module.tree, is_root=True))
            return interpreter
        if self._guarded(root, interpreter):
            return interpreter
        receiver = None
        if cls is not None:
            receiver = self._receiver(interpreter, cls, root)
        interpreter.run_root(root, receiver)
        return interpreter

    def _receiver(self, interpreter: Interpreter, cls: ast.ClassDef, root: Thing) -> Thing:
        """``self``, with the attributes that ``__init__`` gives it and no other method changes."""
        module = self._module
        receiver = Thing("object", type=module.class_name(cls), node=cls, module=module)
        initialise = self._functions.method(receiver, "__init__")
        if initialise is None or initialise.node is root.node:
            return receiver
        if self._functions.concerns(initialise) or self._functions.is_small(initialise):
            self._initialise(interpreter, initialise, receiver)
        attributes = interpreter.run.heap.get(receiver, {})
        for name, value in attributes.items():
            if isinstance(value, Known) and value.instead_of is not None:
                # Perhaps only the ranks that have it call the method.
                attributes[name] = NOTHING_KNOWN
                continue
            if isinstance(value, Known) and value.origin is not None:
                if value.constant is None and self._is_set_elsewhere(cls, name, initialise):
                    attributes[name] = NOTHING_KNOWN
                continue
            if isinstance(value, Unknown) and value.steps is not None:
                # Other methods may have stored more.
                attributes[name] = replace(value, steps=None)
            if isinstance(value, Thing) and value.kind != "function":
                continue
            if self._is_set_elsewhere(cls, name, initialise) or isinstance(value, Known):
                attributes[name] = NOTHING_KNOWN
        return receiver

    def _is_set_elsewhere(self, cls: ast.ClassDef, name: str, initialise: Thing) -> bool:
        """Whether another method than ``__init__`` assigns an attribute."""
        module = self._module
        return any(
            module.enclosing_function(store) is not initialise.node
            for store in module.attribute_stores(cls, name)
        )

    def _initialise(self, interpreter: Interpreter, initialise: Thing, receiver: Thing) -> None:
        """What ``__init__`` sets, found once for a class and rank."""
        key = (id(initialise.node), interpreter.run.world)
        kept = self._initialised.get(key)
        if kept is None:
            with self._module.reading() as reads:
                interpreter.run_quietly(initialise, receiver)
            heap = interpreter.run.heap_now()
            self._initialised[key] = (receiver, heap, frozenset(reads))
            return
        known, heap, read = kept
        self._module.read_again(read)
        interpreter.run.heap = {
            receiver if thing is known else thing: dict(attributes)
            for thing, attributes in heap.items()
        }

    def _starts_by_itself(self, root: Thing) -> bool:
        """Whether nothing in the file calls the function: what it sends is then received in it, or nowhere here."""
        if isinstance(root.node, ast.Module):
            return True
        if not isinstance(root.node, FUNCTIONS):
            return False
        in_class = isinstance(self._module.parent(root.node), ast.ClassDef)
        plain = [
            call
            for call in self._module.calls_written(root.node.name)
            if call.args or call.keywords or self._module.enclosing_function(call) is not None
        ]
        return not in_class and not plain

    def _compared(self, root: Thing, runs: list[Interpreter]) -> Iterator[Issue]:
        traces = [run.run.items for run in runs]
        seen: set[tuple[Kind | ast.AST, int]] = set()
        for rank in range(1, len(runs)):
            for difference in Comparison((0, rank)).run(traces[0], traces[rank]):
                issue = of_difference(difference, self._module)
                if issue is None:
                    continue
                # What follows in the same arm is part of the same mistake.
                around = id(issue.branch.node) if issue.branch else id(issue)
                keys: set[tuple[Kind | ast.AST, int]] = {
                    (issue.kind, around),
                    (issue.place.node, around),
                }
                if not keys & seen:
                    seen |= keys
                    yield issue
        for trace in traces[:2]:
            for decision in local_decisions(trace):
                yield from of_decision(decision, self._module)
        yield from of_notes(runs, self._module)
        yield from even_loops(traces)
        for event in unmatched(traces, whole=self._starts_by_itself(root)):
            yield Issue(Kind.PEER, event.place, event.operation.word)
        for mismatch in unlike(traces):
            yield of_mismatch(mismatch)


def _without_receivers(issues: Iterator[Issue]) -> Iterator[Issue]:
    """Without what is said of ranks that receive: perhaps the sender alone calls the function."""
    return (issue for issue in issues if issue.kind is not Kind.OBJECT_LIST)


def _words_at_top(statement: ast.stmt, module: Module) -> bool:
    """Whether the statement itself, not what it calls, names an operation."""
    names = words(module.may_wrap_models)
    return any(
        callee_name(call) in names for call in ast.walk(statement) if isinstance(call, ast.Call)
    )


__all__ = ["TASK", "Issue", "Kind", "RankFlow"]
