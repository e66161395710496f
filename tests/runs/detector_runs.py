"""Ranks with the detectors switched on, started without a launcher: importing torch there would cost more than a test."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ranksafe.runs import agent
from ranksafe.runs.compared_ranks.comparisons import compare_ranks
from ranksafe.runs.explain.evidence import Evidence, load_evidence, parse_entry
from ranksafe.runs.explain.locate import UserCode
from ranksafe.runs.explain.silent import silent_failures
from ranksafe.runs.launch_plan import free_port
from ranksafe.runs.model import Failure

PROGRAMS = Path(__file__).parent / "detector_programs"
_LONGEST_SECONDS = 300.0
_TORN_DOWN = "terminate called without an active exception"
"""What the C++ runtime says where a thread of gloo still runs while the process ends (torch 2.13, rarely)."""


@dataclass(frozen=True)
class Detected:
    """What the detectors said of a run."""

    failures: list[Failure]
    evidence: Evidence
    problems: list[str]
    """What the detectors themselves met; should be nothing."""
    stderr: list[str]
    returncodes: list[int]

    @property
    def kinds(self) -> list[str]:
        """The kinds of all silent failures."""
        return [failure.kind for failure in self.failures]

    def line_of(self, kind: str) -> str:
        """The source line the failure of this kind is drawn on."""
        failure = next(each for each in self.failures if each.kind == kind)
        assert failure.filename is not None
        assert failure.line is not None
        lines = Path(failure.filename).read_text(encoding="utf-8").splitlines()
        return lines[failure.line - 1].strip()


def detect(
    python: Path,
    directory: Path,
    script: Path,
    *arguments: str,
    ranks: int = 2,
    mode: str = "all",
    steps: int | None = None,
    timeout: float = _LONGEST_SECONDS,
    environment: Mapping[str, str] | None = None,
    prefix: tuple[str, ...] = (),
) -> Detected:
    """Run ``script`` on ``ranks`` CPU ranks and compare them; a rank that hangs longer than ``timeout`` is killed.

    Where gloo aborted a rank that had ended, the run says nothing of the detectors and is repeated once.
    """
    found = _detect_once(
        python, directory, script, *arguments, ranks=ranks, mode=mode, steps=steps,
        timeout=timeout, environment=environment, prefix=prefix,
    )  # fmt: skip
    if -signal.SIGABRT in found.returncodes and any(_TORN_DOWN in text for text in found.stderr):
        found = _detect_once(
            python, directory / "again", script, *arguments, ranks=ranks, mode=mode, steps=steps,
            timeout=timeout, environment=environment, prefix=prefix,
        )  # fmt: skip
    return found


def _detect_once(
    python: Path,
    directory: Path,
    script: Path,
    *arguments: str,
    ranks: int,
    mode: str,
    steps: int | None,
    timeout: float,
    environment: Mapping[str, str] | None,
    prefix: tuple[str, ...],
) -> Detected:
    directory.mkdir(parents=True, exist_ok=True)
    shared = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(
            [str(agent.INJECT_DIRECTORY), *filter(None, [(environment or {}).get("PYTHONPATH")])]
        ),
        agent.DIRECTORY_VARIABLE: str(directory),
        agent.SCRIPT_VARIABLE: str(script),
        agent.DETECTORS_VARIABLE: mode,
        "WORLD_SIZE": str(ranks),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
        "GLOO_SOCKET_IFNAME": "lo",
        "OMP_NUM_THREADS": "1",
        "CUDA_VISIBLE_DEVICES": "",
        "ACCELERATE_USE_CPU": "true",
        "HF_HUB_OFFLINE": "1",
        **{name: value for name, value in (environment or {}).items() if name != "PYTHONPATH"},
    }
    if steps is not None:
        shared[agent.STEPS_VARIABLE] = str(steps)
    processes = [
        subprocess.Popen(
            [*prefix, str(python), str(script), *arguments],
            cwd=directory,
            env={**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdin=subprocess.DEVNULL,
        )
        for rank in range(ranks)
    ]
    hung = False
    for process in processes:
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            hung, timeout = True, 0.0
    for process in processes:
        process.kill()
        process.wait()
    codes = [process.returncode for process in processes]
    evidence = load_evidence(directory, ranks)
    evidence.status = "timed-out" if hung else "exited"
    evidence.returncode = max(map(abs, codes))
    compare_ranks(directory, evidence)
    failures = silent_failures(
        evidence, UserCode([script.parent, directory]), "en", root_cause=True
    )
    return Detected(failures, evidence, _problems(directory), _stderr(directory), codes)


def _problems(directory: Path) -> list[str]:
    found = []
    for path in sorted(directory.glob("rank*.jsonl")):
        entries = map(parse_entry, path.read_text(encoding="utf-8").splitlines())
        found += [str(entry["text"]) for entry in entries if entry.get("event") == "agent-problem"]
    return found


def _stderr(directory: Path) -> list[str]:
    return [
        path.read_text(encoding="utf-8")[-3000:] for path in sorted(directory.glob("rank*.stderr"))
    ]
