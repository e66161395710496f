"""What every target can do. A run is: probe, prepare, start, follow, cancel, collect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from ranksafe.localization import Translated
from ranksafe.runs.launch_plan import Plan
from ranksafe.runs.model import RunRequest


def _silent(_text: Translated) -> None:
    """Nobody wants to know."""


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Listener:
    """Who waits for a run to start: hears of the progress, may cancel, can be asked."""

    say: Callable[[Translated], None] = _silent
    """Progress, for people."""
    should_stop: Callable[[], bool] = _never
    """Asked about ten times a second where a preparation takes long."""
    agrees: Callable[[Translated], bool] | None = None
    """Puts a yes-or-no question to the user; None: nobody can be asked."""


@dataclass(frozen=True, slots=True)
class Output:
    """What a process of the run has written: whole lines, separated by line ends, or a piece of a very long one."""

    rank: int | None
    """None: the launcher."""
    stream: str
    """``stdout``, ``stderr``, ``jsonl``: an entry of the agent's journal, or ``status``: of the run, for people."""
    text: str
    """Bytes that are no UTF-8 are in it as surrogates (PEP 383)."""
    goes_on: bool = False
    """Whether the last line goes on in the stream's next output."""

    def is_continued_by(self, other: Output) -> bool:
        """Whether what this one left open goes on with ``other``."""
        return self.goes_on and (self.rank, self.stream) == (other.rank, other.stream)


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


@runtime_checkable
class Reporting(Protocol):
    """A process whose end is known without its files."""

    @property
    def returncode(self) -> int | None:
        """The launcher's exit status; None: not known, or not yet."""


@runtime_checkable
class GoesOn(Protocol):
    """A process that belongs to a scheduler: it goes on when the editor is closed, and is found again."""

    def detach(self) -> None:
        """Look at it no more."""


@runtime_checkable
class OutOfReach(Protocol):
    """A process on another machine, which may have ended while nobody looked, or while the line was down."""

    @property
    def is_seen_to_go_on(self) -> bool:
        """Whether the machine has said so, and can be talked to."""


class Target(Protocol):
    """A place where scripts can be started."""

    @property
    def name(self) -> str:
        """As users write it (``local``)."""

    def probe(self, request: RunRequest, listener: Listener) -> Sequence[Translated]:
        """What there is and what a run there would lack, one sentence each.

        Raises RunNotPossible when no run can start, RunCancelled when the listener does not want to know any more.
        """

    def prepare(self, request: RunRequest, directory: Path, listener: Listener) -> Plan:
        """Decide on the interpreter, the devices and the command; may take minutes the first time.

        Raises RunNotPossible when no run can start, RunCancelled when the listener does not want it any more.
        """

    def start(self, plan: Plan, directory: Path) -> Process:
        """Start the plan.

        Raises RunNotPossible when the operating system refuses.
        """

    def release(self) -> None:
        """Free what `prepare` reserved, when the run does not start after all."""
