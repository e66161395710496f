"""A run on another machine names files there; its failures belong to the lines of the files here.

Files are mapped inside the project that was sent, nowhere else. A file that was edited since the run began is compared
with what was kept of it then, and its lines are followed to where they are now.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Final

from ranksafe.localization import Translated
from ranksafe.runs.explain.evidence import Evidence, Raised
from ranksafe.runs.model import Frame
from ranksafe.runs.records.snapshot import read_snapshot

_FILE: Final = "paths.json"


def write_mapping(directory: Path, there: str, here: Path) -> None:
    """Note in a run's folder that the project ``here`` was at ``there`` on the run's host. Raises OSError."""
    text = json.dumps({"there": there, "here": str(here)})
    (directory / _FILE).write_text(text, encoding="utf-8")


def with_local_files(evidence: Evidence, directory: Path) -> list[Translated]:
    """Change ``evidence`` so that it names files here; what must be said of files that were edited since the run."""
    files = local_files(directory)
    if files is None:
        return []
    for rank in evidence.ranks.values():
        rank.raised = files.raised(rank.raised)
        rank.thread_errors = [each for each in map(files.raised, rank.thread_errors) if each]
        rank.exit_frames = files.frames(rank.exit_frames)
        rank.beat = files.frames(rank.beat)
        rank.fatal = files.frames(rank.fatal)
        rank.suspicions = [
            replace(each, frames=files.frames(each.frames)) for each in rank.suspicions
        ]
        rank.errors = files.text(rank.errors)
    evidence.launcher = files.text(evidence.launcher)
    return files.said


def local_files(directory: Path) -> LocalFiles | None:
    """The mapping noted in a run's folder; None where the run names files of this machine."""
    try:
        value = json.loads((directory / _FILE).read_text(encoding="utf-8"))
        return LocalFiles(str(value["there"]), Path(str(value["here"])), directory)
    except (OSError, ValueError, KeyError, TypeError):
        return None


class LocalFiles:
    """The files of one run's project; ``directory``: the run's folder here."""

    def __init__(self, there: str, here: Path, directory: Path) -> None:
        self._there = there.rstrip("/") + "/"
        self._here = here
        self._snapshot = read_snapshot(directory)
        self._moves: dict[str, dict[int, int] | None] = {}
        self.said: list[Translated] = []
        """What was found out about edited files, once for each."""

    def name(self, filename: str) -> str | None:
        """The file here; None for one outside of the project, or that is none of it here."""
        if not filename.startswith(self._there):
            return None
        below = PurePosixPath(filename[len(self._there) :])
        if ".." in below.parts or below.is_absolute():
            return None
        path = self._here.joinpath(*below.parts)
        real, root = os.path.realpath(path), os.path.realpath(self._here)
        return str(path) if real.startswith(root.rstrip("/") + "/") else None

    def frames(self, frames: Iterable[Frame]) -> tuple[Frame, ...]:
        """The frames with names and lines of here."""
        return tuple(self._frame(frame) for frame in frames)

    def followed(self, frames: Iterable[Frame]) -> tuple[Frame, ...]:
        """Frames that name files of here already, as ranks' answers do, with lines of here."""
        return tuple(self._at(frame, frame.filename) for frame in frames)

    def raised(self, raised: Raised | None) -> Raised | None:
        """An exception and what it came from."""
        if raised is None:
            return None
        return replace(
            raised,
            frames=self.frames(raised.frames),
            cause=self.raised(raised.cause),
            context=self.raised(raised.context),
            group=tuple(each for each in map(self.raised, raised.group) if each),
        )

    def text(self, text: str) -> str:
        """Printed names of files, as in tracebacks; their lines stay."""
        return text.replace(self._there, f"{self._here}/")

    def _frame(self, frame: Frame) -> Frame:
        name = self.name(frame.filename)
        return frame if name is None else self._at(frame, name)

    def _at(self, frame: Frame, name: str) -> Frame:
        moves = self._moved(name)
        if moves is None:
            return replace(frame, filename=name)
        line = moves.get(frame.line)
        old = self._snapshot.lines(name)
        source = frame.source or (old[frame.line - 1].strip() if frame.line <= len(old) else "")
        if line is not None:
            shift = line - frame.line
            end = None if frame.end_line is None else frame.end_line + shift
            return replace(frame, filename=name, line=line, end_line=end, source=source)
        self._say(_GONE.filled(file=Path(name).name, line=frame.line, source=source))
        # Where it would be: after the last line before it that is still there.
        before = max((old for old in moves if old < frame.line), default=None)
        return replace(
            frame,
            filename=name,
            line=1 if before is None else moves[before],
            source=source,
            column=None,
            end_line=None,
            end_column=None,
        )

    def _moved(self, name: str) -> dict[int, int] | None:
        """Where the lines of an edited file are now; None where it is as it was, or nothing is known of it."""
        if name not in self._moves:
            self._moves[name] = self._compare(name)
        return self._moves[name]

    def _compare(self, name: str) -> dict[int, int] | None:
        kept = self._snapshot.files.get(name)
        try:
            data = Path(name).read_bytes()
        except OSError:
            data = b""
        if kept is None or hashlib.sha256(data).hexdigest() == kept.digest:
            return None
        self._say(_EDITED.filled(file=kept.name))
        now = data.decode("utf-8", "replace").splitlines()
        matcher = difflib.SequenceMatcher(None, kept.text.splitlines(), now, autojunk=False)
        return {
            old + offset + 1: new + offset + 1
            for old, new, size in matcher.get_matching_blocks()
            for offset in range(size)
        }

    def _say(self, sentence: Translated) -> None:
        if sentence not in self.said:
            self.said.append(sentence)


_EDITED = Translated(
    en="{file} was edited after the run had started; its lines are shown where they are now",
    zh_cn="{file} 在运行开始后被修改过；行号按当前位置显示",
)
_GONE = Translated(
    en='line {line} of {file} as it ran is no longer there: "{source}"',
    zh_cn="运行时 {file} 的第 {line} 行已不存在：“{source}”",
)
