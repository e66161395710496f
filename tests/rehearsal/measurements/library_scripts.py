"""The multi-GPU test scripts that accelerate ships inside its wheel, on 2 and 4 simulated devices.

    PYTHONPATH=server:rules python tests/rehearsal/measurements/library_scripts.py PYTHON [--devices 2 4] [NAME…]

PYTHON is an interpreter with torch and accelerate. Each script is started as accelerate's own tests start it
(torchrun with one rank per device, or plain python), unchanged. Prints markdown; ``--json FILE`` keeps the results.
Outcomes: passed, failed (with the last line of the traceback), limit (of the simulation), package (a package that the
script imports is not installed), network (it wants a model or dataset that is not on this machine), time.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

LONGEST_SECONDS = 420.0
SCRIPTS: dict[str, tuple[str, ...]] = {
    "test_script.py": (),
    "test_ops.py": (),
    "test_sync.py": (),
    "test_distributed_data_loop.py": (),
    "test_ddp_comm_hook.py": (),
    "test_merge_weights.py": (),
    "test_cli.py": (),
    "test_notebook.py": (),
    "external_deps/test_metrics.py": (),
    "external_deps/test_pippy.py": (),
    "external_deps/test_checkpointing.py": ("--output_dir", "out", "--partial_train_epoch", "1"),
    "external_deps/test_performance.py": ("--output_dir", "out", "--performance_lower_bound", "0"),
    "external_deps/test_peak_memory_usage.py": (
        "--output_dir",
        "out",
        "--n_train",
        "8",
        "--n_val",
        "4",
    ),
}
"""Arguments are those without which a script does not start."""
STARTED_BY_PYTHON = ("test_notebook.py",)
"""Scripts that start their ranks themselves."""
NOT_FOR_NCCL = (
    "test_ds_alst_ulysses_sp.py",
    "test_ds_multiple_model.py",
    "test_zero3_integration.py",
)
"""Scripts for DeepSpeed, which needs its own compiled kernels."""
_LIMIT = "ranksafe simulation limit: "
_PACKAGE = re.compile(
    r"ModuleNotFoundError: No module named '([^']+)'|requires the ([\w-]+) (?:library|package)|is not available\. Please "
    r"install ([\w-]+)"
)
_NETWORK = re.compile(
    r"Couldn't reach|ConnectionError|LocalEntryNotFoundError|OfflineModeIsEnabled|couldn't connect to|"
    r"Failed to resolve|Name or service not known|offline mode|Network is unreachable|Can't load"
)


@dataclass(frozen=True)
class Result:
    """How one script ended."""

    script: str
    devices: int
    outcome: str
    note: str
    seconds: float


def judge(returncode: int, stderr: str, limits: int) -> tuple[str, str]:
    """Outcome and note of a finished script."""
    if returncode == 0:
        return "passed", ""
    if _LIMIT in stderr or limits:
        return "limit", stderr.partition(_LIMIT)[2].partition("\n")[0]
    package = _PACKAGE.search(stderr)
    if package is not None:
        return "package", next(name for name in package.groups() if name)
    network = _NETWORK.search(stderr)
    if network is not None:
        return "network", network.group(0)
    errors = [
        line
        for line in stderr.splitlines()
        if re.search(r"^(\[rank\d\]: )?\w[\w.]*(Error|Exception)\b", line)
    ]
    return "failed", errors[0] if errors else f"exit status {returncode}"


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("python", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--devices", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--packages", default="")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from conftest import AGENT, INJECTED, compiled_for, run_rehearsal

    where = compiled_for(arguments.python)
    found = subprocess.run(
        [
            str(arguments.python),
            "-c",
            "import accelerate.test_utils; print(*accelerate.test_utils.__path__)",
        ],
        check=True,
        capture_output=True,
        text=True,
    )
    folder = Path(found.stdout.split()[-1]) / "scripts"
    results: list[Result] = []
    for name, options in SCRIPTS.items():
        if arguments.names and not any(one in name for one in arguments.names):
            continue
        for devices in arguments.devices:
            began = time.monotonic()
            with tempfile.TemporaryDirectory() as scratch:
                try:
                    done = run_rehearsal(
                        where,
                        Path(scratch),
                        folder / name,
                        *options,
                        devices=devices,
                        launcher="python" if name in STARTED_BY_PYTHON else "torchrun",
                        environment={
                            "ACCELERATE_NUM_PROCESSES": str(devices),
                            "PYTHONPATH": os.pathsep.join(
                                [str(AGENT), str(INJECTED), arguments.packages]
                            ),
                        },
                        timeout=LONGEST_SECONDS,
                    )
                    limits = len(done.events("limit"))
                    outcome, note = judge(done.returncode, done.stderr, limits)
                except subprocess.TimeoutExpired:
                    outcome, note = "time", f"no end within {LONGEST_SECONDS:.0f} s"
            result = Result(name, devices, outcome, note[:200], round(time.monotonic() - began, 1))
            results.append(result)
            print(asdict(result), file=sys.stderr, flush=True)
            if arguments.json:
                arguments.json.write_text(json.dumps([asdict(one) for one in results], indent=1))
    print("| script | devices | outcome | note |\n|---|---|---|---|")
    for result in results:
        note = result.note.replace("|", "\\|")
        print(f"| {result.script} | {result.devices} | {result.outcome} | {note} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
