"""The project index on a project of 5,000 files: first session, later sessions, an edit that others depend on.

    python tests/bench/project_index.py [--files N]

The files are copies of installed libraries, of about 250 lines each. Every figure comes from a process of its own;
the targets are those of two free cores, processor time says what a busy machine would have needed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from compared_tools import LANGUAGE_SERVER_PATH, ToolMissing, ranksafe_command, ruff_program
from compared_tools import torch_python as interpreter
from lsp_driver import Server
from report import Figure, table
from sources import site_packages

FILES = 5_000
LONGEST_LINES = 1_000
PACKAGES = ("transformers", "torch", "accelerate", "trl", "numpy", "sympy", "networkx")
EDITS = 20
SPREAD = "RS201"
"""What the dependent shows exactly while the helper says "auto"."""
HELPER = "WHERE = {}\n\n\ndef load():\n    return WHERE\n"
DEPENDENT = """\
from between import WHERE
from transformers import AutoModelForCausalLM, Trainer

model = AutoModelForCausalLM.from_pretrained("gpt2", device_map=WHERE)
trainer = Trainer(model=model)

if __name__ == "__main__":
    trainer.train()
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=FILES)
    parser.add_argument("--part", choices=("build", "ask"), help=argparse.SUPPRESS)
    parser.add_argument("--in", dest="folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.part:
        print(json.dumps(PARTS[arguments.part](arguments.folder)))
        return 0
    try:
        packages = site_packages(interpreter())
    except ToolMissing as error:
        print(error, file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="ranksafe-bench-") as name:
        folder = Path(name).resolve()
        lines = copy_project(packages, folder / "project", arguments.files)
        print(f"{arguments.files} files of {lines:.0f} lines on average", flush=True)
        figures = measure(folder, arguments.files)
    print(f"\n{platform.platform()}, Python {platform.python_version()}, {os.cpu_count()} cores\n")
    print(table(figures))
    return 0


def measure(folder: Path, files: int) -> list[Figure]:
    say("ruff analyze graph")
    ruff = ruff_graph(folder / "project")
    say("first session")
    cold = in_process("build", folder)
    say("second session")
    warm = in_process("build", folder)
    asked = in_process("ask", folder)
    say("server")
    served = serve(folder, files)
    figures = [
        Figure("first index, wall", cold["wall"], 20, "s", detail=against(cold, ruff)),
        Figure("first index, CPU", cold["cpu"], 20, "s"),
        Figure("peak memory of it", cold["memory"], 300, "MB"),
        Figure("warm start, wall", warm["wall"], 2, "s", detail=against(warm, ruff)),
        Figure("warm start, CPU", warm["cpu"], 2, "s"),
        Figure("all summaries and imports asked for, warm, CPU", asked["cpu"], 4, "s"),
        Figure("peak memory of that", asked["memory"], 300, "MB"),
        *served,
    ]
    if ruff is not None:
        figures.append(
            Figure("first index, CPU, vs ruff analyze graph", cold["cpu"] / ruff["cpu"], 20)
        )
        figures.append(
            Figure("warm start, CPU, vs ruff analyze graph", warm["cpu"] / ruff["cpu"], 1)
        )
    return figures


# -- in a process of its own


def build(folder: Path) -> dict[str, float]:
    """What a server does at its start, in one go."""
    from ranksafe.semantics.project.index import ProjectIndex

    def work() -> None:
        index = ProjectIndex(folder / "project", store_folder=folder / "store")
        for _ in index.build():
            if index.store.unsaved >= 300:
                index.store.flush()
        index.store.flush(index.files())
        index.trains_with_trainer("train")

    return measured(work)


def ask(folder: Path) -> dict[str, float]:
    """The whole import graph, from the store."""
    from ranksafe.semantics.project.index import ProjectIndex

    def work() -> None:
        index = ProjectIndex(folder / "project", store_folder=folder / "store")
        for path in index.files():
            for name in index.imports_of(path):
                index.resolve(name)

    return measured(work)


PARTS: dict[str, Callable[[Path], dict[str, float]]] = {"build": build, "ask": ask}


def measured(work: Callable[[], None]) -> dict[str, float]:
    wall, processor = time.perf_counter(), time.process_time()
    work()
    return {
        "wall": time.perf_counter() - wall,
        "cpu": time.process_time() - processor,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def in_process(part: str, folder: Path) -> dict[str, float]:
    command = [sys.executable, __file__, "--part", part, "--in", str(folder)]
    environment = {**os.environ, **LANGUAGE_SERVER_PATH}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def ruff_graph(project: Path) -> dict[str, float] | None:
    try:
        command = [ruff_program(), "analyze", "graph", "--quiet", str(project)]
    except ToolMissing:
        return None
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        return None
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"wall": wall, "cpu": processor}


def against(ours: dict[str, float], ruff: dict[str, float] | None) -> str:
    if ruff is None:
        return "no ruff to compare with"
    return f"ruff analyze graph {ruff['wall']:.2f} s (CPU {ruff['cpu']:.2f})"


# -- the server


class Watched(Server):
    """Notes what is shown for each file, and how long a request waits meanwhile."""

    def __init__(self, root: Path, store: Path) -> None:
        self.shown: dict[str, tuple[float, set[str]]] = {}
        self.progress: list[str] = []
        environment = {**LANGUAGE_SERVER_PATH, "XDG_CACHE_HOME": str(store)}
        super().__init__("ranksafe", ranksafe_command("lsp"), root, environment)

    def _take(self, moment: float, message: dict[str, Any]) -> None:
        params = message.get("params") or {}
        if message.get("method") == "textDocument/publishDiagnostics":
            codes = {diagnostic["code"] for diagnostic in params["diagnostics"]}
            self.shown[params["uri"]] = (moment, codes)
        elif message.get("method") == "$/progress":
            self.progress.append(params["value"]["kind"])
        super()._take(moment, message)

    def until(self, condition: Callable[[], bool], seconds: float = 300.0) -> None:
        deadline = time.perf_counter() + seconds
        while not condition():
            if time.perf_counter() > deadline:
                raise TimeoutError("the server")
            time.sleep(0.001)


def serve(folder: Path, files: int) -> list[Figure]:
    project = folder / "project"
    for name, text in {
        "helper.py": HELPER.format("None"),
        "between.py": "from helper import WHERE, load\n",
        "train.py": DEPENDENT,
    }.items():
        (project / name).write_text(text)
    waits = waiting_while_built(project, folder / "empty", files)
    server = Watched(project, folder / "empty")
    try:
        server.initialize()
        server.open(project / "train.py", DEPENDENT)
        dependent = (project / "train.py").as_uri()
        server.open(project / "helper.py", HELPER.format("None"))
        time.sleep(3)
        seconds = []
        before = server.processor_seconds()
        for edit in range(EDITS):
            spreads = edit % 2 == 0
            old, new = ("None", '"auto"') if spreads else ('"auto"', "None")
            began = time.perf_counter()
            server.type(0, len("WHERE = "), len(old), new)
            server.until(
                lambda spreads=spreads: (SPREAD in server.shown[dependent][1]) == spreads, 30
            )
            seconds.append(server.shown[dependent][0] - began)
        after = server.processor_seconds()
        peak = server.memory_megabytes("VmHWM")
    finally:
        server.close()
    cost = "" if None in (before, after) else f"; CPU {1000 * (after - before) / EDITS:.0f} ms each"
    return [
        *waits,
        Figure(
            "edit to new findings in an open dependent, median",
            1000 * statistics.median(seconds),
            200,
            "ms",
            detail=f"worst of {EDITS}: {1000 * max(seconds):.0f} ms; 100 of them wait for a pause{cost}",
        ),
        Figure("peak memory of the server, warm", peak, 300, "MB"),
    ]


def waiting_while_built(project: Path, store: Path, files: int) -> list[Figure]:
    """How long requests wait while the first index is built in the background."""
    shutil.rmtree(store, ignore_errors=True)
    server = Watched(project, store)
    try:
        began = time.perf_counter()
        server.initialize()
        server.open(project / "train.py", DEPENDENT)
        waits = []
        cache = store / "ranksafe" / "projects"
        place = {"line": 0, "character": 0}
        hover = {"textDocument": {"uri": (project / "train.py").as_uri()}, "position": place}
        processor = server.processor_seconds()
        while not built(cache, files) and time.perf_counter() - began < 300:
            asked = time.perf_counter()
            answered, _ = server.request("textDocument/hover", hover)
            waits.append(1000 * (answered - asked))
            time.sleep(0.05)
        seconds = time.perf_counter() - began
        spent = server.processor_seconds()
        peak = server.memory_megabytes("VmHWM")
    finally:
        server.close()
    waits.sort()
    cost = "" if processor is None or spent is None else f", CPU {spent - processor:.1f} s"
    return [
        Figure("first index in the background, wall", seconds, 60, "s", detail=cost[2:]),
        Figure(
            "a request meanwhile, median",
            statistics.median(waits),
            20,
            "ms",
            detail=f"p95 {waits[int(0.95 * len(waits))]:.0f} ms, worst of {len(waits)}: {waits[-1]:.0f} ms",
        ),
        Figure("peak memory of the server, first index", peak, 300, "MB"),
    ]


def built(cache: Path, files: int) -> bool:
    import sqlite3

    for file in cache.glob("*.sqlite3"):
        try:
            with sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True) as connection:
                (count,) = connection.execute("SELECT count(*) FROM files").fetchone()
        except sqlite3.Error:
            return False
        return int(count) >= files
    return False


# -- the project


def copy_project(packages: Path, folder: Path, count: int) -> float:
    """Copies of library files, the longest left out; the lines of one on average."""
    lines, left = 0, count
    for name in PACKAGES:
        for file in sorted((packages / name).rglob("*.py")):
            content = file.read_bytes()
            length = content.count(b"\n")
            if not left or length > LONGEST_LINES:
                continue
            target = folder / file.relative_to(packages)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            lines += length
            left -= 1
    if left:
        raise ValueError(f"only {count - left} files are installed")
    return lines / count


def say(text: str) -> None:
    print(f"==> {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
