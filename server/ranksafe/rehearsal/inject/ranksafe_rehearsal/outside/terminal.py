"""A rehearsal's processes have no terminal: who asks for one through another program gets nothing, and that is noted.

What asks in Python (``input``, ``os.get_terminal_size``, ``termios``) raises errors that say so by themselves.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from .. import provenance

_ASKS = frozenset({"stty", "tput", "resize", "tty"})
"""Programs of POSIX and ncurses that answer from the terminal on their standard input or error."""
_NOBODY = {
    "en": "a rehearsal has no terminal, so `{}` has no answer",
    "zh_cn": "预演没有终端，因此 `{}` 没有结果",
}


def install() -> None:
    """Listen to the programs that the script starts (audit events ``subprocess.Popen`` and ``os.system``)."""
    sys.addaudithook(_watch)


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if event not in ("subprocess.Popen", "os.system"):
        return
    try:
        asked = _words(arguments[1] if event == "subprocess.Popen" else arguments[0])
        if _ASKS.isdisjoint(map(os.path.basename, asked)) or sys.stdin.isatty():
            return
        text = " ".join(asked)[-60:]
        message = {language: words.format(text) for language, words in _NOBODY.items()}
        provenance.met("unavailable", "terminal", message)
    except Exception:  # raised here it would become an error of the program that is started
        pass


def _words(command: Any) -> list[str]:
    parts = command if isinstance(command, (list, tuple)) else [command]
    return [word for part in parts for word in os.fsdecode(part).split()]
