"""From the death of a rank to the squiggle: how long an editor waits for the failure of a run, on this machine.

    python tests/bench/death_to_squiggle.py [REPETITIONS]

A real language server starts a script on two CPU ranks, by the command of the code lens. Rank 1 notes the time and dies
in one of several ways while rank 0 waits for it; what counts is when the diagnostic on rank 1's line reaches the client.
How long the launcher then takes to end the run is told beside it. RANKSAFE_TEST_TORCH_PYTHON names the Python that has
torch.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compared_tools import LANGUAGE_SERVER_PATH, ranksafe_command, torch_python
from lsp_driver import Server
from report import Figure

TARGET_SECONDS = 1.0
REPETITIONS = 5
DEATHS = {
    "exception": 'raise ValueError("bad batch")',
    "os._exit": "os._exit(3)",
    "SIGKILL": "os.kill(os.getpid(), signal.SIGKILL)",
}
_SCRIPT = """\
import os
import pathlib
import signal
import time

import torch
import torch.distributed as dist

ENDLESS = 10**9


def die():
    path = pathlib.Path(__file__).with_name("died")
    path.with_suffix(".new").write_text(repr(time.time()))
    path.with_suffix(".new").replace(path)
    {death}


def main():
    dist.init_process_group("gloo")
    for step in range(ENDLESS):
        if dist.get_rank() == 1 and step == 150:
            die()
        dist.all_reduce(torch.ones(8))
        time.sleep(0.01)


if __name__ == "__main__":
    main()
"""


@dataclass(frozen=True)
class Told:
    """Of one run, seconds after the death."""

    squiggle: float
    end: float
    """The run's last word."""


def measure(repetitions: int = REPETITIONS) -> list[Figure]:
    """Run every kind of death, in turns; one line of the table each."""
    told: dict[str, list[Told]] = {kind: [] for kind in DEATHS}
    with tempfile.TemporaryDirectory(prefix="ranksafe-bench-") as name:
        folder = Path(name).resolve()
        project = folder / "project"
        project.mkdir()
        environment = {**LANGUAGE_SERVER_PATH, "XDG_CACHE_HOME": str(folder / "cache")}
        options = {
            "trusted": True,
            "python": str(torch_python()),
            "stateDirectory": str(folder / "state"),
        }
        server = Server("ranksafe", ranksafe_command("lsp"), project, environment, options)
        server.initialize()
        for _ in range(repetitions):
            for kind, death in DEATHS.items():
                told[kind].append(_one(server, project, kind, death))
        server.close()
    return [_figure(kind, runs) for kind, runs in told.items()]


def _one(server: Server, project: Path, kind: str, death: str) -> Told:
    script = project / "train.py"
    text = _SCRIPT.replace("{death}", death)
    script.write_text(text, encoding="utf-8")
    died = project / "died"
    died.unlink(missing_ok=True)
    line = next(row for row, code in enumerate(text.splitlines()) if code.strip() == death)
    server.open(script, text)
    seen = len(server.notified)
    arguments = [script.as_uri(), {"cpuRanks": 2}]
    answer: dict[str, Any] = server.request(
        "workspace/executeCommand", {"command": "ranksafe.run", "arguments": arguments}
    )[1]
    if "runId" not in answer:
        raise SystemExit(f"the run did not start: {answer}")

    def causes(params: Any) -> list[dict[str, Any]]:
        """The errors that this run drew."""
        return [
            each
            for each in params["diagnostics"]
            if each["source"] == "ranksafe run"
            and each["severity"] == 1
            and each["data"]["run"] == answer["runId"]
        ]

    def is_squiggle(method: str, params: Any) -> bool:
        return method == "textDocument/publishDiagnostics" and bool(causes(params))

    shown_at, shown = server.notified_since(seen, is_squiggle)
    ended_at, _ = server.notified_since(seen, lambda method, _: method == "window/showMessage")
    # Both clocks are read at the same moment: the ranks tell seconds since the epoch.
    started = time.time() - time.perf_counter()
    death_at = float(died.read_text()) - started
    (drawn,) = causes(shown)
    # A rank that is killed leaves the line of its last heartbeat, which came up to a second before.
    if kind != "SIGKILL" and drawn["range"]["start"]["line"] != line:
        raise SystemExit(f"{kind}: drawn on another line: {drawn}")
    server.notify("textDocument/didClose", {"textDocument": {"uri": script.as_uri()}})
    told = Told(shown_at - death_at, ended_at - death_at)
    print(f"  {kind}: squiggle {told.squiggle:.2f} s, end {told.end:.2f} s", file=sys.stderr)
    return told


def _figure(kind: str, runs: list[Told]) -> Figure:
    squiggles = [run.squiggle for run in runs]
    detail = (
        f"worst {max(squiggles):.2f} s of {len(runs)}; the run's end after "
        f"{statistics.median(run.end for run in runs):.2f} s"
    )
    name = f"death to squiggle, {kind}, median"
    return Figure(name, statistics.median(squiggles), TARGET_SECONDS, unit="s", detail=detail)


def main(words: list[str]) -> int:
    """Measure and print; 0 within the target."""
    figures = measure(int(words[0]) if words else REPETITIONS)
    print(f"load {os.getloadavg()[0]:.1f}")
    for figure in figures:
        print(f"{figure.name}: {figure.measured:.2f} s ({figure.verdict}); {figure.detail}")
    return 0 if all(figure.verdict == "met" for figure in figures) else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
