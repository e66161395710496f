"""One rank's walk through a function: what it knows, what it does, what it meets."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ranksafe.pausing import pause_point
from ranksafe.rank_flow import sources
from ranksafe.rank_flow.functions import Functions
from ranksafe.rank_flow.sources import World
from ranksafe.rank_flow.traces import Event, Item, Place
from ranksafe.rank_flow.values import (
    NOTHING_KNOWN,
    SAME,
    Constant,
    Object,
    Origin,
    Unassigned,
    Value,
    Varies,
    combined,
    with_changed_entry,
)
from ranksafe.semantics.module import Module

Heap = dict[Object, dict[str, Value]]
"""The attributes of objects. The inner dictionaries are replaced, never changed: snapshots share them."""
State = tuple[dict[str, Value], Heap]
"""Variables and attributes at one moment."""
_MAXIMUM_STEPS = 3_000
"""Statements."""
_MAXIMUM_EVALUATIONS = 60_000
"""Expressions: one statement may have comprehensions in comprehensions, and calls of lambdas that call others."""
DEEPEST = 7
"""Calls inside calls that are followed."""
_ALSO_UNCERTAIN = frozenset({"handler", "list missing", "list short on root", "swallowed", "value"})
"""What is noted also where not every rank is known to come."""


class TooLarge(Exception):
    """The function does more than can be followed."""


@dataclass(slots=True)
class Note:
    """Something that one rank meets by itself, to be reported whatever the others do."""

    kind: str
    place: Place
    branch: Place | None = None
    name: str = ""
    value: Value | None = None
    event: Event | None = None


@dataclass(slots=True)
class Frame:
    """One call."""

    module: Module
    function: ast.AST
    variables: dict[str, Value] = field(default_factory=dict)
    outer: Frame | None = None
    """The call whose variables a nested function sees."""
    caller: Frame | None = None
    receiver: Object | None = None
    calls: tuple[tuple[ast.AST, Module], ...] = ()
    returns: list[Value] = field(default_factory=list)
    condition: Value | None = None
    """The undecided condition under which the rest of the call runs."""
    loops: int = 0
    left: list[tuple[str, State]] = field(default_factory=list)
    """What was known where the innermost loop was left by ``break`` or ``continue``."""
    is_root: bool = False
    value_elsewhere: ast.AST | None = None
    """A branch in which other ranks return a value."""
    called_in_loop: bool = False
    """Whether a call on the way here stands in a loop."""
    generates: bool = False
    """A generator, whose values are counted."""
    quiet: bool = False
    """Parameters are unknown and the body runs only for the attributes it sets."""


@dataclass(slots=True)
class Inside:
    """What surrounds the code that runs now."""

    no_sync: int = 0
    joined: int = 0
    no_grad: int = 0
    handler: int = 0
    settling: int = 0
    """Loops around of which it is not known yet what changes in them."""
    uncertain: int = 0
    """Branches around that are not decided and may be decided alike on all ranks."""


Evaluators = Mapping[type[ast.AST], Callable[["Run", Any], Value]]
Executors = Mapping[type[ast.AST], Callable[["Run", Any], bool]]


class Run:
    """State of one rank's walk. ``items`` is the part of the trace that is being written."""

    def __init__(
        self,
        world: World,
        functions: Functions,
        expressions: Evaluators,
        statements: Executors,
    ) -> None:
        self.world = world
        self._expressions = expressions
        self._statements = statements
        self.running: list[ast.AST] = []
        """Bodies of the calls that are going on."""
        self.functions = functions
        self.heap: Heap = {}
        self.items: list[Item] = []
        self.notes: list[Note] = []
        self.inside = Inside()
        self.frame: Frame
        self.steps = 0
        self.evaluations = 0
        self.unsettled_loops = 0
        """Loops that were gone through just once, because one around them was not settled."""
        self.seeds: dict[str, Varies] = {}
        """By family of random generators: whether ranks were seeded alike."""
        self.largest_rank = 0
        """The largest rank that the code names: the world it is written for has at least one rank more."""
        self.depends_on_parity = False
        """Ranks are told apart by arithmetic: two ranks do not show everything."""
        self.globals: dict[tuple[int, str], Value] = {}
        self._origins: dict[tuple[int, Varies, str | None], Origin] = {}

    # -- running

    def block(self, statements: list[ast.stmt]) -> bool:
        """Run statements in order; whether the end is reached. Raises TooLarge."""
        return all(map(self.statement, statements))

    def statement(self, node: ast.stmt) -> bool:
        """Run one statement; whether the code after it is reached. Raises TooLarge."""
        pause_point()
        self.steps += 1
        if self.steps > _MAXIMUM_STEPS:
            raise TooLarge
        execute = self._statements.get(node.__class__)
        return True if execute is None else execute(self, node)

    def value(self, node: ast.expr) -> Value:
        """The value of an expression on this rank; its collectives are written to the trace as they are met."""
        self.evaluations += 1
        if self.evaluations > _MAXIMUM_EVALUATIONS:
            raise TooLarge
        evaluate = self._expressions.get(node.__class__)
        if evaluate is not None:
            return evaluate(self, node)
        parts = [item for item in ast.iter_child_nodes(node) if isinstance(item, ast.expr)]
        return combined(*map(self.value, parts))

    def look(self, node: ast.expr) -> Value:
        """The value of an expression, without what evaluating it does."""
        outer, notes = self.items, self.notes
        self.items, self.notes = [], []
        value = self.value(node)
        self.items, self.notes = outer, notes
        return value

    def arguments(self, call: ast.Call) -> list[Value]:
        """The values of all arguments, positional ones first."""
        given = (*call.args, *(item.value for item in call.keywords))
        return [self.value(item) for item in given]

    def variable(self, name: str) -> Value | None:
        """A variable of the call, or of a call around it."""
        frame: Frame | None = self.frame
        while frame is not None:
            found = frame.variables.get(name)
            if found is not None:
                return found
            frame = frame.outer
        return None

    def by_word(self, word: str, node: ast.AST) -> Value | None:
        """What a name says of the rank by convention."""
        constant = sources.by_word(word, self.world)
        if constant is None:
            return None
        if sources.is_rank_word(word):
            return Constant(constant, self.origin(node, Varies.BY_RANK))
        return Constant(constant)

    @property
    def module(self) -> Module:
        """The file of the code that runs now."""
        return self.frame.module

    def place(self, node: ast.AST) -> Place:
        """A node of the code that runs now."""
        return Place(node, self.frame.module, self.frame.calls)

    def origin(self, node: ast.AST, varies: Varies, text: str | None = None) -> Origin:
        """The node as the reason why a value differs."""
        key = id(node), varies, text
        if key not in self._origins:
            words = self.module.text_of(node) if text is None else text
            self._origins[key] = Origin(" ".join(words.split())[:80], node, self.module, varies)
        return self._origins[key]

    def note(
        self, kind: str, node: ast.AST, *, branch: ast.AST | None = None, name: str = "",
        value: Value | None = None, event: Event | None = None,
    ) -> None:  # fmt: skip
        """Remember something this rank meets by itself."""
        certain = not self.inside.uncertain or kind in _ALSO_UNCERTAIN
        if not self.frame.quiet and certain:
            where = None if branch is None else Place(branch, self.frame.module)
            self.notes.append(Note(kind, self.place(node), where, name, value, event))

    # -- what changes on a path

    def snapshot(self) -> State:
        """Variables and attributes as they are now."""
        return dict(self.frame.variables), dict(self.heap)

    def restore(self, state: State) -> None:
        """Go back to (a copy of) a snapshot."""
        self.frame.variables, self.heap = dict(state[0]), dict(state[1])

    def attribute(self, thing: Object, name: str) -> Value | None:
        """An attribute that was set."""
        return self.heap.get(thing, {}).get(name)

    def set_attribute(self, thing: Object, name: str, value: Value) -> None:
        """Set an attribute."""
        self.heap[thing] = {**self.heap.get(thing, {}), name: value}

    def changed_in_place(self, before: Value, after: Value) -> None:
        """A collective has changed a value: so it is for all who have it, here and in the calls around."""
        if before is NOTHING_KNOWN or before is SAME:
            # Anything may be that.
            return
        frame: Frame | None = self.frame
        while frame is not None:
            for name, value in frame.variables.items():
                frame.variables[name] = (
                    after if value is before else with_changed_entry(value, before, after)
                )
            frame = frame.caller

    def none_used(self, value: Value, node: ast.AST) -> None:
        """Note the use of a None that other ranks do not have."""
        if isinstance(value, Constant) and value.constant is None and value.instead_of is not None:
            self.note("value", node, branch=value.instead_of, name=self.module.text_of(node))

    def missing(self, value: Unassigned, node: ast.AST) -> None:
        """A rank uses a variable that it has not assigned; the first use counts."""
        if any(known.name == value.name and known.value is value for known in self.notes):
            return
        self.note("value", node, branch=value.branch, name=value.name, value=value)
