"""What happened in this process, one JSON object per line, in ``rehearsal-<pid>.jsonl`` of the run's folder."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from typing import Any, Callable

from . import settings

_written: set[str] = set()
listener: Callable[[str, dict[str, Any]], None] | None = None
"""Hears of every event and its fields, also of what is not written a second time."""


def write(event: str, **fields: Any) -> None:
    """Append an event with the rank, the process and the time; never raises."""
    if listener is not None:
        listener(event, fields)
    chosen = settings.current()
    if chosen is None:
        return
    rank = os.environ.get("RANK", "")
    record = dict(fields, event=event, pid=os.getpid(), time=time.time())
    record["rank"] = int(rank) if rank.isdigit() else None
    path = os.path.join(chosen.run_directory, "rehearsal-%d.jsonl" % os.getpid())
    try:
        line = json.dumps(record, default=repr, ensure_ascii=False)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(descriptor, line.encode("utf-8", "backslashreplace") + b"\n")
        finally:
            os.close(descriptor)
    except Exception:  # a full disk is no reason to end the user's training
        pass


def modified(english: str, chinese: str, **fields: Any) -> None:
    """Note, once per process and sentence, that something runs otherwise than the script says."""
    fields["message"] = {"en": english, "zh_cn": chinese}
    if english not in _written:
        _written.add(english)
        write("modified", **fields)
    elif listener is not None:
        listener("modified", fields)


def problem(where: str, error: BaseException) -> None:
    """Note that a part of ours failed; the user's program goes on without it."""
    write("agent-problem", text="%s: %r" % (where, error))


def write_again(lines: Iterable[bytes]) -> None:
    """Write down for this process what was noted before it was forked; never raises."""
    for line in lines:
        try:
            record = json.loads(line)
        except ValueError:
            continue
        for name in ("pid", "time", "rank"):
            record.pop(name, None)
        write(**record)
