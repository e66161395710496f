"""Programs that the script starts and that answer otherwise here than they would: noted with the line that starts them.

Who asks for a terminal in Python (``input``, ``os.get_terminal_size``, ``termios``) gets an error that says so.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from .. import nvidia_smi, provenance

_NO_TERMINAL = {
    "en": "a rehearsal has no terminal, so `{}` has no answer",
    "zh_cn": "预演没有终端，因此 `{}` 没有结果",
}
_SIMULATED = {
    "en": "`{}` answers for the simulated GPUs, as far as it is simulated",
    "zh_cn": "`{}` 针对模拟 GPU 作答，且只模拟了其中一部分",
}
_OTHERWISE = {
    **dict.fromkeys(("stty", "tput", "resize", "tty"), ("terminal", _NO_TERMINAL)),
    "nvidia-smi": ("library", _SIMULATED),
}
"""Programs of POSIX and ncurses that answer from the terminal on their standard input or error, and our own
``nvidia-smi``: the kind of entry, and what is said."""


_installed = False


def install() -> None:
    """Listen to the programs that are started (audit events ``subprocess.Popen`` and ``os.system``)."""
    global _installed
    if not _installed:
        _installed = True
        sys.addaudithook(_watch)


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if event not in ("subprocess.Popen", "os.system"):
        return
    try:
        asked = _words(arguments[1] if event == "subprocess.Popen" else arguments[0])
        found = (_OTHERWISE.get(os.path.basename(word)) for word in asked)
        kind, sentence = next(filter(None, found), ("", {}))
        if not kind or (sentence is _NO_TERMINAL and sys.stdin.isatty()):
            return
        if sentence is _SIMULATED and nvidia_smi.is_simulated(_arguments(asked)):
            return
        text = " ".join(asked[2:] if asked[1:2] == ["-c"] else asked)[:60]
        message = {language: words.format(text) for language, words in sentence.items()}
        provenance.met(kind, text, message)
    except Exception:  # raised here it would become an error of the program that is started
        pass


def _arguments(asked: list[str]) -> list[str]:
    """Of our ``nvidia-smi``, up to where a shell goes on with something else."""
    names = [os.path.basename(word) for word in asked]
    after = asked[names.index("nvidia-smi") + 1 :]
    end = next((at for at, word in enumerate(after) if word in ("|", "&&", ";", ">", "||")), None)
    return after[:end]


def _words(command: Any) -> list[str]:
    parts = command if isinstance(command, (list, tuple)) else [command]
    return [word for part in parts for word in os.fsdecode(part).split()]
