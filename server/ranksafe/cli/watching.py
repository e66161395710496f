"""Do something now, and again whenever a file of the project has changed."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, NoReturn

from ranksafe.checker.configuration import FILE_NAMES
from ranksafe.cli.cache import project_state
from ranksafe.cli.terminal import note
from ranksafe.localization import Language, Translated
from ranksafe.semantics.project.index import ProjectIndex
from ranksafe.semantics.project.launch_files import command_files

_PAUSE: Final = 0.5
"""Seconds between two looks at the files."""
_CLEAR: Final = "\x1b[2J\x1b[H"
_WAITING = Translated("waiting for changes; Ctrl+C ends it", "等待文件变化；按 Ctrl+C 结束")


def watch(
    work: Callable[[], object], roots: Iterable[Path], named: Iterable[Path], language: Language
) -> NoReturn:
    """Call ``work`` until Ctrl+C, which raises KeyboardInterrupt.

    ``roots``: the projects whose files matter; ``named``: files that may lie outside of them.
    """
    while True:
        before = _state(roots, named)
        if sys.stdout.isatty():
            sys.stdout.write(_CLEAR)
        work()
        sys.stdout.flush()
        note(_WAITING.in_language(language))
        while _state(roots, named) == before:
            time.sleep(_PAUSE)


def _state(roots: Iterable[Path], named: Iterable[Path]) -> str:
    files = list(named)
    for root in roots:
        files += [*ProjectIndex(root).files(), *command_files(root)]
        files += [root / name for name in FILE_NAMES]
    return project_state(files)
