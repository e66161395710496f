"""Many rehearsals in a row of four programs: exit status, aborts, processes left behind.

    PYTHONPATH=server:rules python tests/rehearsal/measurements/fifty_runs.py PYTHON [--runs 50] [NAME…]

PYTHON is an interpreter with torch. The programs are those of tests/rehearsal/programs, on two simulated devices: the
distributed ones under torchrun. A run is clean when it ends with status 0, prints what it should, writes none of the words
of an abort and leaves no process behind. Prints markdown; ``--json FILE`` keeps every run and is continued by a later call.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

PROGRAMS = {
    "ddp": ("ddp.py", "torchrun", "loss "),
    "fsdp2": ("fsdp2.py", "torchrun", "gradient norm "),
    "sync_batch_norm": ("sync_batch_norm.py", "torchrun", "rank 0: equal"),
    "data_parallel": ("data_parallel.py", "python", "finite True"),
}
ABORTS = (
    "terminate called",
    "Fatal Python error",
    "core dumped",
    "Segmentation fault",
    "SIGABRT",
    "SIGSEGV",
)


def left_behind(directory: Path) -> list[str]:
    """Processes that still belong to a run: their environment names its settings."""
    marker = f"RANKSAFE_REHEARSAL={directory}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if marker in (entry / "environ").read_bytes():
                found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except (OSError, ValueError):
            continue
    return found


def main() -> int:
    """Measure and print; 0 when every run was clean."""
    parser = argparse.ArgumentParser()
    parser.add_argument("python", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    here = Path(__file__).resolve().parents[1]
    sys.path.insert(0, str(here))
    from conftest import compiled_for, run_rehearsal

    where = compiled_for(arguments.python)
    kept: dict[str, list[dict[str, Any]]] = {}
    if arguments.json and arguments.json.exists():
        kept = json.loads(arguments.json.read_text())
    chosen = {name: one for name, one in PROGRAMS.items() if name in (arguments.names or PROGRAMS)}
    for _ in range(arguments.runs):
        for name, (program, launcher, printed) in chosen.items():
            runs = kept.setdefault(name, [])
            if len(runs) >= arguments.runs:
                continue
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            began = time.monotonic()
            with tempfile.TemporaryDirectory() as scratch:
                done = run_rehearsal(
                    where, Path(scratch), here / "programs" / program, launcher=launcher
                )
                orphans = left_behind(done.directory)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            problems = [word for word in ABORTS if word in done.stderr]
            if done.returncode != 0 or printed not in done.stdout or problems:
                problems.append(done.stderr[-1500:])
            runs.append(
                {
                    "status": done.returncode,
                    "problems": problems,
                    "orphans": orphans,
                    "seconds": time.monotonic() - began,
                    "cpu_seconds": after.ru_utime
                    + after.ru_stime
                    - before.ru_utime
                    - before.ru_stime,
                }
            )
            print(name, len(runs), done.returncode, problems, orphans, file=sys.stderr, flush=True)
            if arguments.json:
                arguments.json.write_text(json.dumps(kept))
    print(
        "| program | runs | status 0 | aborts or other words | orphans | CPU s per run |\n|---|---|---|---|---|---|"
    )
    clean = True
    for name in chosen:
        runs = kept[name]
        good = sum(run["status"] == 0 for run in runs)
        words = sum(bool(run["problems"]) for run in runs)
        orphaned = sum(bool(run["orphans"]) for run in runs)
        cpu = sum(run["cpu_seconds"] for run in runs) / len(runs)
        clean = clean and good == len(runs) and not words and not orphaned
        print(f"| {name} | {len(runs)} | {good} | {words} | {orphaned} | {cpu:.1f} |")
    return 0 if clean else 1


if __name__ == "__main__":
    sys.exit(main())
