"""Failures that a log tells of, put on the files of the open folders: the log may come from another machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ranksafe.localization import Language, Translated
from ranksafe.lsp.messages import MOVED_SINCE
from ranksafe.lsp.run_findings import RunFinding, finding_of

if TYPE_CHECKING:
    from ranksafe.runs.model import Failure, Frame

_PIECE: Final = 2**20


@dataclass(frozen=True, slots=True)
class Annotations:
    """What a log gave."""

    findings: tuple[RunFinding, ...]
    elsewhere: int
    """Failures of which no line is in an open folder."""


def annotate(log: Path, folders: Sequence[Path], language: Language) -> Annotations:
    """Explain ``log`` and place what it tells of. Raises OSError when it cannot be read, or is no ordinary file."""
    from ranksafe.runs.diagnosis.follow_log import FollowedLog
    from ranksafe.source.plain_files import open_plain

    followed = FollowedLog(language)
    with open_plain(log, through_links=True) as file:
        while data := file.read(_PIECE):
            followed.feed(data)
    failures = followed.finish()
    placed = [found for each in failures if (found := placed_in(each, folders)) is not None]
    findings = [finding_of(log, log.name, failure) for failure in placed]
    return Annotations(tuple(findings), len(failures) - len(placed))


def placed_in(failure: Failure, folders: Sequence[Path]) -> Failure | None:
    """The failure on the innermost of its frames that is a file of the folders; None without one.

    A line that has moved since is found by its text, if that is there once, and the message says so.
    """
    frames = [_local(frame, folders) for frame in failure.frames]
    own = next((each for each in reversed(frames) if each is not None), None)
    if own is None:
        return None
    frame, moved = own
    shown = tuple(
        local[0] if local is not None else given
        for local, given in zip(frames, failure.frames, strict=True)
    )
    explanation = failure.explanation
    if moved:
        explanation = Translated(
            f"{explanation.en} {MOVED_SINCE.en}", f"{explanation.zh_cn}{MOVED_SINCE.zh_cn}"
        )
    return replace(
        failure,
        filename=frame.filename,
        line=frame.line,
        column=frame.column,
        end_line=frame.end_line,
        end_column=frame.end_column,
        frames=shown,
        explanation=explanation,
    )


def _local(frame: Frame, folders: Sequence[Path]) -> tuple[Frame, bool] | None:
    """The frame in a file here, and whether its line has moved."""
    path = _file_here(frame.filename, folders)
    if path is None:
        return None
    here = replace(frame, filename=str(path), in_user_code=True)
    source = frame.source.strip()
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    if not source or (frame.line <= len(lines) and lines[frame.line - 1].strip() == source):
        return here, False
    places = [number for number, line in enumerate(lines, 1) if line.strip() == source]
    line = places[0] if len(places) == 1 else min(frame.line, max(1, len(lines)))
    moved = replace(here, line=line, column=None, end_line=None, end_column=None)
    return moved, True


def _file_here(name: str, folders: Sequence[Path]) -> Path | None:
    """The file of that name, or the one whose path ends as ``name`` does, the longest such end; in a folder only."""
    parts = [part for part in name.replace("\\", "/").split("/") if part not in ("", ".")]
    if not name or name.startswith("<") or ".." in parts or "site-packages" in parts:
        return None
    given = Path(name)
    if given.is_absolute() and any(given.is_relative_to(folder) for folder in folders):
        return given if given.is_file() else None
    for start in range(len(parts)):
        for folder in folders:
            path = folder.joinpath(*parts[start:])
            if path.is_file() and path.resolve().is_relative_to(folder.resolve()):
                return path
    return None
