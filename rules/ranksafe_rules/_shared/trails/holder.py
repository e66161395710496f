"""What is known at one point of an object's way."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace
from enum import Enum

from ranksafe.semantics.module import Module

Function = ast.FunctionDef | ast.AsyncFunctionDef
Slot = int | str | None
"""Where in a container an object lies: an index, a key; None: somewhere."""


class Form(Enum):
    """What the object has become."""

    PART = "part"
    """What it was at first: a sampler, a dataset."""
    LOADER = "loader"
    """The loader that was built with it."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A call that hands the object to a function."""

    module: Module
    call: ast.Call
    function: Function


@dataclass(frozen=True, slots=True)
class Holder:
    """An expression that stands for the object, or for a container with the object in it."""

    module: Module
    node: ast.expr
    form: Form
    slots: tuple[Slot, ...] = ()
    """The containers around the object, the outermost last."""
    made: tuple[ast.AST, ...] = ()
    """Where it came into being: its construction, the calls that returned it, the ``self.x`` it was stored in."""
    entries: tuple[Entry, ...] = ()
    """The functions that it was handed to and that it has not come back from, the innermost last."""

    def at(self, node: ast.expr) -> Holder:
        """The same object at another expression."""
        return replace(self, node=node)

    def within(self, node: ast.expr, slot: Slot) -> Holder:
        """The object in a container."""
        return replace(self, node=node, slots=(*self.slots, slot))

    def taken_out(self) -> Holder:
        """The object without the outermost container."""
        return replace(self, slots=self.slots[:-1])


@dataclass(frozen=True, slots=True)
class Pass:
    """A loop over the object, a ``yield from`` it, or an ``iter()`` of it."""

    holder: Holder
    node: ast.AST

    @property
    def module(self) -> Module:
        """The file of the loop."""
        return self.holder.module


@dataclass(slots=True)
class Trail:
    """Where an object goes, as far as it is understood."""

    start: ast.Call
    holders: list[Holder] = field(default_factory=list)
    """All expressions that stand for it."""
    passes: list[Pass] = field(default_factory=list)
    loaders: list[Holder] = field(default_factory=list)
    """The loaders that were built with it."""
    unknown: list[Holder] = field(default_factory=list)
    """Where it is handed to something that cannot be read here."""
    returned: bool = False
    """A function gives it back: other files may have it."""
    stored: bool = False
    """It is kept in an attribute: other files may read it there."""
    files: list[Module] = field(default_factory=list)
    """The files that it comes through."""
    given_up: bool = False
    """It goes to too many places to follow."""
