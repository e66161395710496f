"""Run one program of the matrix and judge what ranksafe said of it against the header."""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass
from pathlib import Path

from ranksafe.runs.model import Failure, Outcome, RunEvent, RunRequest, RunResult
from ranksafe.runs.start import start_run

from tests.fault_matrix.header import Fault
from tests.targets.slurm_cluster import SlurmCluster

LONGEST_RUN_SECONDS = 120.0
_CONTROL_GROUPS = ("/sys/fs/cgroup/memory", "/sys/fs/cgroup")
_LEAVING_SECONDS = 5.0
_TAKE_AWAY = "take away "
_OUTCOMES = {"failed": Outcome.FAILED, "succeeded": Outcome.SUCCEEDED}


@dataclass(frozen=True, slots=True)
class Judgement:
    """What was right about one run."""

    outcome: bool
    rank: bool
    line: bool
    kind: bool
    orphans: tuple[int, ...]
    """Processes of the run that were left when it was over; those of this machine."""
    seconds: float
    simulated: bool
    """The program said that it could only simulate its fault."""
    seen: str
    """What was reported, in a line."""

    @property
    def right(self) -> bool:
        """Whether nothing is wrong."""
        return self.outcome and self.rank and self.line and self.kind and not self.orphans


def execute(
    fault: Fault, target: str, interpreter: Path | None, own: SlurmCluster | None = None
) -> Judgement:
    """Run ``fault`` once on ``target`` with two CPU ranks; ``own``: the cluster whose nodes may go down.

    Raises RunNotPossible where nothing can be started.
    """
    events: list[RunEvent] = []
    lost: list[str] = []

    def hear(event: RunEvent) -> None:
        events.append(event)
        for line in event.lines if own is not None and event.kind == "output" else ():
            if line.startswith(_TAKE_AWAY):
                lost.append(line.removeprefix(_TAKE_AWAY))
                own.lose_node(lost[-1])

    request = RunRequest(
        script=fault.program,
        target=target,
        gpus=2,
        cpu_ranks=True,
        arguments=fault.arguments,
        interpreter=interpreter,
        working_directory=fault.program.parent,
        timeout_seconds=LONGEST_RUN_SECONDS,
    )
    run = start_run(request, hear)
    try:
        result = run.wait()
    finally:
        run.cancel()
    assert result is not None
    orphans = _left_behind(run.run_id)
    for node in lost:
        assert own is not None
        own.return_node(node)
    said = [event.text for event in events if event.kind == "output"]
    return judge(fault, result, orphans, simulated=any("simulated" in text for text in said))


def judge(
    fault: Fault, result: RunResult, orphans: tuple[int, ...], *, simulated: bool
) -> Judgement:
    """Compare a result with what the header claims."""
    root = result.failures[0] if result.failures else None
    return Judgement(
        outcome=result.outcome is _OUTCOMES[fault.outcome],
        rank=_is_right_rank(fault, root),
        line=_are_right_lines(fault, result.failures),
        kind=root.kind in fault.kinds if root else not fault.kinds,
        orphans=orphans,
        seconds=result.seconds,
        simulated=simulated,
        seen=_in_a_line(result),
    )


def _is_right_rank(fault: Fault, root: Failure | None) -> bool:
    if root is None or not fault.kinds:
        return root is None and not fault.kinds
    return fault.rank in (None, root.rank)


def _are_right_lines(fault: Fault, failures: tuple[Failure, ...]) -> bool:
    """Root cause on its line; of a hang, the place where the other rank waits is among the failures, too."""
    if not fault.kinds:
        return not failures
    wanted = {fault.line, fault.waits} - {None}
    places = {failure.line for failure in failures if _is_in(fault.program, failure)}
    blamed = {failure.line for failure in failures[:1] if _is_in(fault.program, failure)}
    either = wanted if fault.rank is None else {fault.line}
    return bool(blamed & either) and wanted <= places


def _is_in(program: Path, failure: Failure) -> bool:
    return failure.filename is not None and Path(failure.filename).name == program.name


def _in_a_line(result: RunResult) -> str:
    told = [
        f"{each.kind} rank {each.rank} line {each.line}: {each.message[:100]}"
        for each in result.failures
    ]
    return f"{result.outcome.value}; " + "; ".join(told or ["nothing reported"])


def _left_behind(run_id: str) -> tuple[int, ...]:
    """Processes that still mention the run, after a moment for the kernel to take the killed ones away."""
    end = time.monotonic() + _LEAVING_SECONDS
    while (found := processes_of(run_id)) and time.monotonic() < end:
        time.sleep(0.1)
    return found


def processes_of(run_id: str) -> tuple[int, ...]:
    """Processes with the run's name in their environment or on their command line, on Linux."""
    found = []
    for entry in Path("/proc").iterdir() if Path("/proc/self").exists() else ():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            told = (entry / "environ").read_bytes() + (entry / "cmdline").read_bytes()
            if run_id.encode() in told:
                found.append(int(entry.name))
    return tuple(found)


def remove_control_groups() -> None:
    """Of the kernel's kill: the killed process could not take its group away. No run may be under way."""
    for hierarchy in _CONTROL_GROUPS:
        for group in Path(hierarchy).glob("ranksafe-fault-matrix-*"):
            with contextlib.suppress(OSError):
                group.rmdir()
