"""What every host can do: run a small Python program there and talk with it.

Programs travel as source text and their arguments as JSON on standard input: nothing is installed on a host, and no
shell there ever reads a name of the user's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol


class Conversation(Protocol):
    """A program that runs on a host, with its standard streams."""

    def send(self, data: bytes) -> None:
        """Write to the program's standard input. Raises HostLost when nobody reads it any more."""

    def receive(self) -> bytes:
        """What it has written to its standard output since the last call; returns at once, perhaps with nothing."""

    @property
    def returncode(self) -> int | None:
        """None while it runs; 255 where the connection was lost, as OpenSSH says it."""

    @property
    def complaints(self) -> str:
        """The end of its standard error, and of what carries it (ssh's own words)."""

    def close(self) -> None:
        """End its standard input, then the conversation; what the program started for good stays."""


def never() -> bool:
    """For who does not want to stop."""
    return False


class Host(Protocol):
    """A machine: this one, or one that a connection leads to."""

    @property
    def name(self) -> str:
        """As users write it (``localhost``, an alias of ``~/.ssh/config``)."""

    def start(
        self,
        program: str,
        request: Mapping[str, Any],
        *,
        interpreter: str = "python3",
        should_stop: Callable[[], bool] = never,
    ) -> Conversation:
        """Start ``program``, Python source for CPython 3.8+ and its standard library; the first line on its standard
        input is ``request`` as JSON.

        Raises HostUnreachable when the connection is refused, by whomever, with the way out in its message, and
        RunCancelled, with nothing left here, once ``should_stop`` says so before the program runs.
        """

    def ask(
        self,
        program: str,
        request: Mapping[str, Any],
        *,
        interpreter: str = "python3",
        timeout_seconds: float = 60.0,
    ) -> Any:
        """Run ``program`` to its end; its standard output is one JSON value, which is returned.

        Raises HostUnreachable as `start`, HostLost when the connection breaks meanwhile or nothing comes in time, and
        ProgramFailed, with the end of its standard error, when the program ends badly or answers with no JSON.
        """
