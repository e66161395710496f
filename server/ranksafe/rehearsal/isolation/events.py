"""What the isolation has to say goes to ``rehearsal-isolation.jsonl`` of the run's folder, one JSON object per line.

``limit`` events have the form that the processes of a rehearsal use, too: ``kind``, ``what``, ``message``. ``ended``
says how many processes the command left behind.
"""

# Files as the kernel sees them, call by call: pathlib would only hide which calls are made.
# ruff: noqa: PTH118

from __future__ import annotations

import contextlib
import json
import os
import time

from ranksafe.localization import Translated

EVENTS_FILE = "rehearsal-isolation.jsonl"


class EventBook:
    """Appends to the run's folder; never raises, because a full disk must not keep a run from being ended."""

    def __init__(self, directory: str) -> None:
        self._path = os.path.join(directory, EVENTS_FILE)

    def limit(self, kind: str, what: str, message: Translated) -> None:
        """The simulation ends, or may go wrong, at ``kind``: host-memory, disk, file-system, isolation,
        only-read."""
        self.write("limit", kind=kind, what=what, message=_as_data(message))

    def modified(self, kind: str, message: Translated) -> None:
        """What the rehearsal did in the script's place, or otherwise than it was asked."""
        self.write("modified", kind=kind, message=_as_data(message))

    def write(self, event: str, **fields: object) -> None:
        """Append an event with the time."""
        line = json.dumps(
            {**fields, "event": event, "rank": None, "time": time.time()}, ensure_ascii=False
        )
        with contextlib.suppress(OSError):
            descriptor = os.open(
                self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600
            )
            try:
                os.write(descriptor, line.encode("utf-8", "backslashreplace") + b"\n")
            finally:
                os.close(descriptor)


def _as_data(message: Translated) -> dict[str, str]:
    return {"en": message.en, "zh_cn": message.zh_cn}
