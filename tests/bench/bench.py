"""Speed against the tools that users know, as ratios measured in one run on the same files.

    make bench        or: python tests/bench/bench.py [PART]...

Parts: keystrokes, command-line, processor, start, memory; and of runs: agent (what watching costs a training loop against
a bare ``accelerate launch``) and squiggle (from a rank's death to its diagnostic); and editor: the extension's start; and
hostile: what a hostile document in the editor costs the others.

Nothing here decides a test: machines differ, and a busy one measures its other work.
"""

from __future__ import annotations

import os
import platform
import sys
import tempfile
from pathlib import Path

import command_line
import death_to_squiggle
import editor_start
import hostile_documents
import keystrokes
import launch_cost
import processor_time
import sources
from compared_tools import ToolMissing, torch_python
from report import Figure, table

PARTS = (
    "keystrokes",
    "command-line",
    "processor",
    "start",
    "memory",
    "agent",
    "squiggle",
    "editor",
    "hostile",
)
SAMPLE_LINES = 10_000
PROJECT_FILES = 5_000


def main(words: list[str]) -> int:
    unknown = set(words) - set(PARTS)
    if unknown:
        print(f"no such part: {', '.join(unknown)}; there are {', '.join(PARTS)}", file=sys.stderr)
        return 2
    try:
        packages = sources.site_packages(torch_python())
        with tempfile.TemporaryDirectory(prefix="ranksafe-bench-") as name:
            figures = measure(set(words or PARTS), packages, Path(name).resolve())
    except ToolMissing as error:
        print(error, file=sys.stderr)
        return 1
    print(
        f"\n{platform.platform()}, Python {platform.python_version()}, {os.cpu_count()} cores, {load()}\n"
    )
    print(table(figures))
    return 0


def measure(parts: set[str], packages: Path, scratch: Path) -> list[Figure]:
    files = sources.make_files(packages, scratch / "files")
    figures = []
    if "processor" in parts:
        say("processor time")
        figures += processor_time.measure(files)
    if "start" in parts:
        say("start of the server")
        figures.append(keystrokes.measure_start(scratch / "files"))
    if "keystrokes" in parts:
        say("keystrokes")
        figures += keystrokes.measure(files)
    if "command-line" in parts:
        say("command line")
        tree = sources.copy_tree(packages, ["trl", "accelerate"], scratch / "tree")
        alone = {
            name: sources.copy_tree(packages, [name], scratch / "alone" / name)
            for name in command_line.COLD_TARGETS
        }
        sources.copy_sample(tree, scratch / "sample", SAMPLE_LINES)
        figures += command_line.measure(alone, tree, scratch / "sample", scratch / "caches")
    if "memory" in parts:
        say("memory")
        sources.copy_project(packages, scratch / "project", PROJECT_FILES)
        figures.append(keystrokes.measure_memory(scratch / "project", files[-1]))
        figures.append(keystrokes.measure_growth(files[1]))
    if "agent" in parts:
        say("the agent in a training loop")
        figures += launch_cost.measure()
    if "squiggle" in parts:
        say("from a death to its squiggle")
        figures += death_to_squiggle.measure()
    if "editor" in parts:
        say("start of the extension in VS Code")
        figures += editor_start.measure()
    if "hostile" in parts:
        say("keys beside hostile documents")
        figures += hostile_documents.measure(files[1], scratch / "hostile")
    return figures


def load() -> str:
    try:
        return f"load {os.getloadavg()[0]:.1f}"
    except OSError:
        return "load unknown"


def say(text: str) -> None:
    print(f"==> {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
