"""Which frames are the user's own code."""

from __future__ import annotations

import itertools
import linecache
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from ranksafe.localization import Translated
from ranksafe.runs.model import Frame
from ranksafe.runs.plain_files import source_lines

APPROXIMATE = Translated(
    en="The line is where it was last seen, at most a second earlier.",
    zh_cn="所示行是它最后一次被观察到的位置，最多早一秒。",
)
"""Said where a line is the last that a heartbeat saw."""
_OUR_PACKAGES = frozenset({"ranksafe_agent", "ranksafe_rehearsal"})
_WINDOWS = re.compile(r"[A-Za-z]:[\\/]|[^/\\]*\\[^/]*\.py$")
"""A path of Windows in a log that is read elsewhere."""
_INSTALLATION = re.compile(r"^python3\d+$|^(?:ana|mini)?conda\d?$|^miniforge\d?$", re.IGNORECASE)
"""Folders whose ``Lib`` is Python's own on Windows."""
_LIBRARY_PARTS = frozenset(
    {"site-packages", "dist-packages", "node_modules", "transformers_modules"}
)
"""Folders of installed code; the last is where transformers keeps the code that a model brings."""

_COMPILED = (".pyx", ".pxi", ".pxd")
"""Cython's sources: pandas and others name theirs relative to a folder that is only where they were built."""

_CHECKED_OUT = re.compile(
    r"/(?:deepspeed/(?:runtime|comm|ops|moe|pipe|inference|launcher|utils|__init__\.py)"
    r"|(?:transformers|accelerate|peft|trl|diffusers)/(?:models|trainers?|generation|utils|schedulers|pipelines|tuners"
    r"|trainer\.py|modeling_utils\.py|accelerator\.py|optimizer\.py|data_loader\.py|peft_model\.py)"
    r"|(?:pytorch_)?lightning/(?:pytorch/|fabric/)?(?:trainer|strategies|loops|core|plugins|utilities)"
    r"|vllm/(?:v1|engine|worker|executor|model_executor|distributed)"
    r"|torch/(?:nn|distributed|optim|autograd|utils|_dynamo|_inductor))(?:/|$)"
)
"""Files of libraries that people check out beside their script or install from a folder: their own layout, not a name
that a project may have too."""


class UserCode:
    """The folders whose files are the user's: the working directory and the script's folder.

    ``anywhere``: every file that is neither installed nor of the standard library is the user's; a log from another
    machine names folders that do not exist here.
    """

    def __init__(
        self,
        roots: Iterable[Path],
        working_directory: Path | None = None,
        *,
        anywhere: bool = False,
    ) -> None:
        self._anywhere = anywhere
        self._working_directory = str(working_directory or Path.cwd())
        # With the root folder among them everything would be the user's.
        self._roots = tuple({os.path.realpath(str(root)) for root in roots} - {"/"})

    def contains(self, filename: str) -> bool:
        """Whether the file is the user's; installed packages and the standard library never are."""
        if filename.startswith("<") or filename.endswith(_COMPILED):
            return False
        path = os.path.realpath(self.absolute(filename))
        parts = (
            tuple(re.split(r"[\\/]", filename)) if _WINDOWS.match(filename) else Path(path).parts
        )
        if _LIBRARY_PARTS.intersection(parts) or _is_standard_library(parts):
            return False
        if len(parts) > 1 and parts[-2] == "bin" and "." not in parts[-1]:
            # What pip installs to start a library's command: torchrun, accelerate.
            return False
        return self._anywhere or any(
            path == root or path.startswith(root.rstrip("/") + "/") for root in self._roots
        )

    def absolute(self, filename: str) -> str:
        """The file's absolute name; relative ones are relative to the run's working directory."""
        if filename.startswith("<") or _WINDOWS.match(filename):
            return filename
        return os.path.normpath(Path(self._working_directory, filename))

    def marked(self, frames: Sequence[Frame]) -> tuple[Frame, ...]:
        """The frames with absolute names, their source lines, and the user's ones marked; ours are left out."""
        # The agent, and what simulates the devices, ride along in the user's process.
        theirs = (each for each in frames if _OUR_PACKAGES.isdisjoint(Path(each.filename).parts))
        marked = tuple(map(self._mark, theirs))
        if not self._anywhere or all(
            _is_checked_out(frame.filename) for frame in marked if frame.in_user_code
        ):
            return marked
        return tuple(
            replace(frame, in_user_code=frame.in_user_code and not _is_checked_out(frame.filename))
            for frame in marked
        )

    def _mark(self, frame: Frame) -> Frame:
        name = self.absolute(frame.filename)
        source = frame.source or _source_of(name, frame.line)
        return replace(
            frame, filename=name, source=source, in_user_code=self.contains(frame.filename)
        )


def innermost_user_frame(frames: Sequence[Frame]) -> Frame | None:
    """The last of the marked frames that is the user's own."""
    return next((frame for frame in reversed(frames) if frame.in_user_code), None)


def place(frame: Frame) -> str:
    """``train.py:41``."""
    name = PurePosixPath(frame.filename.replace("\\", "/")).name
    return f"{name}:{frame.line}"


def place_in_function(frame: Frame) -> str:
    """``train.py:41 in step``; of a frame without a function ``train.py:41``."""
    return f"{place(frame)} in {frame.function}" if frame.function else place(frame)


def _source_of(name: str, line: int) -> str:
    """A line of an ordinary file; of a device there is no end."""
    if name.endswith(".py") and os.path.isfile(name):  # noqa: PTH113 - false for names that no system has
        linecache.checkcache(name)
        return linecache.getline(name, line).strip()
    lines = source_lines(name)
    return lines[line - 1].strip() if 0 < line <= len(lines) else ""


def _is_checked_out(filename: str) -> bool:
    """Whether the file is a library's, in a copy of its sources that lies anywhere."""
    return _CHECKED_OUT.search(filename.replace("\\", "/")) is not None


def _is_standard_library(parts: Sequence[str]) -> bool:
    return any(
        (one == "lib" and two.startswith("python3"))
        or (two.lower() == "lib" and _INSTALLATION.search(one) is not None)
        for one, two in itertools.pairwise(parts)
    )
