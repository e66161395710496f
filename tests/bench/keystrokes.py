"""Keystroke to diagnostics through LSP: ranksafe, ruff and bare pygls, key by key in turn."""

from __future__ import annotations

import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from compared_tools import LANGUAGE_SERVER_PATH, ranksafe_command, ruff_program
from lsp_driver import Server
from report import Figure
from sources import SourceFile

KEYS = 100
PAUSE_SECONDS = 0.02
TARGETS = {1_000: 1.0, 5_000: 0.5}


def commands() -> dict[str, list[str]]:
    bare = Path(__file__).parent / "bare_server.py"
    return {
        "ranksafe": ranksafe_command("lsp"),
        "ruff": [ruff_program(), "server"],
        "pygls": [sys.executable, str(bare)],
    }


@dataclass
class Typed:
    """What keys cost one server, in milliseconds."""

    wall: list[float]
    processor: float | None = None
    """Per key; unlike the wall time it does not depend on what else the machine does."""

    @property
    def middle(self) -> float:
        return statistics.median(self.wall)

    def __str__(self) -> str:
        processor = "" if self.processor is None else f" (CPU {self.processor:.1f})"
        return f"{self.middle:.1f}/{percentile(self.wall, 95):.1f}{processor}"


def measure(files: list[SourceFile]) -> list[Figure]:
    figures = []
    for file in files:
        typed = type_into(file)
        detail = "ms median/p95: " + ", ".join(f"{name} {cost}" for name, cost in typed.items())
        name = f"key to diagnostics, {file.length} lines"
        target = TARGETS.get(file.length)
        if target is None:
            print(f"{name}: {detail}", flush=True)
            continue
        ours, ruff = typed["ranksafe"], typed["ruff"]
        figures.append(
            Figure(f"{name}, vs ruff server", ours.middle / ruff.middle, target, detail=detail)
        )
        if ours.processor is not None and ruff.processor is not None:
            ratio = ours.processor / ruff.processor
            figures.append(Figure(f"{name}, CPU, vs ruff server", ratio, target))
    return figures


def type_into(file: SourceFile) -> dict[str, Typed]:
    """The cost of a key for each server; a letter is typed and taken away again."""
    servers = [
        Server(name, command, file.path.parent, LANGUAGE_SERVER_PATH)
        for name, command in commands().items()
    ]
    typed = {server.name: Typed([]) for server in servers}
    try:
        for server in servers:
            server.initialize()
            server.open(file.path, file.text)
        time.sleep(1)
        type_keys(servers, file, 10)  # the first ones warm everything up
        before = {server.name: server.processor_seconds() for server in servers}
        for name, milliseconds in type_keys(servers, file, KEYS):
            typed[name].wall.append(milliseconds)
        for server in servers:
            start, end = before[server.name], server.processor_seconds()
            if start is not None and end is not None:
                typed[server.name].processor = 1000 * (end - start) / KEYS
    finally:
        for server in servers:
            server.close()
    return typed


def type_keys(servers: list[Server], file: SourceFile, count: int) -> list[tuple[str, float]]:
    """Milliseconds of each key, the servers in turn."""
    times = []
    for key in range(count):
        removed, text = (1, "") if key % 2 else (0, "z")
        for server in servers:
            seconds = server.type(file.line, file.column, removed, text)
            times.append((server.name, 1000 * seconds))
            time.sleep(PAUSE_SECONDS)
    return times


def measure_start(folder: Path, rounds: int = 7) -> Figure:
    """Spawn to initialize reply, against bare pygls, in turn."""
    seconds: dict[str, list[float]] = {"ranksafe": [], "pygls": []}
    for _ in range(rounds):
        for name in seconds:
            server = Server(name, commands()[name], folder, LANGUAGE_SERVER_PATH)
            seconds[name].append(server.initialize())
            server.close()
    middle = {name: statistics.median(values) for name, values in seconds.items()}
    detail = ", ".join(f"{name} {1000 * value:.0f} ms" for name, value in middle.items())
    return Figure(
        "spawn to initialize reply, vs bare pygls",
        middle["ranksafe"] / middle["pygls"],
        1.5,
        detail=detail,
    )


def measure_memory(project: Path, file: SourceFile) -> Figure:
    """Peak memory of the server with a large project open and one of its files edited."""
    opened = project / "transformers" / "trainer.py"
    server = Server("ranksafe", commands()["ranksafe"], project, LANGUAGE_SERVER_PATH)
    try:
        server.initialize()
        server.open(opened, file.text)
        for key in range(40):
            server.type(file.line, file.column, key % 2, "" if key % 2 else "z")
        time.sleep(3)  # what the server does while nobody types
        peak = server.memory_megabytes("VmHWM")
    finally:
        server.close()
    return Figure("peak memory, project of 5,000 files", peak, 300, unit="MB")


def measure_growth(file: SourceFile, edits: int = 1_000) -> Figure:
    """Memory that a thousand edits leave behind."""
    server = Server("ranksafe", commands()["ranksafe"], file.path.parent, LANGUAGE_SERVER_PATH)
    try:
        server.initialize()
        server.open(file.path, file.text)
        for key in range(200):
            server.type(file.line, file.column, key % 2, "" if key % 2 else "z")
        time.sleep(3)
        before = server.memory_megabytes()
        for key in range(edits):
            server.type(file.line, file.column, key % 2, "" if key % 2 else "z")
        time.sleep(3)
        after = server.memory_megabytes()
    finally:
        server.close()
    grown = None if before is None or after is None else max(0.0, after - before)
    return Figure(
        "memory after 1,000 more edits, 1,000 lines",
        grown,
        5,
        unit="MB",
        detail=f"from {before or 0:.0f} MB",
    )


def percentile(values: list[float], share: int) -> float:
    return sorted(values)[min(len(values) - 1, len(values) * share // 100)]
