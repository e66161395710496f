"""Whole runs of the command line: against ruff with all its rules, and against TorchFix."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
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


def measure(tree: Path, sample: Path, scratch: Path) -> list[Figure]:
    """``tree``: the sources of trl and accelerate; ``sample``: about 10,000 lines of them."""
    ruff = [ruff_program(), "check", "--quiet", "--isolated", "--select", "ALL"]
    ours = [*ranksafe_command("check"), "--exit-zero"]
    cold = in_turn(
        {"ranksafe": [*ours, "--no-cache", str(tree)], "ruff": [*ruff, "--no-cache", str(tree)]},
        scratch,
    )
    cached = in_turn(
        {
            "ranksafe": [*ours, str(tree)],
            "ruff": [*ruff, "--cache-dir", str(scratch / "ruff"), str(tree)],
        },
        scratch,
        warm=True,
    )
    return [
        compared("cold check of trl and accelerate, vs ruff ALL", cold, 1.5),
        compared("second check of the same, vs ruff cached", cached, 3.0),
        against_torchfix([*ours, "--no-cache", str(sample)], sample, scratch),
    ]


def compared(name: str, seconds: dict[str, float], target: float) -> Figure:
    detail = ", ".join(f"{tool} {1000 * value:.0f} ms" for tool, value in seconds.items())
    return Figure(name, seconds["ranksafe"] / seconds["ruff"], target, detail=detail)


def against_torchfix(ours: list[str], sample: Path, scratch: Path) -> Figure:
    name = "check of a 10,000-line sample, times faster than TorchFix"
    try:
        torchfix = torchfix_program()
    except ToolMissing as error:
        return Figure(name, None, 20, at_least=True, detail=str(error))
    seconds = in_turn({"ranksafe": ours}, scratch)["ranksafe"]
    other = run([torchfix, "--select", "ALL", str(sample)], scratch)
    return Figure(
        name,
        other / seconds,
        20,
        at_least=True,
        detail=f"ranksafe {seconds:.2f} s, TorchFix {other:.1f} s",
    )


def in_turn(
    commands: dict[str, list[str]], scratch: Path, *, warm: bool = False
) -> dict[str, float]:
    """The median of several runs, one after the other in turn; with ``warm`` a first run fills the caches."""
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    if warm:
        for command in commands.values():
            run(command, scratch)
    for _ in range(ROUNDS):
        for name, command in commands.items():
            seconds[name].append(run(command, scratch))
    return {name: statistics.median(values) for name, values in seconds.items()}


def run(command: list[str], scratch: Path) -> float:
    environment = {
        **os.environ,
        **LANGUAGE_SERVER_PATH,
        "RANKSAFE_CACHE": str(scratch / "ranksafe"),
    }
    began = time.perf_counter()
    done = subprocess.run(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False
    )
    seconds = time.perf_counter() - began
    if done.returncode > 1:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.decode(errors='replace')[-500:]}")
    return seconds
