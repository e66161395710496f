"""What may be said of an exception that no signature knows: Python's own words, and whose line raised it.

Nothing here guesses at a cause: a sentence only says in other words what the exception's type, its message and its call
chain say themselves.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

from ranksafe.localization import Translated, both
from ranksafe.runs.explain.evidence import Raised
from ranksafe.runs.explain.locate import innermost_user_frame, place_in_function
from ranksafe.runs.explain.ordinary import PYTHONS_OWN
from ranksafe.runs.explain.signatures import UNKNOWN
from ranksafe.runs.explain.signatures.signature import Known, rows_that_hold

_INSTALLED = re.compile(r"/(?:site|dist)-packages/(?P<name>[A-Za-z_][\w-]*)")
_STANDARD = re.compile(r"/[Ll]ib/(?:python3[\d.]*/)?(?P<name>[A-Za-z_]\w*)")
_WORKER, _SPAWNED = "DataLoader worker", "process "
"""How the place of an exception of another process begins."""
_SHORT = 160

_UNREADABLE = frozenset({"SyntaxError", "IndentationError", "TabError"})
_COMPILED_STACK = "\nException raised from "
"""Where torch's C++ begins to list its own frames (c10/util/Exception.cpp)."""

_OF_A_REFUSAL = frozenset({"ValueError", "TypeError", "NotImplementedError"})
"""What a library raises of its own will where it is given what it does not take."""
_LOOKED_UP = re.compile(r"(?<![\w.])(?P<table>[A-Za-z_][\w.]*)\[(?:[\"'](?P<key>[^\"']+)[\"']\])?")


def unlisted(raised: Raised, origin: Raised) -> Translated:
    """What may be said of ``raised``, which began as ``origin``; both with their frames marked."""
    known = Known(origin.frames, facts="\n".join(_facts(raised, origin)))
    told = [meaning for _, meaning in rows_that_hold("unlisted", known, origin.text)]
    return functools.reduce(both, told) if told else UNKNOWN


def _facts(raised: Raised, origin: Raised) -> Iterator[str]:
    if not raised.type:
        if raised.frames:
            yield "the log ends within its traceback"
        return
    quoted = quoted_from_worker(raised) if origin is raised else None
    yield from _missing_key(quoted or origin)
    yield from _raiser(origin, quoted)
    message = (quoted or origin).message.split(_COMPILED_STACK, 1)[0]
    lines = [line.strip() for line in message.splitlines() if any(map(str.isalnum, line))]
    if len(lines) > 1:
        # Libraries put the reason there.
        last = lines[-1]
        yield f"its message ends: {last if len(last) <= _SHORT else f'…{last[-_SHORT:]}'}"
    if ((quoted or origin).where or "").startswith(_WORKER):
        yield "in a DataLoader worker"
    elif origin is not raised and not origin.where and raised.type != origin.type:
        yield f"began as {origin.type}, became {raised.type}"


def _missing_key(origin: Raised) -> Iterator[str]:
    """The name of what the line looks the key up in, where it is only one."""
    if origin.type != "KeyError" or not origin.frames:
        return
    source = origin.frames[-1].source
    # row["category"] as an index of something else was found: its own key is another.
    tables = {
        found["table"]
        for found in _LOOKED_UP.finditer(source)
        if found["key"] in (None, origin.message.strip("'\""))
    }
    if len(tables) == 1 and not source.startswith("raise"):
        yield f"no key {origin.message} in {tables.pop()}"


def quoted_from_worker(raised: Raised) -> Raised | None:
    """What a DataLoader worker or a spawned process raised, where ``raised`` only quotes it."""
    cause = raised.cause
    return cause if cause and (cause.where or "").startswith((_WORKER, _SPAWNED)) else None


def _raiser(origin: Raised, quoted: Raised | None) -> Iterator[str]:
    """Whose line raised it: a check of the user's own, the user's line itself, or a package that it calls."""
    own = innermost_user_frame(origin.frames)
    if origin.type in _UNREADABLE:
        yield "the file is not Python"
    elif not origin.frames:
        yield f"{origin.type} without a traceback"
    elif own is None:
        if package := _package(origin.frames[-1].filename):
            yield f"{origin.type} raised by {package} ({place_in_function(origin.frames[-1])}) alone"
    elif origin.frames[-1] is not own:
        inner = (quoted.frames if quoted is not None and quoted.frames else origin.frames)[-1]
        package, place = _package(inner.filename), place_in_function(inner)
        refused = origin.type in _OF_A_REFUSAL and inner.source.startswith("raise ")
        how = "refused by" if refused else "raised within"
        yield f"{how} {package} ({place})" if package else f"raised at {place}"
    elif origin.type == "AssertionError" or own.source.startswith("assert"):
        yield "own assertion"
    elif own.source.startswith("raise"):
        yield f"{origin.type} raised by a check of its own"
    else:
        itself = PYTHONS_OWN.fullmatch(origin.type)
        yield f"{origin.type} raised {'by the line itself' if itself else 'in the line'}"


def _package(filename: str) -> str | None:
    """The installed package or the module of Python's own that a file is of."""
    path = filename.replace("\\", "/")
    for pattern in (_INSTALLED, _STANDARD):
        names = [found["name"] for found in pattern.finditer(path)]
        if names:
            return names[-1]
    return None
