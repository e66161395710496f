"""Conditions under which code runs, and what they depend on."""

from __future__ import annotations

import ast
from enum import Enum
from typing import Protocol

from ranksafe.semantics.walking import unparsed


class GuardKind(str, Enum):
    """What a condition depends on."""

    LAUNCH = "launch"
    """How the script was started: WORLD_SIZE, LOCAL_RANK, dist.is_initialized(), num_processes, ..."""
    RANK = "rank"
    """Which rank runs: rank == 0, is_main_process, ..."""
    DEVICE_COUNT = "device-count"
    """How many devices there are: torch.cuda.device_count(), n_gpu, ..."""
    OTHER = "other"


class Tests(Protocol):
    """Reads tests."""

    def read(self, test: ast.expr, holds: bool) -> tuple[ast.expr, bool]:
        """What a test asks, through ``not`` and the names that it goes by, and whether that holds where it does."""

    def kind_of(self, test: ast.expr) -> GuardKind:
        """What a test depends on."""


class Guard:
    """A condition under which code runs."""

    __slots__ = ("_holds", "_kind", "_read", "_tests", "_written", "is_demanded")

    def __init__(
        self, written: ast.expr, holds: bool, tests: Tests, *, is_demanded: bool = False
    ) -> None:
        self.is_demanded = is_demanded
        """Whether an exception, or the end of the program, is all that comes where it does not hold."""
        self._written = written
        self._holds = holds
        self._tests = tests
        self._read: tuple[ast.expr, bool] | None = None
        self._kind: GuardKind | None = None

    @property
    def test(self) -> ast.expr:
        """What is asked: for ``c = a < b`` and ``if c:`` it is ``a < b``."""
        return self._as_read[0]

    @property
    def positive(self) -> bool:
        """Whether it holds where the code runs."""
        return self._as_read[1]

    @property
    def kind(self) -> GuardKind:
        """What the condition depends on."""
        if self._kind is None:
            self._kind = self._tests.kind_of(self._written)
        return self._kind

    @property
    def _as_read(self) -> tuple[ast.expr, bool]:
        # Later than it is made: what a name stands for depends on the conditions around it.
        if self._read is None:
            self._read = self._tests.read(self._written, self._holds)
        return self._read

    def negated(self) -> Guard:
        """The guard of the other branch."""
        return Guard(self._written, not self._holds, self._tests)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Guard)
            and self._written is other._written
            and self._holds == other._holds
        )

    def __hash__(self) -> int:
        return hash((id(self._written), self._holds))

    def __repr__(self) -> str:
        return f"Guard({unparsed(self._written)!r}, {self._holds})"


_LAUNCH_WORDS = frozenset(
    {
        "WORLD_SIZE", "LOCAL_WORLD_SIZE", "LOCAL_RANK", "RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_SIZE",
        "world_size", "num_processes", "distributed_type", "distributed", "is_distributed", "use_ddp",
        "ddp", "use_distributed", "is_initialized", "is_torchelastic_launched", "get_world_size",
        "use_distributed_training", "parallel_mode", "local_process_index", "nprocs", "is_dist_initialized",
    }
)  # fmt: skip
_RANK_WORDS = frozenset(
    {
        "rank", "local_rank", "global_rank", "get_rank", "get_local_rank", "is_main_process",
        "is_local_main_process", "is_world_process_zero", "world_process_zero", "is_global_zero",
        "process_index", "should_save", "is_master", "is_rank_zero", "main_process", "is_main",
    }
)  # fmt: skip
_DEVICE_COUNT_WORDS = frozenset(
    {"device_count", "n_gpu", "num_gpus", "n_gpus", "ngpu", "ngpus", "gpu_count"}
)


def kind_of_words(node: ast.AST) -> GuardKind | None:
    """What a name, an attribute or a string says by itself."""
    word = None
    if isinstance(node, ast.Name):
        word = node.id
    elif isinstance(node, ast.Attribute):
        word = node.attr
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        word = node.value
    if word in _LAUNCH_WORDS:
        return GuardKind.LAUNCH
    if word in _RANK_WORDS:
        return GuardKind.RANK
    return GuardKind.DEVICE_COUNT if word in _DEVICE_COUNT_WORDS else None
