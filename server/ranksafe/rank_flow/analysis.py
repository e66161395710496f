"""Rank flow of one file: every function and the file itself, looked at as each rank of a small world runs it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from ranksafe.rank_flow.comparison.comparison import Comparison
from ranksafe.rank_flow.diagram import Traces, rows
from ranksafe.rank_flow.expressions.expressions import EXPRESSIONS
from ranksafe.rank_flow.followed_calls import skips
from ranksafe.rank_flow.frames import run_module, run_quietly, run_root
from ranksafe.rank_flow.functions import Functions
from ranksafe.rank_flow.into_issues import (
    even_loops,
    met,
    of_decision,
    of_difference,
    of_notes,
    without_answered,
)
from ranksafe.rank_flow.issues import Issue, Kind
from ranksafe.rank_flow.local_decisions import local_decisions
from ranksafe.rank_flow.operations import words
from ranksafe.rank_flow.other_paths import other_paths
from ranksafe.rank_flow.point_to_point import communicates, unmatched
from ranksafe.rank_flow.run import Frame, Heap, Run, TooLarge
from ranksafe.rank_flow.sources import World
from ranksafe.rank_flow.statements.statements import STATEMENTS
from ranksafe.rank_flow.syntax import called_names
from ranksafe.rank_flow.unwaited import unwaited
from ranksafe.rank_flow.values import NOTHING_KNOWN, Constant, Object
from ranksafe.semantics.facts import is_main_guard
from ranksafe.semantics.module import REST, Module, ReadKey
from ranksafe.semantics.units import Unit
from ranksafe.semantics.walking import FUNCTIONS

TASK = "rank flow"
"""The name under which a unit keeps its issues."""
_MOST_EVALUATIONS = 400_000
"""Of expressions, in all functions of a file together: some seconds."""
_OF_A_RUN = 60
"""Evaluations in whose time a function without any is looked at."""
_LARGEST_WORLD = 8
_NOT_ROOTS = frozenset({"__enter__", "__exit__", "__aenter__", "__aexit__"})


@dataclass(frozen=True, slots=True)
class _Initialised:
    """What ``__init__`` of a class sets on one rank."""

    receiver: Object
    heap: Heap
    reads: frozenset[ReadKey]
    asked: bool
    """Whether it looked at the rank."""


class RankFlow:
    """The analysis of one file."""

    def __init__(self, module: Module, ranks: int | None = None) -> None:
        self._module = module
        self._ranks = ranks
        """How many ranks there will be; None: not known."""
        self._functions = Functions(module)
        self._initialised: dict[tuple[int, tuple[int, int]], _Initialised] = {}
        self._spent = 0
        """What following functions has cost, in evaluations; the same whichever results were kept."""

    def issues(self) -> list[Issue]:
        """Everything found, in source order, each place once."""
        module = self._module
        found: dict[tuple[Kind, int], Issue] = {}
        flow = list(self._of_units())
        for issue in without_answered([*flow, *self._at_top()]):
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
                runs = [self._run(root, cls, World(rank, 2)) for rank in range(2)]
            except (TooLarge, RecursionError):
                return None
            assert root.node is not None
            found = Traces(root.node, self._module, runs[0].items, runs[1].items)
            if rows(found):
                break
        return found

    # -- roots

    def _of_units(self) -> Iterator[Issue]:
        """The issues of all functions; of a file that has far too many, those of its beginning."""
        left = _MOST_EVALUATIONS
        self._module.given_up.discard(REST)
        for unit in self._module.all_units():
            if left < 0:
                self._module.given_up.add(REST)
                return
            issues, cost = self._of_unit(unit)
            left -= cost
            yield from issues

    def _of_unit(self, unit: Unit) -> tuple[list[Issue], int]:
        """The issues of the function that is a unit, computed again when something that it read has changed; and what
        that has cost."""
        kept = unit.results.get(TASK)
        if kept is None or kept[2] != self._ranks:
            self._spent = 0
            with self._module.reading() as reads:
                issues = self._of_functions(unit)
            kept = unit.results[TASK] = (issues, frozenset(reads), self._ranks, self._spent)
        found: list[Issue] = kept[0]
        return found, kept[3]

    def _of_functions(self, unit: Unit) -> list[Issue]:
        issues: list[Issue] = []
        functions = [node for kind in FUNCTIONS for node in unit.by_kind.get(kind, ())]
        if not any(
            isinstance(node, FUNCTIONS) and node.name not in _NOT_ROOTS for node in unit.nodes
        ):
            return issues
        cls = None if unit.owner is None else unit.owner.node
        for node in functions:
            assert isinstance(node, FUNCTIONS)
            if any(node is outer for outer in unit.nodes):
                issues += self._of_function(node, cls)
            else:
                # Called through a decorator, a callback or not at all: the call around does not run it. Perhaps the
                # sender alone calls it.
                found = self._of_function(node, None)
                issues += (issue for issue in found if issue.kind is not Kind.OBJECT_LIST)
        return issues

    def _of_function(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef, cls: ast.ClassDef | None
    ) -> Iterator[Issue]:
        function = Object("function", node=node, module=self._module)
        if _passes_on(node) or not self._functions.worth_a_look(function):
            return iter(())
        return self._own(self._root(function, cls))

    def _own(self, issues: Iterator[Issue]) -> Iterator[Issue]:
        return (issue for issue in issues if issue.place.module is self._module)

    def _at_top(self) -> list[Issue]:
        """The issues of the statements outside functions; that the file calls its ``main`` says nothing more."""
        module = self._module
        if not any(self._performs_at_top(statement) for statement in module.tree.body):
            return []
        return list(self._own(self._root(Object("module", node=module.tree, module=module), None)))

    def _performs_at_top(self, statement: ast.stmt) -> bool:
        if isinstance(statement, (*FUNCTIONS, ast.ClassDef, ast.Import, ast.ImportFrom)):
            return False
        if isinstance(statement, ast.If) and is_main_guard(statement.test):
            return any(self._performs_at_top(item) for item in statement.body)
        if _is_bare_call(statement):
            return not called_names(statement).isdisjoint(words(self._module.may_wrap_models))
        return self._functions.performs(Object("function", node=statement, module=self._module))

    # -- one root

    def _root(self, root: Object, cls: ast.ClassDef | None) -> Iterator[Issue]:
        name: str = getattr(root.node, "name", "")
        if cls is not None:
            name = f"{cls.name}.{name}"
        self._module.given_up.discard(name)
        try:
            runs = [self._run(root, cls, World(0, 2))]
            # A function that never asks for the rank does the same on all.
            runs += [self._run(root, cls, World(1, 2)) if runs[0].world.asked else runs[0]]
            yield from self._compared(root, runs)
            size = self._larger_world(runs)
            if size is not None:
                yield from self._compared(
                    root, [self._run(root, cls, World(rank, size)) for rank in range(size)]
                )
        except (TooLarge, RecursionError):
            self._module.given_up.add(name)

    def _larger_world(self, runs: list[Run]) -> int | None:
        """The size of a second world, when two ranks do not show what the code does."""
        largest = max(run.largest_rank for run in runs)
        if self._ranks is not None and 2 < self._ranks <= _LARGEST_WORLD:
            if largest >= 1 or any(communicates(run.items) for run in runs):
                return self._ranks
        if largest >= 2:
            return min(largest + 1, _LARGEST_WORLD)
        return 4 if any(run.depends_on_parity for run in runs) else None

    def _guarded(self, root: Object, run: Run) -> bool:
        """Whether a decorator keeps this rank out of the function."""
        if not isinstance(root.node, FUNCTIONS):
            return False
        run.frame = Frame(self._module, root.node, is_root=True)
        return skips(run, root.node, root.node)

    def _run(self, root: Object, cls: ast.ClassDef | None, world: World) -> Run:
        run = Run(world, self._functions, EXPRESSIONS, STATEMENTS)
        try:
            return self._walked(run, root, cls)
        finally:
            self._spent += run.evaluations + _OF_A_RUN

    def _walked(self, run: Run, root: Object, cls: ast.ClassDef | None) -> Run:
        module = self._module
        if isinstance(root.node, ast.Module):
            run_module(run, Frame(module, module.tree, is_root=True))
            return run
        if self._guarded(root, run):
            return run
        receiver = None
        if cls is not None:
            receiver = self._receiver(run, cls, root)
        run_root(run, root, receiver)
        return run

    def _receiver(self, run: Run, cls: ast.ClassDef, root: Object) -> Object:
        """``self``, with the attributes that ``__init__`` gives it and no other method changes."""
        module = self._module
        receiver = Object("object", type=module.class_name(cls), node=cls, module=module)
        initialise = self._functions.method(receiver, "__init__")
        if initialise is None or initialise.node is root.node:
            return receiver
        if self._functions.concerns(initialise) or self._functions.is_small(initialise):
            self._initialise(run, initialise, receiver)
        attributes = dict(run.heap.get(receiver, {}))
        for name, value in attributes.items():
            if isinstance(value, Constant) and value.instead_of is not None:
                # Perhaps only the ranks that have it call the method.
                attributes[name] = NOTHING_KNOWN
                continue
            if isinstance(value, Constant) and value.origin is not None:
                continue
            if isinstance(value, Object) and value.kind != "function":
                continue
            stores = module.attribute_stores(cls, name)
            if any(
                module.enclosing_function(store) is not initialise.node for store in stores
            ) or isinstance(value, Constant):
                attributes[name] = NOTHING_KNOWN
        run.heap[receiver] = attributes
        return receiver

    def _initialise(self, run: Run, initialise: Object, receiver: Object) -> None:
        """What ``__init__`` sets, found once for a class and rank."""
        world = run.world
        key = (id(initialise.node), world.identity)
        kept = self._initialised.get(key)
        if kept is None:
            outer, world.asked = world.asked, False
            spent = run.steps, run.evaluations
            with self._module.reading() as reads:
                run_quietly(run, initialise, receiver)
            # What comes first must not have less left for itself.
            run.steps, run.evaluations = spent
            kept = _Initialised(receiver, dict(run.heap), frozenset(reads), world.asked)
            self._initialised[key] = kept
            world.asked = outer
        else:
            self._module.read_again(kept.reads)
            run.heap = {
                receiver if holder is kept.receiver else holder: attributes
                for holder, attributes in kept.heap.items()
            }
        world.asked = world.asked or kept.asked

    def _starts_by_itself(self, root: Object) -> bool:
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

    def _compared(self, root: Object, runs: list[Run]) -> Iterator[Issue]:
        traces = [run.items for run in runs]
        seen: set[tuple[Kind, int]] = set()
        for rank in range(1, len(runs)):
            if traces[0] is traces[rank]:
                continue
            comparison = Comparison((0, rank))
            places: set[int] = set()
            for difference in comparison.run(traces[0], traces[rank]):
                issue = of_difference(difference, self._module)
                if issue is None:
                    continue
                places.add(id(issue.place.node))
                # What follows in the same arm is part of the same mistake.
                key = (issue.kind, id(issue.branch.node) if issue.branch else id(issue))
                if key not in seen:
                    seen.add(key)
                    yield issue
            yield from met(comparison.met, places)
        for trace in traces[:2]:
            for decision in local_decisions(trace):
                yield from of_decision(decision, self._module)
        yield from of_notes(runs, self._module)
        yield from even_loops(traces)
        for event in unmatched(traces, whole=self._starts_by_itself(root)):
            yield Issue(Kind.PEER, event.place, event.operation.word)


def _passes_on(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a function does nothing but call another, as ``mp.spawn`` wants it: that says nothing more."""
    return len(node.body) == 1 and _is_bare_call(node.body[0]) and not node.decorator_list


