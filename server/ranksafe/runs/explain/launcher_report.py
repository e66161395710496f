"""What a launcher prints about its ranks: exit codes, the one it saw fail first, the ones it stopped."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from ranksafe.runs.explain.slurm_tasks import exited_tasks

_SUMMARY = re.compile(
    r"rank\s*: (?P<rank>\d+) \(local_rank: (?P<local>\d+)\)\s*\n.*?exitcode\s*: (?P<code>-?\d+) \(pid: (?P<pid>\d+)\)"
)
_FIRST = re.compile(
    r"Root Cause \(first observed failure\):\s*\n\s*\[\d+\]:\s*\n\s*time\s*: (?P<time>\S+)\s*\n"
    r"(?:.*\n){0,2}?\s*rank\s*: (?P<rank>\d+) \(local_rank"
)
_FAILED = re.compile(
    r"failed \(exitcode: (?P<code>-?\d+)\) local_rank: (?P<rank>\d+) \(pid: (?P<pid>\d+)\)"
)
_DEEPSPEED = re.compile(
    r"\[launch\.py:\d+:sigkill_handler\] \[(?=(?P<first>(?:(?!\[launch\.py).)*?'--local_rank=(?P<last>\d+)'))"
    r"(?P=first).*?exits with return code = (?P<code>-?\d+)"
)
_ONE_OF_SEVERAL = re.compile(
    r"CalledProcessError: Command '?\[(?=(?P<first>(?:(?!Command ).)*?'--local[-_]rank=(?P<last>\d+)'))"
    r"(?P=first)(?:(?!Command ).)*?"
    r"(?:died with <Signals\.\w+: (?P<signal>\d+)>|returned non-zero exit status (?P<code>\d+))"
)
"""torch.distributed.launch before torch 1.9 and DeepSpeed before 0.6 raise it with the command of the process that
they started ``last`` (their loops' variable), whichever failed; so does what DeepSpeed's ``launch.py`` logs."""
_LIGHTNING = re.compile(
    r"\[rank: (?P<rank>\d+)\] Child process with PID (?P<pid>\d+) terminated with code (?P<code>-?\d+)"
)
_PLAINLY = re.compile(
    r"^(?:\[[^\]\n]{1,40}\] ?|\S{1,40} )?(?:rank|process|worker|local[_ ]rank)[ :=#]*(?P<rank>\d+)\b[^\n]{0,60}?"
    r"(?:\b(?:exited|terminated|died|failed|ended|finished)\b[^\n]{0,20}?(?:code|status|with)|\breturned)[ :=]+"
    r"(?P<code>-?\d+)\s*\.?$",
    re.MULTILINE | re.IGNORECASE,
)
"""A launcher of the user's own, in words that nobody could mean otherwise."""
_SPAWNED = re.compile(
    r"ProcessExitedException: process (?P<rank>\d+) terminated with "
    r"(?:exit code (?P<code>\d+)|signal (?P<signal>SIG\w+))"
)
"""torch 2.13.0, torch/multiprocessing/spawn.py."""
_MPIRUN = re.compile(
    r"(?:mpirun|mpiexec|orterun|prterun) noticed that process rank (?P<rank>\d+) with PID \d+ on node \S+ exited on "
    r"signal (?P<signal>\d+)"
)
"""Open MPI 1.6 to 5."""
_OF_THE_FIRST = (_LIGHTNING, _DEEPSPEED, _ONE_OF_SEVERAL, _MPIRUN)
"""Of launchers that tell of the rank whose end they saw first."""
_IN_ANY_ORDER = (_PLAINLY, _SPAWNED)
LAUNCHER_ERRORS: Final = frozenset({"ChildFailedError", "CalledProcessError"})
"""What launchers raise when a rank has failed."""
UNKNOWN_RANK: Final = -1_000_000
"""Of a process whose rank nothing tells."""
_SHELL = 128
_SIGNALS = frozenset(number.value for number in signal.Signals)
_STATUS = re.compile(r"returned non-zero exit status (?P<code>\d+)\.")
_SIGNAL = re.compile(r"died with <Signals\.\w+: (?P<number>\d+)>")
_STOPPED = re.compile(r"Sending process (?P<pid>\d+) closing signal")


@dataclass(slots=True)
class LauncherReport:
    """Facts of a launcher's output. Exit codes below zero are signals."""

    exits: dict[int, int] = field(default_factory=dict)
    first: int | None = None
    stopped_pids: set[int] = field(default_factory=set)
    only_exit: int | None = None
    """The exit code of the only process, from a launcher that starts just one."""
    pids: dict[int, int] = field(default_factory=dict)
    """Of the ranks whose exit is known."""
    local_ranks: dict[int, int] = field(default_factory=dict)
    """The number of each rank on its machine."""


def read_launcher(text: str) -> LauncherReport:
    """The report in torchrun's, accelerate's, DeepSpeed's, Lightning's and ``subprocess``'s words (torch 1.8 to 2.13).

    With several machines each has a launcher, and each names a root cause of its own: the earliest counts.
    """
    report = LauncherReport()
    _read_torchrun(report, text)
    for rank, code in (*_ends(text, _OF_THE_FIRST), *exited_tasks(text)):
        report.exits.setdefault(rank, _of_shell(code))
        if rank >= 0 and report.first is None:
            report.first = rank
    for rank, code in _ends(text, _IN_ANY_ORDER):
        report.exits.setdefault(rank, _of_shell(code))
    if causes := [(match["time"], int(match["rank"])) for match in _FIRST.finditer(text)]:
        report.first = min(causes)[1]
    report.stopped_pids = {int(match["pid"]) for match in _STOPPED.finditer(text)}
    if status := _STATUS.search(text):
        report.only_exit = int(status["code"])
    elif died := _SIGNAL.search(text):
        report.only_exit = -int(died["number"])
    return report


def _read_torchrun(report: LauncherReport, text: str) -> None:
    for match in _SUMMARY.finditer(text):
        rank = int(match["rank"])
        report.exits[rank], report.pids[rank] = int(match["code"]), int(match["pid"])
        report.local_ranks[rank] = int(match["local"])
    summarised = set(report.pids.values())
    for match in _FAILED.finditer(text):
        # The line knows the rank on its machine only; the summary that follows it, the real one.
        if int(match["pid"]) not in summarised:
            report.exits[int(match["rank"])] = int(match["code"])
            report.pids[int(match["rank"])] = int(match["pid"])
            report.first = int(match["rank"]) if report.first is None else report.first


def _ends(text: str, patterns: Iterable[re.Pattern[str]]) -> Iterator[tuple[int, int]]:
    """Rank and exit code of each that failed; where the process that was started last is named, it is the one if it is
    the only one."""
    for pattern in patterns:
        for found in pattern.finditer(text):
            groups = found.groupdict()
            rank = int(groups.get("last") or groups.get("rank") or 0)
            number = UNKNOWN_RANK if groups.get("last") and rank > 0 else rank
            code = _of_signal(groups.get("signal")) or int(groups.get("code") or 0)
            if code:
                yield number, code


def _of_signal(signal_: str | None) -> int:
    """Below zero, by its number or name; 0 where there was none."""
    if signal_ is None:
        return 0
    return -int(signal_) if signal_.isdigit() else -getattr(signal, signal_, 0)


def _of_shell(status: int) -> int:
    """A shell tells of a process that signal N ended as 128 + N (POSIX.1, "Exit Status for Commands")."""
    return _SHELL - status if status - _SHELL in _SIGNALS else status
