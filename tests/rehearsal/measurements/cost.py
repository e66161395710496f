"""What a rehearsal costs against the same script on plain CPU ranks with gloo.

    PYTHONPATH=server:rules python tests/rehearsal/measurements/cost.py PYTHON [--devices 2] [--repeat 3] [--json FILE]

PYTHON is an interpreter with torch. The program is tests/rehearsal/programs/measured_training.py under torchrun, with one
compute thread per rank. CPU seconds are those of all processes; other work on the machine disturbs wall times more than
CPU times. Prints markdown; every number is the median of the repetitions.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

_TOUCH = "import torch; torch.zeros(1, device={!r}); torch.ones(2, device={!r}).sum()"


def measured(action: Callable[[], str]) -> tuple[str, float, float]:
    """What ``action`` printed, and its CPU and wall seconds."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    printed = action()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return printed, cpu, time.monotonic() - began


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("python", type=Path)
    parser.add_argument("--devices", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    here = Path(__file__).resolve().parents[1]
    sys.path.insert(0, str(here))
    from conftest import compiled_for, run_rehearsal

    where = compiled_for(arguments.python)
    program = here / "programs" / "measured_training.py"
    plain = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    plain.pop("PYTHONPATH", None)

    def rehearsed(script: Path | str, *words: str, launcher: str = "torchrun") -> str:
        with tempfile.TemporaryDirectory() as scratch:
            done = run_rehearsal(
                where, Path(scratch), script, *words, devices=arguments.devices, launcher=launcher
            )
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    def on_cpus(*command: str) -> str:
        done = subprocess.run(
            [str(arguments.python), *command], env=plain, capture_output=True, text=True, check=True
        )
        return done.stdout

    torchrun = (
        "-m",
        "torch.distributed.run",
        "--standalone",
        f"--nproc_per_node={arguments.devices}",
    )
    kinds: dict[str, Callable[[], str]] = {
        "import torch and one operator, plain": lambda: on_cpus("-c", _TOUCH.format("cpu", "cpu")),
        "import torch and one operator, simulated": lambda: rehearsed(
            _TOUCH.format("cuda", "cuda"), launcher="python"
        ),
    }
    for size in ("small", "large"):
        kinds[f"{size} model, CPU ranks"] = lambda size=size: on_cpus(  # type: ignore[misc]
            *torchrun, str(program), "cpu", size
        )
        kinds[f"{size} model, simulated"] = lambda size=size: rehearsed(program, "cuda", size)  # type: ignore[misc]
    rows = {}
    for name, action in kinds.items():
        runs = [measured(action) for _ in range(arguments.repeat)]
        ranks = [
            json.loads(line) for run in runs for line in run[0].splitlines() if line.startswith("{")
        ]
        rows[name] = {
            "cpu_seconds": statistics.median(run[1] for run in runs),
            "wall_seconds": statistics.median(run[2] for run in runs),
            **{
                key: statistics.median(rank[key] for rank in ranks)
                for key in (ranks[0] if ranks else {})
            },
        }
        print(name, rows[name], file=sys.stderr, flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))
    print(
        "| what | CPU s | wall s | CPU ms per step and rank | peak MB per rank |\n|---|---|---|---|---|"
    )
    for name, row in rows.items():
        step = f"{row['step_cpu_seconds'] * 1000:.1f}" if "step_cpu_seconds" in row else ""
        memory = f"{row['peak_megabytes']:.0f}" if "peak_megabytes" in row else ""
        print(
            f"| {name} | {row['cpu_seconds']:.1f} | {row['wall_seconds']:.1f} | {step} | {memory} |"
        )
    for size in ("small", "large"):
        one, other = rows[f"{size} model, simulated"], rows[f"{size} model, CPU ranks"]
        ratios = {
            key: one[key] / other[key]
            for key in ("cpu_seconds", "wall_seconds", "step_cpu_seconds")
        }
        print(
            f"\n{size} model ({one['parameters'] / 1e6:.1f} M parameters): {ratios['cpu_seconds']:.2f} times the CPU "
            f"seconds, {ratios['wall_seconds']:.2f} times the wall time, {ratios['step_cpu_seconds']:.2f} per step"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
