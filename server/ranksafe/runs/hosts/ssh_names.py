"""The hosts that the user's own ssh configuration names, for lists to choose from; ssh alone says what they mean."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Final

from ranksafe.runs.hosts.ssh import config_file

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_MOST_INCLUDED: Final = 16
"""Files in files, as ssh has it (OpenSSH 9, ``readconf.h``)."""


def configured_hosts() -> list[str]:
    """The names without wildcards, in the order of the file; none where it cannot be read."""
    hosts: dict[str, None] = {}
    _read(config_file(), hosts, 0)
    return list(hosts)


def _read(path: Path, hosts: dict[str, None], depth: int) -> None:
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    named: list[str] = []
    for line in lines:
        keyword, *words = _words(line) or [""]
        if keyword == "host":
            named = [word for word in words if _NAME.fullmatch(word)]
            hosts.update(dict.fromkeys(named))
        elif keyword == "match":
            named = []
        elif keyword == "user" and words == ["git"]:
            # Where repositories are kept nothing can be run.
            for name in named:
                hosts.pop(name, None)
        elif keyword == "include" and depth < _MOST_INCLUDED:
            for pattern in words:
                for found in _included(pattern):
                    _read(found, hosts, depth + 1)


def _words(line: str) -> list[str]:
    """The keyword in small letters and its arguments; between them may be an equals sign."""
    try:
        keyword, *words = shlex.split(re.sub(r"^(\s*\w+)\s*=", r"\1 ", line), comments=True)
    except ValueError:  # empty, or a quote that is not closed
        return []
    return [keyword.lower(), *words]


def _included(pattern: str) -> list[Path]:
    """What is not absolute is relative to the user's folder of ssh."""
    try:
        path = Path.home() / ".ssh" / Path(pattern).expanduser()
        return sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor))))
    except (OSError, RuntimeError, ValueError):  # nobody's home folder, or no pattern
        return []
