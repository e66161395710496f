"""What says which rank runs, and in how large a world: library functions, environment variables, and names by
convention."""

from __future__ import annotations

from typing import Any

from ranksafe.rank_flow.tables import functions_that, named


class World:
    """The ranks that are looked at: one node, all of whose processes are ranks."""

    __slots__ = ("_rank", "asked", "size")

    def __init__(self, rank: int, size: int) -> None:
        self._rank = rank
        self.size = size
        self.asked = False
        """Whether something has asked for the rank: otherwise all ranks do the same."""

    @property
    def identity(self) -> tuple[int, int]:
        """Rank and size, for telling worlds apart without asking."""
        return self._rank, self.size

    @property
    def rank(self) -> int:
        """The rank that runs."""
        self.asked = True
        return self._rank


def is_rank_word(word: str) -> bool:
    """Whether a name says which rank runs: its value differs from rank to rank."""
    return word in named("rank") or word in named("main process") or word in named("last rank")


def is_data_parameter(function: str, word: str) -> bool:
    """Whether a parameter is the batch of a step, of which each rank has its own."""
    return word in named("batch") and function in named("training step")


def is_loader_parameter(word: str) -> bool:
    """Whether a parameter is a data loader by its name."""
    return word.endswith(tuple(named("loader ending")))


def by_word(word: str, world: World) -> Any:
    """The value that an attribute or parameter of this name has by convention; None when it says nothing."""
    if word in named("rank"):
        return world.rank
    if word in named("world size"):
        return world.size
    if word in named("main process"):
        return world.rank == 0
    if word in named("last rank"):
        return world.rank == world.size - 1
    return True if word in named("distributed") else None


def by_function(name: str, world: World) -> Any:
    """What a library's function returns; None when it says nothing of the rank."""
    if is_rank_function(name):
        return world.rank
    if name in functions_that("world-size"):
        return world.size
    return True if name in functions_that("true-when-distributed") else None


def is_rank_function(name: str) -> bool:
    """Whether a library's function returns the rank."""
    return name in functions_that("rank")


def by_variable(name: str, world: World) -> str | None:
    """The text of an environment variable that a launcher sets; None for others."""
    if is_rank_variable(name):
        return str(world.rank)
    if name in functions_that("size-variable"):
        return str(world.size)
    return "0" if name in functions_that("node-variable") else None


def is_rank_variable(name: str) -> bool:
    """Whether a launcher's environment variable differs from rank to rank."""
    return name in functions_that("rank-variable")
