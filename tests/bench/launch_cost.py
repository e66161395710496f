"""What `ranksafe run` costs a training loop of 200 small CPU steps against a bare `accelerate launch`, in one run.

    python tests/bench/launch_cost.py [ROUNDS]

In each round the same script is started by both, with the same arguments of the launcher, and they take turns of a few
steps: one computes, the other waits, so that both meet the machine in the same mood. The ranks measure their own loops:
processor time, which other programs disturb least, and wall time. RANKSAFE_TEST_TORCH_PYTHON names the Python that has
torch and accelerate.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from compared_tools import LANGUAGE_SERVER_PATH, ranksafe_command, torch_python
from ranksafe.runs.interpreter import inspect_interpreter
from ranksafe.runs.launch_plan import launch_command
from ranksafe.runs.model import RunRequest
from report import Figure

LIMIT_PERCENT = 3.0
ROUNDS = 4
RANKS = 2
BARE, WATCHED = "bare", "watched"
_SCRIPT = Path(__file__).parent / "launched_steps.py"


@dataclass(frozen=True)
class Start:
    """One start of the script. Seconds."""

    loops: tuple[tuple[float, float], ...]
    """Processor and wall time of each loop of each rank, in the same order for both of a round."""
    processor: float
    """Of the launcher, the ranks and ranksafe together, from start to end, waiting for its turns included."""


def measure(rounds: int = ROUNDS) -> list[Figure]:
    """The loops' processor and wall time, and all processor time, in percent more than the bare launch."""
    found = []
    for number in range(rounds):
        with tempfile.TemporaryDirectory(prefix="ranksafe-bench-") as name:
            found.append(_round(Path(name).resolve()))
        bare, watched = (sum(own for own, _ in start.loops) for start in found[-1])
        print(f"  round {number + 1}: {100 * (watched / bare - 1):+.1f} %", file=sys.stderr)
    processor = _pairs(found, 0)
    bare, watched = (sum(each[side].processor for each in found) for side in (0, 1))
    whole = f"bare {bare / rounds:.1f} s of processor time, watched {watched / rounds:.1f} s"
    return [
        _figure("agent in a loop of 200 steps, processor time", processor, LIMIT_PERCENT),
        _figure("agent in a loop of 200 steps, wall time", _pairs(found, 1), LIMIT_PERCENT),
        Figure("run from start to end", 100 * (watched / bare - 1), 100, unit="%", detail=whole),
    ]


def _round(folder: Path) -> tuple[Start, Start]:
    """Start the script in both ways and wait for both ends."""
    python = torch_python()
    shared = {
        **os.environ,
        **LANGUAGE_SERVER_PATH,
        "XDG_CACHE_HOME": str(folder / "cache"),
        "OMP_NUM_THREADS": "1",
        "ACCELERATE_USE_CPU": "true",
        "CUDA_VISIBLE_DEVICES": "",
        "STEPS_FOLDER": str(folder),
    }
    request = RunRequest(_SCRIPT, gpus=RANKS, cpu_ranks=True, launcher="accelerate")
    interpreter = inspect_interpreter(python, shared)
    plain, _ = launch_command(request, interpreter, RANKS, folder)
    options = ["--gpus", str(RANKS), "--cpu-ranks", "--launcher", "accelerate", "--python"]
    command = ranksafe_command("run", *options, str(python), str(_SCRIPT))
    started = {
        name: _start(words, {**shared, "STEPS_NAME": name, "STEPS_OTHER": other}, folder)
        for name, words, other in ((BARE, plain, WATCHED), (WATCHED, command, BARE))
    }
    ended = {}
    while started:
        pid, status, used = os.wait3(0)
        name = next(each for each, process in started.items() if process.pid == pid)
        del started[name]
        if status:
            for process in started.values():
                process.terminate()
            raise SystemExit((folder / f"{name}.log").read_text(encoding="utf-8"))
        ended[name] = Start(_loops(folder, name), used.ru_utime + used.ru_stime)
    return ended[BARE], ended[WATCHED]


def _start(
    command: Sequence[str], environment: dict[str, str], folder: Path
) -> subprocess.Popen[bytes]:
    with (folder / f"{environment['STEPS_NAME']}.log").open("wb") as log:
        return subprocess.Popen(
            command, env=environment, cwd=folder, stdout=log, stderr=subprocess.STDOUT
        )


def _loops(folder: Path, name: str) -> tuple[tuple[float, float], ...]:
    paths = [folder / f"{name}.rank{rank}.json" for rank in range(RANKS)]
    return tuple(
        (processor, wall) for path in paths for processor, wall in json.loads(path.read_text())
    )


def _pairs(found: list[tuple[Start, Start]], which: int) -> list[tuple[float, float]]:
    """Each loop of the bare launch beside the watched one that took turns with it."""
    return [
        (one[which], other[which])
        for bare, watched in found
        for one, other in zip(bare.loops, watched.loops, strict=True)
    ]


def _figure(name: str, pairs: list[tuple[float, float]], limit: float) -> Figure:
    """The lower quartiles against each other: what other programs do to a loop only ever adds."""
    bare, watched = (statistics.quantiles(side, n=4)[0] for side in zip(*pairs, strict=True))
    ratios = statistics.quantiles((100 * (other / one - 1) for one, other in pairs), n=4)
    detail = (
        f"bare {bare:.3f} s, watched {watched:.3f} s; pair by pair {ratios[1]:+.1f} %, half of them from "
        f"{ratios[0]:+.1f} to {ratios[2]:+.1f} %, {len(pairs)} pairs"
    )
    return Figure(name, 100 * (watched / bare - 1), limit, unit="%", detail=detail)


def main(words: list[str]) -> int:
    """Measure and print; 0 within the limit."""
    figures = measure(int(words[0]) if words else ROUNDS)
    print(f"load {os.getloadavg()[0]:.1f}")
    for figure in figures:
        print(f"{figure.name}: {figure.measured:+.2f} % ({figure.detail})")
    return 0 if figures[0].verdict == "met" else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
