"""What every target can do. A run is: probe, prepare, start, follow, cancel, collect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ranksafe.localization import Translated
from ranksafe.runs.launch_plan import Plan
from ranksafe.runs.model import RunRequest


@dataclass(frozen=True, slots=True)
class Output:
    """A complete line of a process of the run."""

    rank: int | None
    """None: the launcher."""
    stream: str
    """``stdout``, ``stderr``, or ``jsonl``: an entry of the agent's journal."""
    text: str


class Process(Protocol):
    """A run that has been started."""

    def follow(self) -> Sequence[Output]:
        """The lines that came since the last call, in the order in which they were seen."""

    def is_over(self) -> bool:
        """Whether every process of the run has ended."""

    def cancel(self) -> None:
        """Ask for the end of every process of the run, and of nothing else; returns at once."""

    def collect(self) -> Path:
        """Bring the evidence here: the folder with the ranks' journals and outputs. Frees what the run held."""

    @property
    def status(self) -> str:
        """``exited``, ``cancelled``, ``failed-to-start``, ``lost`` (the supervisor itself died), or ``running``."""


class Target(Protocol):
    """A place where scripts can be started."""

    @property
    def name(self) -> str:
        """As users write it (``local``)."""

    def probe(self, request: RunRequest) -> Sequence[Translated]:
        """What there is and what a run there would lack, one sentence each.

        Raises RunNotPossible when no run can start.
        """

    def prepare(self, request: RunRequest, directory: Path) -> Plan:
        """Decide on the interpreter, the devices and the command.

        Raises RunNotPossible when no run can start.
        """

    def start(self, plan: Plan, directory: Path) -> Process:
        """Start the plan.

        Raises RunNotPossible when the operating system refuses.
        """

    def release(self) -> None:
        """Free what `prepare` reserved, when the run does not start after all."""
