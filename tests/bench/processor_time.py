"""The engine's own cost in processor time, in this process: whole passes, edits, start-up."""

from __future__ import annotations

import gc
import resource
import subprocess
import time
from collections.abc import Callable
from functools import partial

from compared_tools import LANGUAGE_SERVER_PATH, ranksafe_command
from keystrokes import percentile
from ranksafe.checker.analysis import Analyzer
from ranksafe.checker.configuration import Configuration
from ranksafe.checker.registry import Registry
from ranksafe.launch.context import LaunchContext
from report import Figure
from sources import SourceFile

FULL_PASS_TARGETS = {1_000: 20.0, 5_000: 100.0}
ROUNDS = 41


def measure(files: list[SourceFile]) -> list[Figure]:
    analyzer = Analyzer(Registry.load(), Configuration(), LaunchContext())
    figures = []
    gc.collect()
    gc.freeze()  # as the server does: see ranksafe.lsp.workspace_events
    for file in files:
        if file.length not in FULL_PASS_TARGETS:
            continue
        whole = milliseconds(partial(full_pass, analyzer, file))
        name = f"full pass, {file.length} lines, CPU p95"
        figures.append(
            Figure(name, percentile(whole, 95), FULL_PASS_TARGETS[file.length], unit="ms")
        )
        figures.append(
            Figure(
                f"one key, {file.length} lines, CPU p95",
                percentile(keys(analyzer, file), 95),
                10,
                unit="ms",
            )
        )
    figures.append(start_up())
    return figures


def full_pass(analyzer: Analyzer, file: SourceFile) -> object:
    return analyzer.open(file.path, file.text).findings


def keys(analyzer: Analyzer, file: SourceFile) -> list[float]:
    lines = file.text.splitlines(keepends=True)
    line = lines[file.line]
    lines[file.line] = f"{line[: file.column]}z{line[file.column :]}"
    texts = ["".join(lines), file.text]
    analysis = analyzer.open(file.path, file.text)
    state = {"key": 0}

    def key() -> None:
        analysis.change(texts[state["key"] % 2], file.line, file.line)
        _ = analysis.findings
        state["key"] += 1

    return milliseconds(key, rounds=2 * ROUNDS)


def milliseconds(work: Callable[[], object], rounds: int = ROUNDS) -> list[float]:
    """Processor time of each round; garbage is collected between the rounds, as the server does at rest."""
    work()
    times = []
    for _ in range(rounds):
        gc.collect(1)
        gc.disable()
        began = time.process_time()
        work()
        times.append(1000 * (time.process_time() - began))
        gc.enable()
    return times


def start_up() -> Figure:
    """Processor time of a command line that does next to nothing."""
    seconds = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [*ranksafe_command("check"), "-"],
            input=b"import torch\n",
            env=LANGUAGE_SERVER_PATH,
            stdout=subprocess.DEVNULL,
            check=True,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return Figure("start-up of check, CPU", percentile(seconds, 50), 0.7, unit="s")
