"""A run's own tree of the project: a later submission changes no file under a job that waits or runs.

Small files are copied, so that neither an editor there nor another run writes into them; large ones are links to those
of the project's folder, which are only ever replaced, never written to. What earlier runs wrote into the project's
folder (data, checkpoints) is seen through links, and what a run writes is moved there when it is over.

As a program (``tree.py RUN``, in the run's folder): the latter; complains in a line.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

NOTE = "tree.json"
"""In the run's folder: {"base", "tree", "files": names of the project's own}."""
_COPIED_BYTES = 256 * 1024
_MOST_LINKS = 2000
"""In a folder that an earlier run wrote; one with more is a link itself."""
_NOBODYS = frozenset({"__pycache__"})
"""Made anew by every run: one that two versions of a text share is not safe (its time has whole seconds)."""
_PART = ".ranksafe-part"


class Changed(Exception):
    """The project's folder holds another submission by now."""


def make(directory: str, base: str, tree: str, files: dict[str, list[Any]]) -> None:
    """Make ``tree``, in the run's folder ``directory``, of the project that was sent to ``base``.

    ``files``: by name size, time in ns, mode and where a link leads, as they were sent. Raises Changed, and OSError.
    """
    with _locked(base):
        # A file that changed while it was sent is not as it was listed; that is nobody else's doing.
        if _manifest(base) != files:
            raise Changed
        os.makedirs(tree, mode=0o700)
        for name, entry in files.items():
            source, place = os.path.join(base, name), os.path.join(tree, name)
            os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)
            if entry[3] is not None:
                os.symlink(entry[3], place)
            elif entry[0] > _COPIED_BYTES:
                _link(source, place)
            else:
                shutil.copy2(source, place)
        for name in _others(base, files):
            _show(os.path.join(base, name), os.path.join(tree, name))
    with open(os.path.join(directory, NOTE), "w", encoding="utf-8") as file:
        json.dump({"base": base, "tree": tree, "files": list(files)}, file)


def give_back(directory: str) -> None:
    """Move what a run that is over wrote in its tree to the project's folder; the newer of two files stays.

    Does nothing for a run without a tree. Raises OSError.
    """
    try:
        with open(os.path.join(directory, NOTE), encoding="utf-8") as file:
            note = json.load(file)
    except FileNotFoundError:
        return
    base, tree = note["base"], note["tree"]
    with _locked(base):
        # A file that was sent since then is the user's.
        sent = {*note["files"], *_manifest(base)}
        for name in list(_others(tree, sent)):
            _move(os.path.join(tree, name), os.path.join(base, name))


def _show(source: str, place: str) -> None:
    """Link what earlier runs wrote; a folder of theirs is a folder here, too: ``shutil.rmtree`` refuses links."""
    if os.path.islink(source) or not os.path.isdir(source) or _has_many(source):
        os.symlink(source, place)
        return
    os.mkdir(place, mode=0o700)
    for name in os.listdir(source):
        _show(os.path.join(source, name), os.path.join(place, name))


def _has_many(folder: str) -> bool:
    """Whether links to each of its files would take long: data sets, environments."""
    found = 0
    for _, folders, names in os.walk(folder):
        found += len(folders) + len(names)
        if found > _MOST_LINKS:
            return True
    return False


def _move(ours: str, place: str) -> None:
    if os.path.islink(ours) and os.readlink(ours) == place:
        return
    if os.path.isdir(ours) and not os.path.islink(ours):
        if os.path.isdir(place):
            for name in os.listdir(ours):
                _move(os.path.join(ours, name), os.path.join(place, name))
            return
    elif os.path.isdir(place) and not os.path.islink(place):
        return
    if os.path.lexists(place) and os.lstat(place).st_mtime_ns > os.lstat(ours).st_mtime_ns:
        return
    os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)
    os.replace(ours, place)
    # Names that the run printed go on leading there.
    os.symlink(place, ours)


def _others(folder: str, files: Iterable[str]) -> Iterator[str]:
    """What lies in ``folder`` besides ``files``: the uppermost names that have none of them below."""
    known, above = set(files), set()
    for name in known:
        while "/" in name:
            name = name.rpartition("/")[0]
            above.add(name)
    waiting = [""]
    while waiting:
        below = waiting.pop()
        for entry in os.listdir(os.path.join(folder, below)):
            name = f"{below}/{entry}" if below else entry
            if name in known or entry in _NOBODYS or entry.endswith(_PART):
                continue
            path = os.path.join(folder, name)
            if name in above and os.path.isdir(path) and not os.path.islink(path):
                waiting.append(name)
            else:
                yield name


def _link(source: str, place: str) -> None:
    try:
        os.link(source, place)
    except OSError:
        # Some file systems have no links, or only so many.
        shutil.copy2(source, place)


def _manifest(base: str) -> dict[str, list[Any]]:
    """What was sent last, as `ranksafe.runs.on_host.receive` notes it."""
    try:
        with open(os.path.join(os.path.dirname(base), "manifest.json"), encoding="utf-8") as file:
            return dict(json.load(file))
    except (OSError, ValueError):
        return {}


@contextmanager
def _locked(base: str) -> Iterator[None]:
    """The lock that `ranksafe.runs.on_host.receive` holds while it changes the project's folder."""
    lock = os.open(os.path.dirname(base) + ".lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def main() -> None:
    """Give back what the run wrote; says so where that fails."""
    try:
        give_back(sys.argv[1])
    except (OSError, ValueError, KeyError) as error:
        sys.exit(f"ranksafe: what the run wrote stays in {sys.argv[1]}: {error}")


if __name__ == "__main__":
    main()
