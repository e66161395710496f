"""Conditions under which code runs, and what they depend on."""

from __future__ import annotations

import ast
from collections.abc import Callable
from enum import Enum


class GuardKind(str, Enum):
    """What a condition depends on."""

    LAUNCH = "launch"
    """How the script was started: WORLD_SIZE, LOCAL_RANK, dist.is_initialized(), num_processes, ..."""
    RANK = "rank"
    """Which rank runs: rank == 0, is_main_process, ..."""
    DEVICE_COUNT = "device-count"
    """How many devices there are: torch.cuda.device_count(), n_gpu, ..."""
    OTHER = "other"


class Guard:
    """A condition under which code runs. ``positive``: it holds where the code runs, else it does not."""

    __slots__ = ("_kind", "_kind_of", "positive", "test")

    def __init__(
        self, test: ast.expr, positive: bool, kind_of: Callable[[ast.expr], GuardKind]
    ) -> None:
        self.test = test
        self.positive = positive
        self._kind_of = kind_of
        self._kind: GuardKind | None = None

    @property
    def kind(self) -> GuardKind:
        """What the condition depends on."""
        if self._kind is None:
            self._kind = self._kind_of(self.test)
        return self._kind

    def negated(self) -> Guard:
        """The guard of the other branch."""
        return Guard(self.test, not self.positive, self._kind_of)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Guard) and self.test is other.test and self.positive == other.positive
        )

    def __hash__(self) -> int:
        return hash((id(self.test), self.positive))

    def __repr__(self) -> str:
        return f"Guard({ast.unparse(self.test)!r}, positive={self.positive})"


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
