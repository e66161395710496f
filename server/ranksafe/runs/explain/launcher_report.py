"""What a launcher prints about its ranks: exit codes, the one it saw fail first, the ones it stopped."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_SUMMARY = re.compile(
    r"rank\s*: (?P<rank>\d+) \(local_rank: \d+\)\s*\n.*?exitcode\s*: (?P<code>-?\d+) \(pid: (?P<pid>\d+)\)"
)
_FIRST = re.compile(r"Root Cause.*?rank\s*: (?P<rank>\d+) \(local_rank", re.DOTALL)
_FAILED = re.compile(
    r"failed \(exitcode: (?P<code>-?\d+)\) local_rank: (?P<rank>\d+) \(pid: (?P<pid>\d+)\)"
)
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


def read_launcher(text: str) -> LauncherReport:
    """The report in torchrun's, accelerate's and ``subprocess``'s words (torch 1.8 to 2.13)."""
    report = LauncherReport()
    for match in _FAILED.finditer(text):
        report.exits[int(match["rank"])] = int(match["code"])
        report.first = int(match["rank"]) if report.first is None else report.first
    for match in _SUMMARY.finditer(text):
        report.exits[int(match["rank"])] = int(match["code"])
    first = _FIRST.search(text)
    if first:
        report.first = int(first["rank"])
    report.stopped_pids = {int(match["pid"]) for match in _STOPPED.finditer(text)}
    if status := _STATUS.search(text):
        report.only_exit = int(status["code"])
    elif signal := _SIGNAL.search(text):
        report.only_exit = -int(signal["number"])
    return report
