"""What every detector needs: a journal, the user's place in the stack, and a guard around its own code."""

from __future__ import annotations

import os
import sys
import sysconfig
import traceback
from _thread import get_ident
from types import FrameType
from typing import Any, Callable

from .. import exceptions
from ..journal import Journal

_LIBRARIES = tuple(
    part
    for part in (os.path.dirname(os.__file__), sysconfig.get_paths().get("platstdlib", ""))
    if part
)
_INSTALLED = ("site-packages", "dist-packages")
_OURS = frozenset({"ranksafe_agent", "ranksafe_rehearsal"})
_DEEPEST = 200
_MOST_PROBLEMS = 10

_is_user: dict[str, bool] = {}


def is_user_file(filename: str) -> bool:
    """Whether the file is neither installed, nor of the standard library, nor ours."""
    known = _is_user.get(filename)
    if known is None:
        path = os.path.abspath(filename)
        parts = path.split(os.sep)
        known = not (
            filename.startswith("<")
            or path.startswith(_LIBRARIES)
            or any(part in parts for part in _INSTALLED)
            or is_ours(path)
        )
        _is_user[filename] = known
    return known


def is_ours(filename: str) -> bool:
    """Whether the file is one of what ranksafe puts into a run."""
    return not _OURS.isdisjoint(filename.split(os.sep))


def user_frame(start: FrameType | None = None) -> FrameType | None:
    """The innermost frame of the user's code on this thread's stack, or from ``start`` outwards."""
    frame: FrameType | None = start or sys._getframe(1)
    for _ in range(_DEEPEST):
        if frame is None or is_user_file(frame.f_code.co_filename):
            return frame
        frame = frame.f_back
    return None


def stack(start: FrameType | None = None) -> list[dict[str, Any]]:
    """This thread's stack, or that of ``start``, as plain data, outermost first, without our own frames."""
    frames = exceptions.walk(start or sys._getframe(1))
    summary = traceback.StackSummary.extract(frames, lookup_lines=False)
    summary.reverse()
    theirs = [
        frame
        for frame in summary
        if not any(part in frame.filename.split(os.sep) for part in _OURS)
    ]
    return exceptions.frames_as_data(theirs)


class Watch:
    """Shared by the detectors of one rank."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self._problems = 0
        self._told: set[tuple[Any, ...]] = set()
        self._busy: set[int] = set()

    @property
    def is_busy(self) -> bool:
        """Whether this thread is in a detector's own code."""
        return get_ident() in self._busy

    @property
    def directory(self) -> str:
        """The run's folder; empty until it is known."""
        return self.journal.directory

    def problem(self, text: str) -> None:
        """Write down that a detector does not work here; the first few are enough."""
        self._problems += 1
        if self._problems <= _MOST_PROBLEMS:
            self.journal.write("agent-problem", text=text)

    def attempt(self, action: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
        """Call ``action``; what it raises is written down and goes no further. None where it failed, or in a fork."""
        if not self.journal.is_mine:
            return None
        thread = get_ident()
        is_outermost = thread not in self._busy
        self._busy.add(thread)
        try:
            return action(*arguments, **keywords)
        except Exception as error:
            name = getattr(action, "__qualname__", repr(action))
            self.problem(f"detector {name}: {error!r}")
            return None
        finally:
            if is_outermost:
                self._busy.discard(thread)

    def silent_failure(
        self,
        kind: str,
        code: str | None,
        message: tuple[str, str],
        frames: list[dict[str, Any]] | None = None,
    ) -> None:
        """Tell of something certain, once per kind and place; ``message``: English, Chinese."""
        found = stack() if frames is None else frames
        place = [(f["file"], f["line"]) for f in found if is_user_file(f["file"])][-1:]
        key = (kind, *place)
        if key in self._told:
            return
        self._told.add(key)
        english, chinese = message
        self.journal.write(
            "silent-failure",
            kind=kind,
            code=code,
            message={"en": english, "zh_cn": chinese},
            frames=found,
        )
