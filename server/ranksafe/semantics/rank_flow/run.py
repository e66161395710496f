"""One rank's walk through a function: what it knows, what it does, what it meets."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ranksafe.semantics.rank_flow.generators.exhaustion import Taken
from ranksafe.semantics.rank_flow.sources import World
from ranksafe.semantics.rank_flow.traces import Event, Item, Place
from ranksafe.semantics.rank_flow.values import Known, Missing, Origin, Sameness, Thing, Value

if TYPE_CHECKING:
    from ranksafe.semantics.module import Module
    from ranksafe.semantics.rank_flow.functions import Functions

Heap = dict[Thing, dict[str, Value]]
_MAXIMUM_STEPS = 3_000
MAXIMUM_DEPTH = 7
"""Of calls that are followed into each other."""
_CERTAIN_ONLY = frozenset(
    {
        "object-list",
        "no-object-list",
        "root-object-list",
        "outside-group",
        "foreign-root",
        "shape",
        "reduced-shape",
        "own-root",
        "own-peer",
    }
)


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
class Handler:
    """A handler of the ``try`` around the ``yield`` of a context, for exceptions of the ``with``."""

    node: ast.ExceptHandler | ast.Call
    """Or ``suppress(Error)``."""
    inside: list[Item]
    """What it does."""
    later: list[Item]
    """What the ``try`` does after the ``yield``."""


@dataclass(slots=True)
class Frame:
    """One call."""

    module: Module
    function: ast.AST
    variables: dict[str, Value] = field(default_factory=dict)
    outer: Frame | None = None
    """The call whose variables a nested function sees."""
    receiver: Thing | None = None
    calls: tuple[tuple[ast.AST, Module], ...] = ()
    returns: list[Value] = field(default_factory=list)
    condition: Value | None = None
    """The undecided condition under which the rest of the call runs."""
    loops: int = 0
    unrolled: int = 0
    """Loops around, of this call, that run step by step."""
    left: list[tuple[str, tuple[dict[str, Value], Heap]]] = field(default_factory=list)
    """What was known where the innermost loop was left by ``break`` or ``continue``."""
    taken: list[Taken] = field(default_factory=list)
    """Calls of ``next`` in the innermost loop."""
    is_root: bool = False
    decided: Origin | None = None
    """Why this rank came to what follows, where other ranks return before."""
    value_elsewhere: ast.AST | None = None
    """A branch in which other ranks return a value."""
    called_perhaps: bool = False
    """Whether the call stands under an undecided condition that need not be the same on all ranks."""
    called_in_loop: bool = False
    """Whether a call on the way here stands in a loop."""
    generates: bool = False
    """A generator, whose values are counted."""
    catches: list[Handler] = field(default_factory=list)
    """Of a generator that is a context: the handlers around its ``yield``, innermost first."""
    none_elsewhere: Origin | None = None
    """Why other ranks have returned None."""
    quiet: bool = False
    """Parameters are unknown and the body runs only for the attributes it sets."""


@dataclass(frozen=True, slots=True)
class Around:
    """A loop, or a branch that each rank decides for itself, around the code that runs now."""

    node: ast.AST
    even: Sameness
    """Whether all ranks come to what is in it equally often."""
    origin: Origin | None


@dataclass(slots=True)
class Inside:
    """What surrounds the code that runs now."""

    no_sync: int = 0
    joined: int = 0
    no_grad: int = 0
    handler: int = 0
    settling: int = 0
    """Loops around whose first passes only find out what changes in them."""
    trying: int = 0
    """Bodies of ``try`` around, and of contexts that catch exceptions."""
    uncertain: int = 0
    """Branches around that are not decided and may be decided alike on all ranks."""
    perhaps: int = 0
    """Operands of ``and`` and ``or`` and arms of conditional expressions around that are perhaps not evaluated."""


class Run:
    """State of one rank's walk. ``items`` is the part of the trace that is being written."""

    def __init__(self, world: World, functions: Functions) -> None:
        self.world = world
        self.functions = functions
        self.heap: Heap = {}
        self.items: list[Item] = []
        self.notes: list[Note] = []
        self.inside = Inside()
        self.frame: Frame
        self.steps = 0
        self.seeded_by_rank = False
        self.seeds: dict[str, bool] = {}
        """For ``random`` and ``numpy.random``, where they were seeded: whether each rank has a seed of its own."""
        self.largest_rank = 0
        """The largest rank that the code names: the world it is written for has at least one rank more."""
        self.depends_on_parity = False
        """Ranks are told apart by arithmetic: two ranks do not show everything."""
        self.waited: set[Thing] = set()
        self.alone: list[Origin] = []
        """Branches around, through all calls, that this rank takes because it is this rank: why."""
        self.around: list[Around] = []
        """Outermost first, through all calls."""
        self.made_in: dict[tuple[int, str], frozenset[int]] = {}
        """For variables, by frame, and attributes, by object: the loops and branches around the last assignment."""
        self.globals: dict[tuple[int, str], Value] = {}
        self.whole_file = False
        """The walk is that of a file's top: nothing has run before that it has not seen."""
        self.apart: dict[int, Origin] = {}
        """Of tests with ``and`` or ``or``, by node, that are open on this rank alone: why others know the outcome."""
        self.had: set[int] = set()
        """Uses, by node, of what this rank has: other ranks may lack it there."""

    def step(self) -> None:
        """Count one statement. Raises TooLarge."""
        self.steps += 1
        if self.steps > _MAXIMUM_STEPS:
            raise TooLarge

    @property
    def module(self) -> Module:
        """The file of the code that runs now."""
        return self.frame.module

    def place(self, node: ast.AST) -> Place:
        """A node of the code that runs now."""
        return Place(node, self.frame.module, self.frame.calls)

    def origin(self, node: ast.AST, sameness: Sameness, text: str | None = None) -> Origin:
        """The node as the reason why a value differs."""
        if text is None:
            text = self.module.text_of(node)
        return Origin(" ".join(text.split())[:80], node, self.frame.module, sameness)

    def note(
        self, kind: str, node: ast.AST, *, branch: ast.AST | None = None, name: str = "",
        value: Value | None = None, event: Event | None = None,
    ) -> None:  # fmt: skip
        """Remember something this rank meets by itself."""
        certain = not self.inside.uncertain or kind not in _CERTAIN_ONLY
        if not self.frame.quiet and certain:
            where = None if branch is None else Place(branch, self.frame.module)
            self.notes.append(Note(kind, self.place(node), where, name, value, event))

    def made_here(self, holder: Thing | None, name: str) -> None:
        """Remember the loops and branches around an assignment, of a variable where there is no `holder`."""
        key = (id(self.frame if holder is None else holder), name)
        self.made_in[key] = frozenset(id(item.node) for item in self.around)

    @contextmanager
    def unnoticed(self) -> Iterator[None]:
        """What is evaluated meanwhile was, or will be, evaluated for good: it is written only once."""
        items, notes = self.items, self.notes
        self.items, self.notes = [], []
        try:
            yield
        finally:
            self.items, self.notes = items, notes

    # -- what changes on a path

    def snapshot(self) -> tuple[dict[str, Value], Heap]:
        """Variables and attributes as they are now."""
        return dict(self.frame.variables), self.heap_now()

    def heap_now(self) -> Heap:
        """Attributes as they are now."""
        return {thing: dict(attributes) for thing, attributes in self.heap.items()}

    def restore(self, state: tuple[dict[str, Value], Heap]) -> None:
        """Go back to (a copy of) a snapshot."""
        self.frame.variables = dict(state[0])
        self.heap = {thing: dict(attributes) for thing, attributes in state[1].items()}

    def attribute(self, thing: Thing, name: str) -> Value | None:
        """An attribute that was set."""
        return self.heap.get(thing, {}).get(name)

    def set_attribute(self, thing: Thing, name: str, value: Value) -> None:
        """Set an attribute."""
        self.heap.setdefault(thing, {})[name] = value

    def none_used(self, value: Value, node: ast.AST) -> None:
        """Note the use of a None that other ranks do not have, or may not have."""
        if not isinstance(value, Known) or value.constant is not None:
            self.had.add(id(node))
        elif value.instead_of is not None:
            self.note("value", node, branch=value.instead_of, name=self.module.text_of(node))
        else:
            self.lacks(node)

    def lacks(self, node: ast.AST) -> None:
        """Note the use of what this rank certainly does not have here; to be reported where another rank has it."""
        inside, frame = self.inside, self.frame
        if inside.trying or inside.handler or inside.perhaps or frame.called_perhaps:
            return
        if frame.condition is None or frame.condition.sameness is Sameness.SAME:
            self.note("lacks", node, name=" ".join(self.module.text_of(node).split())[:80])

    def missing(self, value: Missing, node: ast.AST) -> None:
        """A rank uses a variable that it has not assigned; the first use counts."""
        if any(known.name == value.name and known.value is value for known in self.notes):
            return
        self.note("value", node, branch=value.branch, name=value.name, value=value)
