"""See a run again that goes on without us."""

from __future__ import annotations

import threading
from pathlib import Path

from ranksafe.runs.errors import RunNotPossible
from ranksafe.runs.hosts.protocol import Conversation, Host
from ranksafe.runs.on_host import program
from ranksafe.runs.remote.mirror import sizes
from ranksafe.runs.remote.record import RemoteRun


def look(host: Host, run: RemoteRun, directory: Path) -> Conversation:
    """Follow ``run``, from where ``directory`` ends. Raises HostUnreachable."""
    request = {
        "directory": run.directory,
        "lease_seconds": run.lease_seconds,
        "have": sizes(directory),
    }
    return host.start(program("on_host.follow", "on_host.request"), request)


class Reconnection:
    """One attempt to see a run again, on a thread of its own: a dead network answers after many seconds."""

    def __init__(self, host: Host, run: RemoteRun, directory: Path) -> None:
        self.conversation: Conversation | None = None
        self.done = False
        self._abandoned = False
        self._arguments = (host, run, directory)
        threading.Thread(target=self._work, name="reconnect", daemon=True).start()

    def abandon(self) -> None:
        """Nobody waits for it any more."""
        self._abandoned = True
        if self.conversation is not None:
            self.conversation.close()

    def _work(self) -> None:
        try:
            self.conversation = look(*self._arguments)
        except RunNotPossible:
            self.conversation = None
        finally:
            self.done = True
        if self._abandoned and self.conversation is not None:
            self.conversation.close()
