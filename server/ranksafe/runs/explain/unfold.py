"""Exceptions that carry another process's or replica's traceback as text, unfolded into frames.

torch wraps them with ``ExceptionWrapper`` (torch 2.13.0, ``torch/_utils.py``): "Caught KeyError in DataLoader worker
process 0.\\nOriginal Traceback (most recent call last): …"; ``torch.multiprocessing.spawn`` writes "-- Process 1
terminated with the following error:".
"""

from __future__ import annotations

import re
from dataclasses import replace

from ranksafe.runs.explain.evidence import Raised
from ranksafe.runs.explain.traceback_text import parse_tracebacks

_CAUGHT = re.compile(
    r"\ACaught (?P<type>\w+) in (?P<where>replica \d+ on device \S+?|DataLoader worker process \d+"
    r"|pin memory thread for device \S+?|.+?)\.\s*\nOriginal Traceback"
)
_SPAWNED = re.compile(r"-- Process (?P<rank>\d+) terminated with the following error:\s*(?:\n|\Z)")


def unfold(raised: Raised) -> Raised:
    """``raised`` with the quoted traceback as its cause; itself where it quotes none. Causes are unfolded too."""
    changed = replace(
        raised,
        cause=unfold(raised.cause) if raised.cause else None,
        context=unfold(raised.context) if raised.context else None,
        group=tuple(unfold(member) for member in raised.group),
    )
    match = _CAUGHT.search(raised.message) or _SPAWNED.search(raised.message)
    if match is None or changed.cause is not None:
        return changed
    quoted = parse_tracebacks(raised.message[match.start() :])
    if not quoted:
        return changed
    where = match.groupdict().get("where") or f"process {match['rank']}"
    return replace(changed, cause=_of(unfold(quoted[-1]), where))


def _of(raised: Raised, where: str) -> Raised:
    """An exception of another process, with what that was handling."""
    context = None if raised.context is None else _of(raised.context, where)
    return replace(raised, where=where, context=context)


def spawned_rank(raised: Raised) -> int | None:
    """The index of the ``mp.spawn`` process that failed, if that is what the exception tells of."""
    return announced_rank(raised.message)


def announced_rank(words: str) -> int | None:
    """The same by the words that stand above the process's own traceback."""
    match = _SPAWNED.search(words)
    return int(match["rank"]) if match else None
