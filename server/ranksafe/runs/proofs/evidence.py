"""What a proof program left behind: its uncaught exceptions with their frames, its output, its exit status."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from ranksafe.runs.model import Frame

_EMBEDDED = "Original Traceback"
_EMBEDDED_FRAME = re.compile(
    r'^ *File "(?P<file>.+)", line (?P<line>\d+), in (?P<name>.+)\n(?P<source>.*)', re.M
)


@dataclass(frozen=True, slots=True)
class ObservedException:
    """An exception that ended a process."""

    rank: int | None
    """None: the process was not a rank (the launcher, or a program without one)."""
    type: str
    message: str
    frames: tuple[Frame, ...]
    """Outermost first; the frames of DataParallel's "Original Traceback" follow those that re-raised it."""

    @property
    def blamed(self) -> Frame | None:
        """The innermost frame in the program itself."""
        return next((frame for frame in reversed(self.frames) if frame.in_user_code), None)


@dataclass(frozen=True, slots=True)
class Execution:
    """One execution of a proof program."""

    command: tuple[str, ...]
    exit_status: int | None
    """None: stopped by us, see `timed_out`."""
    timed_out: bool
    output: str
    """Standard output and standard error of all processes; each rank's by themselves, as they came."""
    exceptions: tuple[ObservedException, ...]
    seconds: float


def read_exceptions(folder: Path, program_folder: Path) -> tuple[ObservedException, ...]:
    """The exceptions recorded in ``folder``, by rank; code in ``program_folder`` counts as the user's."""
    found = []
    for file in folder.glob("exception-*.json"):
        try:
            found.append(_exception(json.loads(file.read_text(encoding="utf-8")), program_folder))
        except ValueError:  # a process that was killed while it wrote
            continue
    return tuple(sorted(found, key=lambda item: -1 if item.rank is None else item.rank))


def _exception(evidence: dict[str, object], program_folder: Path) -> ObservedException:
    rank, frames, message = evidence["rank"], evidence["frames"], str(evidence["message"])
    assert isinstance(frames, list)
    places = [(str(file), int(line), str(name), str(source)) for file, line, name, source in frames]
    return ObservedException(
        rank=rank if isinstance(rank, int) else None,
        type=str(evidence["type"]),
        message=message,
        frames=tuple(
            Frame(file, line, name, source, in_user_code=Path(file).parent == program_folder)
            for file, line, name, source in places + _embedded_frames(message)
        ),
    )


def _embedded_frames(message: str) -> list[tuple[str, int, str, str]]:
    _, found, traceback = message.partition(_EMBEDDED)
    if not found:
        return []
    return [
        (match["file"], int(match["line"]), match["name"], match["source"].strip())
        for match in _EMBEDDED_FRAME.finditer(traceback)
    ]
