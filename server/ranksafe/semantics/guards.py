"""Conditions under which code runs, and what they depend on."""

from __future__ import annotations

import ast
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ranksafe.semantics.module import Module


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

    __slots__ = ("_guards", "_kind", "positive", "test")

    def __init__(self, test: ast.expr, positive: bool, guards: Guards) -> None:
        self.test = test
        self.positive = positive
        self._guards = guards
        self._kind: GuardKind | None = None

    @property
    def kind(self) -> GuardKind:
        """What the condition depends on."""
        if self._kind is None:
            self._kind = self._guards.kind_of(self.test)
        return self._kind

    def negated(self) -> Guard:
        """The guard of the other branch."""
        return Guard(self.test, not self.positive, self._guards)

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
_LEAVING = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_LEAVING_CALLS = frozenset({"sys.exit", "os._exit", "builtins.exit", "builtins.quit"})


class Guards:
    """Finds and classifies conditions of one module."""

    def __init__(self, module: Module) -> None:
        self._module = module

    def around(self, node: ast.AST, until: ast.AST | None = None) -> tuple[Guard, ...]:
        """Conditions on the way from the enclosing function (or ``until``) to ``node``, innermost first."""
        module = self._module
        found: list[Guard] = []
        child = node
        parent = module.parent(child)
        while parent is not None and child is not until:
            guard = self.of_branch(parent, child)
            if guard is not None:
                found.append(guard)
            found.extend(self._earlier_exits(parent, child))
            if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.Module)):
                break
            child, parent = parent, module.parent(parent)
        return tuple(found)

    def of_branch(self, parent: ast.AST, child: ast.AST) -> Guard | None:
        """The condition that ``parent`` puts on its direct child."""
        if isinstance(parent, (ast.If, ast.While)):
            if child is parent.test:
                return None
            return self.guard(parent.test, any(child is item for item in parent.body))
        if isinstance(parent, ast.IfExp) and child is not parent.test:
            return self.guard(parent.test, child is parent.body)
        if isinstance(parent, ast.BoolOp) and child is not parent.values[0]:
            return self.guard(parent.values[0], isinstance(parent.op, ast.And))
        return None

    def guard(self, test: ast.expr, positive: bool) -> Guard:
        """A guard; ``not x`` is x with the other sign."""
        while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            test, positive = test.operand, not positive
        return Guard(test, positive, self)

    def kind_of(self, test: ast.expr, depth: int = 0) -> GuardKind:
        """What a condition depends on, through the names in it."""
        kinds: set[GuardKind] = set()
        for node in ast.walk(test):
            word = _word_of(node)
            if word is not None:
                kind = _kind_of_word(word)
                if kind is not None:
                    kinds.add(kind)
                    continue
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and depth < 3:
                for assigned in self._module.flow.assigned_values(node):
                    kinds.add(self.kind_of(assigned, depth + 1))
        for kind in (GuardKind.LAUNCH, GuardKind.RANK, GuardKind.DEVICE_COUNT):
            if kind in kinds:
                return kind
        return GuardKind.OTHER

    def _earlier_exits(self, parent: ast.AST, child: ast.AST) -> list[Guard]:
        """``if c: return`` before ``child`` in the same block: it runs only where c does not hold."""
        if not isinstance(child, ast.stmt) or isinstance(parent, ast.ClassDef):
            return []
        if isinstance(parent, ast.Module):
            self._module.note_early_exits()
        found = []
        for block in ("body", "orelse", "finalbody"):
            statements = getattr(parent, block, None)
            if not isinstance(statements, list) or not any(child is item for item in statements):
                continue
            for statement in statements:
                if statement is child:
                    break
                if isinstance(statement, ast.If) and statement.body:
                    if self._leaves(statement.body[-1]) and not statement.orelse:
                        found.append(self.guard(statement.test, False))
                elif isinstance(statement, ast.Assert):
                    found.append(self.guard(statement.test, True))
        return found

    def _leaves(self, statement: ast.stmt) -> bool:
        if isinstance(statement, _LEAVING):
            return True
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            return self._module.qualified_name(statement.value.func) in _LEAVING_CALLS
        return False


def _word_of(node: ast.AST) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return None


def _kind_of_word(word: str) -> GuardKind | None:
    if word in _LAUNCH_WORDS:
        return GuardKind.LAUNCH
    if word in _RANK_WORDS:
        return GuardKind.RANK
    if word in _DEVICE_COUNT_WORDS:
        return GuardKind.DEVICE_COUNT
    return None
