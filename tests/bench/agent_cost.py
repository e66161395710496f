"""What the agent costs a training loop of small steps on the CPU, as a ratio measured in one run.

    python tests/bench/agent_cost.py

Two ranks make 1200 steps with the agent around torch's functions and 1200 without, in turns of ten, so that the machine's
mood cancels out; the heartbeat, which comes once a second, is measured by itself. RANKSAFE_TEST_TORCH_PYTHON names the
Python that has torch.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from ranksafe.runs import agent
from ranksafe.runs.launch_plan import free_port

LIMIT_PERCENT = 3.0
RANKS = 2
STEPS_PER_BLOCK = 10
_PROGRAM = Path(__file__).parent / "small_steps.py"


def main() -> int:
    """Measure and print; 0 within the limit."""
    told = _measure()
    with_agent, bare = (
        _undisturbed([pair[index] for rank in told for pair in rank["blocks"]]) / STEPS_PER_BLOCK
        for index in (0, 1)
    )
    added, step = with_agent - bare, bare
    # At most one second in each second is computed: so much of it goes to the heartbeat.
    beat = statistics.median(each for rank in told for each in rank["beats"])
    percent = 100 * (added / step + beat)
    print(
        f"a step: {step * 1e6:.0f} us, the agent in it: {added * 1e6:+.1f} us ({100 * added / step:+.2f} %)"
    )
    print(f"a heartbeat: {beat * 1e3:.2f} ms each second ({100 * beat:.2f} %)")
    print(f"agent: {percent:+.2f} % (at most {LIMIT_PERCENT} %)")
    return 0 if percent <= LIMIT_PERCENT else 1


def _undisturbed(seconds: list[float]) -> float:
    """The lower quartile: what other programs do to caches only ever adds."""
    return statistics.quantiles(seconds, n=4)[0]


def _measure() -> list[dict[str, Any]]:
    """Processor seconds of each rank: blocks (with, without) and beats."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ,
            "WORLD_SIZE": str(RANKS),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(free_port()),
            "GLOO_SOCKET_IFNAME": "lo",
            "OMP_NUM_THREADS": "1",
            "SMALL_STEPS_OUTPUT": folder,
            "PYTHONPATH": str(agent.INJECT_DIRECTORY),
            agent.DIRECTORY_VARIABLE: folder,
            agent.SCRIPT_VARIABLE: str(_PROGRAM),
            agent.DETECTORS_VARIABLE: "cheap",
        }
        command = [os.environ["RANKSAFE_TEST_TORCH_PYTHON"], str(_PROGRAM)]
        ranks = [
            subprocess.Popen(
                command, env={**environment, "RANK": str(rank), "LOCAL_RANK": str(rank)}
            )
            for rank in range(RANKS)
        ]
        if any(process.wait() for process in ranks):
            raise SystemExit(Path(folder, "rank0.stderr").read_text(encoding="utf-8"))
        return [
            json.loads(Path(folder, f"{rank}.json").read_text(encoding="utf-8"))
            for rank in range(RANKS)
        ]


if __name__ == "__main__":
    raise SystemExit(main())
