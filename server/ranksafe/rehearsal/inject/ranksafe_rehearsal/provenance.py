"""What the rehearsal refused, or put in the place of something else, with the lines of the user's script that met it.

Every entry goes into the journal as well. What was handed to the script is remembered, so that a failure can be asked
whether it holds something of ours (``touched``). Nothing here raises, and everything is bounded.
"""

from __future__ import annotations

import contextlib
import os
import sys
import sysconfig
import time
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

from . import journal

REFUSALS = frozenset({"network", "terminal", "limit", "unavailable"})
"""Kinds of entries that gave the script nothing; all others gave it something else than it asked for."""
BEGUN = time.time() - 2.0
"""When this process began, by the clock of the files, which is coarser."""
_EVENTS = frozenset({"modified", "limit", "unavailable"})
_KINDS = frozenset(
    {
        *REFUSALS,
        *("dataset", "model", "adapter", "tokenizer", "processor", "metric", "tracker", "hub"),
        *("pictures", "library", "short-epoch", "batch"),
    }
)
"""What may change a value that the script computes with; kernels that are replaced by equal ones do not."""
_MOST_ENTRIES = 300
_MOST_OBJECTS = 20_000
_MOST_PLACES = 8
_DEEPEST = 200
_INSTALLED = ("site-packages", "dist-packages", "ranksafe_agent", "ranksafe_rehearsal")
_LIBRARY = tuple(
    {os.path.dirname(os.__file__) + os.sep, sysconfig.get_paths()["platstdlib"] + os.sep}
)


class Place(NamedTuple):
    """A line of the user's that was being executed."""

    file: str
    line: int


class Entry(NamedTuple):
    """One thing that was refused or replaced, and where the script met it, innermost line first."""

    number: int
    kind: str
    what: str
    message: dict[str, str]
    places: tuple[Place, ...]


_entries: dict[tuple[str, str, tuple[Place, ...]], Entry] = {}
_objects: dict[int, tuple[Any, Entry]] = {}
_kept: list[Any] = []
_recognisers: list[tuple[str, Callable[[Any], bool]]] = []
_user_files: dict[str, bool] = {}
_installations: dict[str, bool] = {}


def install(_settings: Any = None) -> None:
    """Hear of everything that the journal is told."""
    journal.listener = _heard


def _heard(event: str, fields: dict[str, Any]) -> None:
    if event in _EVENTS:
        kind = fields.get("object", fields.get("kind") if event == "modified" else event)
        what = fields.get("what") or fields.get("name") or ""
        if kind in _KINDS:
            met(str(kind), str(what), fields["message"])


def met(kind: str, what: str, message: dict[str, str]) -> None:
    """Note that the script met this now; the first time at a place, in the journal, too."""
    try:
        places = _places()
        if places is None or len(_entries) >= _MOST_ENTRIES:
            return
        key = (kind, what, places)
        if key in _entries:
            return
        _entries[key] = entry = Entry(len(_entries), kind, what, message, places)
        journal.write("provenance", **as_data(entry))
    except Exception as problem:
        journal.problem("provenance", problem)


def made(thing: Any, kind: str) -> Any:
    """Remember ``thing`` as what the latest entry of this kind handed out; returns it."""
    entry = latest(kind)
    if entry is not None and len(_objects) < _MOST_OBJECTS:
        try:
            _objects[id(thing)] = (weakref.ref(thing), entry)
        except TypeError:  # kept alive, so that its identity stays its own
            _kept.append(thing)
            _objects[id(thing)] = (lambda: thing, entry)
    return thing


def recognise(kind: str, is_ours: Callable[[Any], bool]) -> None:
    """Know what the script derives from an entry's object by a mark that it carries on."""
    _recognisers.append((kind, is_ours))


def of(thing: Any) -> Entry | None:
    """The entry that ``thing`` came of, if it is ours."""
    known = _objects.get(id(thing))
    if known is not None and known[0]() is thing:
        return known[1]
    return next((latest(kind) for kind, is_ours in _recognisers if is_ours(thing)), None)


def entries() -> list[Entry]:
    """All of this process, in the order in which they were met."""
    return list(_entries.values())


def latest(kind: str) -> Entry | None:
    """The entry of this kind that was met last."""
    return next((entry for entry in reversed(entries()) if entry.kind == kind), None)


def as_data(entry: Entry) -> dict[str, Any]:
    """For the journal."""
    data = entry._asdict()
    data["places"] = [place._asdict() for place in entry.places]
    return data


def is_user_file(filename: str) -> bool:
    """Whether the file is neither installed, nor of the standard library, nor ours."""
    known = _user_files.get(filename)
    if known is None:
        path = os.path.abspath(filename)
        known = not (
            filename.startswith("<")
            or path.startswith(_LIBRARY)
            or any(part in _INSTALLED for part in path.split(os.sep))
            or _is_beside_metadata(path)
        )
        _user_files[filename] = known
    return known


def _is_beside_metadata(path: str) -> bool:
    """Whether pip put it into a folder of its own (``--target``): what it installs has its metadata beside it."""
    script, *others = sys.path or [""]
    for folder in others:
        if folder != script and path.startswith(os.path.join(folder, "")):
            known = _installations.get(folder)
            if known is None:
                with contextlib.suppress(OSError):
                    known = any(name.endswith(".dist-info") for name in os.listdir(folder))
                _installations[folder] = known = bool(known)
            if known:
                return True
    return False


def _places() -> tuple[Place, ...] | None:
    """The user's lines on the stack, innermost first; None where a library only looks what it can import."""
    found: list[Place] = []
    imported = False
    frame = sys._getframe(2)
    for _ in range(_DEEPEST):
        if frame is None or len(found) >= _MOST_PLACES:
            break
        name = frame.f_code.co_filename
        if is_user_file(name):
            found.append(Place(name, frame.f_lineno or 0))
        elif not found and imported and not name.startswith("<frozen") and not _is_ours(name):
            return None
        imported = imported or name.startswith("<frozen importlib")
        frame = frame.f_back  # type: ignore[assignment]
    return tuple(found)


def _is_ours(filename: str) -> bool:
    return "ranksafe_rehearsal" in filename.split(os.sep)
