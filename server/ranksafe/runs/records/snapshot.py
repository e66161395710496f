"""The project's own files that a run ran: the script, what it imports from the project, and what a failure names."""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ranksafe.runs.plain_files import read_json
from ranksafe.runs.records.redaction import redacted_text

FILE = "snapshot.json"
LARGEST_FILE = 256 * 1024
LARGEST_SNAPSHOT = 2 * 2**20
MOST_FILES = 300
_LARGEST_RECORD = 16 * LARGEST_SNAPSHOT
"""Every character may take several bytes as JSON writes it."""

_LIBRARY_PARTS = frozenset({"site-packages", "dist-packages"})


@dataclass(frozen=True, slots=True)
class KeptFile:
    """A file as it was when the run started."""

    path: str
    """Absolute."""
    name: str
    """As users call it: relative to the project."""
    text: str
    digest: str
    """SHA-256 of the file's bytes, before anything was blotted out."""


@dataclass(slots=True)
class Snapshot:
    """Files by absolute path."""

    files: dict[str, KeptFile] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    """Too large, too many, or changed before they could be kept."""

    def named(self) -> dict[str, KeptFile]:
        """Files by the name users know."""
        return {kept.name: kept for kept in self.files.values()}

    def lines(self, path: str) -> list[str]:
        """A file's lines; empty for one that was not kept."""
        kept = self.files.get(path)
        return [] if kept is None else kept.text.splitlines()


def take_snapshot(script: Path, roots: Sequence[Path]) -> Snapshot:
    """The script and every module it imports, directly or not, that lies below ``roots``.

    Bounded by `LARGEST_FILE`, `LARGEST_SNAPSHOT` and `MOST_FILES`. Statements that are not parsed by this Python are
    left unread, not the file.
    """
    snapshot = Snapshot()
    folders = [root.resolve() for root in roots]
    waiting = [script.absolute()]
    seen: set[Path] = set()
    while waiting:
        path = waiting.pop(0)
        if path in seen or not _is_own(path, folders):
            continue
        seen.add(path)
        kept = keep(snapshot, path, folders)
        if kept is not None:
            waiting += _imported(kept.text, path, roots)
    return snapshot


def keep(snapshot: Snapshot, path: Path, roots: Sequence[Path]) -> KeptFile | None:
    """Add a file as it is now; None where it is no file of the project, or there is no room for it."""
    if str(path) in snapshot.files:
        return snapshot.files[str(path)]
    if not _is_own(path, roots):
        return None
    try:
        size = path.stat().st_size
        total = sum(len(kept.text) for kept in snapshot.files.values())
        full = len(snapshot.files) >= MOST_FILES or total + size > LARGEST_SNAPSHOT
        if size > LARGEST_FILE or full:
            snapshot.left_out.append(_name(path, roots))
            return None
        data = path.read_bytes()
    except OSError:
        return None
    text = redacted_text(data.decode("utf-8", "replace"))
    kept = KeptFile(str(path), _name(path, roots), text, hashlib.sha256(data).hexdigest())
    snapshot.files[kept.path] = kept
    return kept


def add_unchanged(
    snapshot: Snapshot, paths: Iterable[str], roots: Sequence[Path], started: float
) -> None:
    """Add files that became known at the end of the run, unless they were written to since its start."""
    folders = [root.resolve() for root in roots]
    for name in paths:
        path = Path(name)
        if name in snapshot.files or not path.is_absolute() or not _is_own(path, folders):
            continue
        try:
            changed = path.stat().st_mtime > started
        except OSError:
            continue
        if changed:
            snapshot.left_out.append(_name(path, folders))
        else:
            keep(snapshot, path, folders)


def write_snapshot(snapshot: Snapshot, directory: Path) -> None:
    """Into the run's folder. Raises OSError."""
    value = {
        "files": [
            {"path": kept.path, "name": kept.name, "sha256": kept.digest, "text": kept.text}
            for kept in snapshot.files.values()
        ],
        "left_out": snapshot.left_out,
    }
    (directory / FILE).write_text(json.dumps(value), encoding="utf-8")


def read_snapshot(directory: Path) -> Snapshot:
    """Of a run's folder; empty where there is none."""
    try:
        value = read_json(directory / FILE, _LARGEST_RECORD)
        files = [_kept(entry) for entry in value["files"]]
        left_out = [str(name) for name in value["left_out"]]
    except (OSError, ValueError, KeyError, TypeError):
        return Snapshot()
    return Snapshot({kept.path: kept for kept in files}, left_out)


def _kept(entry: Any) -> KeptFile:
    return KeptFile(
        str(entry["path"]), str(entry["name"]), str(entry["text"]), str(entry["sha256"])
    )


def _is_own(path: Path, roots: Sequence[Path]) -> bool:
    """Below a root, links followed, and not installed there."""
    real = path.resolve()
    if not real.is_file() or not _LIBRARY_PARTS.isdisjoint(real.parts):
        return False
    return any(real.is_relative_to(root) and root != Path(root.anchor) for root in roots)


def _name(path: Path, roots: Sequence[Path]) -> str:
    """Relative to the outermost root around it."""
    real = path.resolve()
    around = [root for root in roots if real.is_relative_to(root)]
    outermost = min(around, key=lambda root: len(root.parts), default=None)
    return real.name if outermost is None else real.relative_to(outermost).as_posix()


def _imported(text: str, path: Path, roots: Sequence[Path]) -> list[Path]:
    """The files that a module's import statements may name, packages' own files included."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return []
    found: list[Path] = []
    for folder, parts in _module_names(tree, path, roots):
        at = folder
        for part in parts:
            at = at / part
            found += [at.with_suffix(".py"), at / "__init__.py"]
    return [candidate for candidate in found if candidate.is_file()]


def _module_names(
    tree: ast.Module, path: Path, roots: Sequence[Path]
) -> Iterator[tuple[Path, list[str]]]:
    """Folders and dotted names to look for in them."""
    folders = list(dict.fromkeys([path.parent, *(root.absolute() for root in roots)]))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                yield from ((folder, name.name.split(".")) for folder in folders)
        elif isinstance(node, ast.ImportFrom):
            module = node.module.split(".") if node.module else []
            places = folders
            if node.level:
                places = [path.parents[min(node.level, len(path.parents)) - 1]]
            for name in node.names:
                yield from ((place, [*module, name.name]) for place in places)
