"""Shell commands that download or unpack files."""

from __future__ import annotations

import ast
import re
from typing import Final

COMMAND_CALLS: Final = (
    "os.system",
    "subprocess.run",
    "subprocess.call",
    "subprocess.check_call",
    "subprocess.check_output",
    "subprocess.getoutput",
)
_COMMAND: Final = re.compile(
    r"(?:^|&&|;|\n)\s*(?:sudo\s+)?(?:"
    r"(?P<plain>wget|unzip)\b"
    r"|(?P<curl>curl)\b[^;&|]*\s(?:-\w*[oO]\b|--output|--remote-name)"
    r"|(?P<tar>tar)\s+(?:-?\w*x|--extract|--get)"
    r"|(?P<git>git\s+clone)\b)"
)
"""Commands that write straight into place. ``wget`` takes another name (``file.1``) where the file exists, and so
leaves its rank with the half of another one's."""
_ELSEWHERE: Final = re.compile(
    r"\s(?:--spider|-O\s*-(?=\s|$)|-l\b|-t\b|--list)|\$(?:\{?\w*RANK|\$)"
)
"""Commands that write nothing, or something else for each process."""


def fetching_tool(command: ast.expr) -> str | None:
    """The program (``wget``) that a command runs on files, given as a string or as a list of words."""
    text = _text_of(command)
    found = None if text is None else _COMMAND.search(text)
    if text is None or found is None or _ELSEWHERE.search(text, found.start()):
        return None
    return next(tool for tool in found.groups() if tool is not None)


def _text_of(command: ast.expr) -> str | None:
    """The command with a word in place of each part that is not written out."""
    if isinstance(command, ast.Constant):
        return command.value if isinstance(command.value, str) else None
    if isinstance(command, ast.JoinedStr):
        return "".join(_part(value) for value in command.values)
    if isinstance(command, (ast.List, ast.Tuple)):
        return " ".join(_part(item) for item in command.elts)
    if isinstance(command, ast.BinOp) and isinstance(command.op, (ast.Add, ast.Mod)):
        left = _text_of(command.left)
        if left is None or isinstance(command.op, ast.Mod):
            return left
        return left + _part(command.right)
    if isinstance(command, ast.Call) and isinstance(command.func, ast.Attribute):
        return _text_of(command.func.value) if command.func.attr in ("format", "split") else None
    return None


def _part(item: ast.expr) -> str:
    return _text_of(item) or "_"