def _is_bare_call(node: ast.stmt) -> bool:
    call = node.value if isinstance(node, ast.Expr) else None
    return isinstance(call, ast.Call) and not call.args and not call.keywords


def roots_around(module: Module, line: int) -> Iterator[tuple[Object, ast.ClassDef | None]]:
    """The function or method around a 0-based line, then the functions inside it, inwards, each with its class; the
    file itself where there is none."""
    function: ast.AST | None = None
    for unit in module.all_units():
        for node in unit.nodes:
            if isinstance(node, FUNCTIONS) and _spans(module, node, line):
                function = node
                yield (
                    Object("function", node=node, module=module),
                    None if unit.owner is None else unit.owner.node,
                )
    if function is None:
        yield Object("module", node=module.tree, module=module), None
        return
    for inner in ast.walk(function):
        if inner is not function and isinstance(inner, FUNCTIONS) and _spans(module, inner, line):
            yield Object("function", node=inner, module=module), None


def _spans(module: Module, node: ast.FunctionDef | ast.AsyncFunctionDef, line: int) -> bool:
    """Whether a line lies in a function; the range of a definition is that of its name."""
    moved = module.range_of(node).start.line - (node.lineno - 1)
    first = min([node.lineno, *(item.lineno for item in node.decorator_list)])
    return first - 1 + moved <= line <= (node.end_lineno or node.lineno) - 1 + moved
