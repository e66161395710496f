"""See a run again that goes on without us."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable
from pathlib import Path

from ranksafe.runs.errors import RunNotPossible
from ranksafe.runs.hosts.protocol import Conversation, Host, never
from ranksafe.runs.on_host import program
from ranksafe.runs.remote.mirror import sizes
from ranksafe.runs.remote.record import RemoteRun

_UNSEEN = "unseen.json"
"""In the run's folder here while its host is not reached."""
_FAREWELL_SECONDS = 2.0


def look(
    host: Host, run: RemoteRun, directory: Path, should_stop: Callable[[], bool] = never
) -> Conversation:
    """Follow ``run``, from where ``directory`` ends. Raises as `Host.start`."""
    request = {
        "directory": run.directory,
        "lease_seconds": run.lease_seconds,
        "have": sizes(directory),
    }
    text = program("on_host.follow", "on_host.request")
    return host.start(text, request, should_stop=should_stop)


def note_unseen(directory: Path, since: float | None) -> None:
    """The host of a run is not reached ``since`` then (seconds since 1970), or is again (None)."""
    with contextlib.suppress(OSError):
        if since is None:
            (directory / _UNSEEN).unlink(missing_ok=True)
        else:
            (directory / _UNSEEN).write_text(json.dumps({"since": since}), encoding="utf-8")


def unseen_since(directory: Path) -> float | None:
    """What `note_unseen` noted."""
    try:
        return float(json.loads((directory / _UNSEEN).read_text(encoding="utf-8"))["since"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


class Reconnection:
    """One attempt to see a run again, on a thread of its own: a dead network answers after many seconds."""

    def __init__(self, host: Host, run: RemoteRun, directory: Path) -> None:
        self.conversation: Conversation | None = None
        self.done = False
        self.refused = ""
        """Why it failed, in English: as programs say it."""
        self._abandoned = threading.Event()
        self._arguments = (host, run, directory, self._abandoned.is_set)
        self._thread = threading.Thread(target=self._work, name="reconnect", daemon=True)
        self._thread.start()

    def abandon(self) -> None:
        """Nobody waits for it any more: no process of it is left here."""
        self._abandoned.set()
        self._thread.join(_FAREWELL_SECONDS)
        if self.conversation is not None:
            self.conversation.close()

    def _work(self) -> None:
        try:
            self.conversation = look(*self._arguments)
        except RunNotPossible as error:
            self.refused = error.message.en
        finally:
            self.done = True
