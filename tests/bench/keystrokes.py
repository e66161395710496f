"""Keystroke to diagnostics through LSP: ranksafe, ruff and bare pygls, key by key in turn."""

from __future__ import annotations

import statistics
import sys
import time
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


def measure(files: list[SourceFile]) -> list[Figure]:
    figures = []
    for file in files:
        times = type_into(file)
        middle = {name: 1000 * statistics.median(values) for name, values in times.items()}
        last = {name: 1000 * percentile(values, 95) for name, values in times.items()}
        detail = ", ".join(f"{name} {middle[name]:.1f}/{last[name]:.1f}" for name in times)
        if file.length in TARGETS:
            figures.append(
                Figure(
                    f"key to diagnostics, {file.length} lines, vs ruff server",
                    middle["ranksafe"] / middle["ruff"],
                    TARGETS[file.length],
                    detail=f"ms median/p95: {detail}",
                )
            )
        else:
            print(f"key to diagnostics, {file.length} lines: ms median/p95: {detail}", flush=True)
    return figures


def type_into(file: SourceFile) -> dict[str, list[float]]:
    """Seconds per key for each server; a letter is typed and taken away again."""
    servers = [
        Server(name, command, file.path.parent, LANGUAGE_SERVER_PATH)
        for name, command in commands().items()
    ]
    times: dict[str, list[float]] = {server.name: [] for server in servers}
    try:
        for server in servers:
            server.initialize()
            server.open(file.path, file.text)
        time.sleep(1)
        for key in range(KEYS + 10):
            typed = key % 2 == 0
            for server in servers:
                seconds = server.type(
                    file.line, file.column, 0 if typed else 1, "z" if typed else ""
                )
                if key >= 10:  # the first ones warm everything up
                    times[server.name].append(seconds)
                time.sleep(PAUSE_SECONDS)
    finally:
        for server in servers:
            server.close()
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
