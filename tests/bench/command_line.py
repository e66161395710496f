"""Whole runs of the command line: against ruff with all its rules, and against TorchFix."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from compared_tools import (
    LANGUAGE_SERVER_PATH,
    ToolMissing,
    ranksafe_command,
    ruff_program,
    torchfix_program,
)
from report import Figure

ROUNDS = 5
COLD_TARGETS = {"accelerate": (8.0, 4.0), "trl": (12.0, 4.0), "transformers": (3.0, 2.5)}
"""Times the processor time of ruff with all its rules: with all rules, and without rank flow."""
LARGE = frozenset({"transformers"})
"""Half a minute a run: fewer rounds."""


@dataclass(frozen=True)
class Cost:
    """Of one run, in seconds."""

    wall: float
    processor: float
    """With all its children; it does not depend on what else the machine does."""

    def __str__(self) -> str:
        return f"{1000 * self.wall:.0f} ms (CPU {1000 * self.processor:.0f})"


def measure(packages: dict[str, Path], tree: Path, sample: Path, scratch: Path) -> list[Figure]:
    """``packages``: folders with the sources of one package each; ``tree``: those of trl and accelerate; ``sample``:
    about 10,000 lines of them."""
    ruff = [ruff_program(), "check", "--quiet", "--isolated"]
    ours = [*ranksafe_command("check"), "--exit-zero"]
    figures = []
    for name, folder in packages.items():
        figures += cold(name, folder, ours, ruff, scratch)
    cached = in_turn(
        {
            "ranksafe": [*ours, str(tree)],
            # Its default rules: ruff keeps results of clean files only, and with all rules none is clean.
            "ruff": [*ruff, "--cache-dir", str(scratch / "ruff"), str(tree)],
        },
        scratch,
        warm=True,
    )
    return [
        *figures,
        *compared("second check of trl and accelerate, vs ruff cached", cached, 3.0),
        *against_torchfix([*ours, "--no-cache", str(sample)], sample, scratch),
    ]


def cold(name: str, folder: Path, ours: list[str], ruff: list[str], scratch: Path) -> list[Figure]:
    own = [*ours, "--no-cache", str(folder)]
    commands = {
        "ranksafe": own,
        "without rank flow": [*own, "--ignore", "RS4"],
        "ruff": [*ruff, "--select", "ALL", "--no-cache", str(folder)],
    }
    costs = in_turn(commands, scratch, rounds=3 if name in LARGE else ROUNDS)
    detail = ", ".join(f"{tool} {cost}" for tool, cost in costs.items())
    whole, rest, other = (costs[command].processor for command in commands)
    title = f"cold check of {name}, CPU, vs ruff ALL"
    target, target_of_rest = COLD_TARGETS[name]
    return [
        Figure(title, whole / other, target, detail=detail),
        Figure(f"{title}, without rank flow", rest / other, target_of_rest),
    ]


def compared(name: str, costs: dict[str, Cost], target: float) -> list[Figure]:
    detail = ", ".join(f"{tool} {cost}" for tool, cost in costs.items())
    ours, ruff = costs["ranksafe"], costs["ruff"]
    return [
        Figure(name, ours.wall / ruff.wall, target, detail=detail),
        Figure(f"{name}, CPU", ours.processor / ruff.processor, target),
    ]


def against_torchfix(ours: list[str], sample: Path, scratch: Path) -> list[Figure]:
    name = "check of a 10,000-line sample, times faster than TorchFix"
    try:
        torchfix = torchfix_program()
    except ToolMissing as error:
        return [Figure(name, None, 20, at_least=True, detail=str(error))]
    commands = {"ranksafe": ours, "TorchFix": [torchfix, "--select", "ALL", str(sample)]}
    costs = in_turn(commands, scratch, rounds=3)
    own, other = costs["ranksafe"], costs["TorchFix"]
    detail = ", ".join(f"{tool} {cost}" for tool, cost in costs.items())
    return [
        Figure(name, other.wall / own.wall, 20, at_least=True, detail=detail),
        Figure(f"{name}, CPU", other.processor / own.processor, 20, at_least=True),
    ]


def in_turn(
    commands: dict[str, list[str]], scratch: Path, *, warm: bool = False, rounds: int = ROUNDS
) -> dict[str, Cost]:
    """The median of several runs, one after the other in turn; with ``warm`` a first run fills the caches."""
    costs: dict[str, list[Cost]] = {name: [] for name in commands}
    if warm:
        for command in commands.values():
            run(command, scratch)
    for _ in range(rounds):
        for name, command in commands.items():
            costs[name].append(run(command, scratch))
    return {
        name: Cost(
            statistics.median(cost.wall for cost in values),
            statistics.median(cost.processor for cost in values),
        )
        for name, values in costs.items()
    }


def run(command: list[str], scratch: Path) -> Cost:
    environment = {
        **os.environ,
        **LANGUAGE_SERVER_PATH,
        "RANKSAFE_CACHE": str(scratch / "ranksafe"),
    }
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False
    )
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode > 1:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.decode(errors='replace')[-500:]}")
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(wall, processor)
