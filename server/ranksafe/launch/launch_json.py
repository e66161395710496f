"""The text of a `.vscode/launch.json` that starts a script with `accelerate launch`.

The file is JSON with comments; everything in it that is not ours stays as it is, comments and trailing commas included.
"""

from __future__ import annotations

import json
import re

_TOKEN = re.compile(
    r"""
    (?P<string>"(?:\\.|[^"\\])*")
  | (?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))
  | (?P<sign>[{}\[\],:])
  | (?P<blank>\s+)
  | (?P<word>[^\s{}\[\],:"/]+)
    """,
    re.VERBOSE | re.DOTALL,
)
_LINE_COMMENT = re.compile(r"[ \t]*//[^\r\n]*")
_INDENTATION = "    "
_NEW_FILE = '{{\n    "version": "0.2.0",\n    "configurations": [\n{configuration}\n    ]\n}}\n'


class LaunchJsonError(ValueError):
    """The text is not a launch.json that can be extended: no object, broken, or `configurations` is not a list."""


def with_accelerate_configuration(existing: str | None, script: str) -> str:
    """The text of launch.json with a configuration that starts ``script`` through accelerate.

    ``existing`` is the present text, None where there is no file. ``script`` is the script's path below the workspace
    folder, with forward slashes. The configuration is put after the others; where one of its name is there already the
    text comes back unchanged. Raises LaunchJsonError.
    """
    name = f"{script} (accelerate launch)"
    configuration = {
        "name": name,
        "type": "debugpy",
        "request": "launch",
        "module": "accelerate.commands.launch",
        "args": [f"${{workspaceFolder}}/{script}"],
        "console": "integratedTerminal",
        "subProcess": True,
    }
    lines = json.dumps(configuration, ensure_ascii=False, indent=_INDENTATION).split("\n")
    if existing is None or not _without_comments(existing).strip():
        written = "\n".join(_INDENTATION * 2 + line for line in lines)
        return _NEW_FILE.format(configuration=written)
    return _Extension(existing, name).with_entry(lines)


def _without_comments(text: str) -> str:
    return "".join(m[0] for m in _TOKEN.finditer(text) if m.lastgroup != "comment")


class _Extension:
    """One text, read once, to which an entry is added."""

    def __init__(self, text: str, name: str) -> None:
        self._text = text
        self._name = name
        self._tokens = _tokens(text)
        self._newline = "\r\n" if "\r\n" in text else "\n"

    def with_entry(self, lines: list[str]) -> str:
        """The text with the entry, or as it was where an entry of its name is there."""
        if not self._tokens or self._tokens[0][1] != "{":
            raise LaunchJsonError("launch.json does not hold an object")
        opening = self._configurations()
        if opening is None:
            return self._with_list(lines)
        closing = self._closing(opening)
        inside = self._tokens[opening + 1 : closing]
        if self._has_name(inside):
            return self._text
        if inside:
            column = self._indentation_at(inside[0][0])
            last_start, last = inside[-1]
            offset, comma = last_start + len(last), "" if last == "," else ","
        else:
            column = self._indentation_at(self._tokens[opening][0]) + _INDENTATION
            offset, comma = self._tokens[opening][0] + 1, ""
        # A comment behind the last entry belongs to it.
        behind = _LINE_COMMENT.match(self._text, offset)
        comment = behind[0] if behind else ""
        rest = self._text[offset + len(comment) :]
        if not inside and rest.lstrip().startswith("]"):
            rest = self._newline + self._indentation_at(self._tokens[opening][0]) + rest.lstrip()
        entry = self._newline.join(column + line for line in lines)
        return self._text[:offset] + comma + comment + self._newline + entry + rest

    def _with_list(self, lines: list[str]) -> str:
        """The object has no `configurations` yet."""
        closing = self._closing(0)
        before = self._tokens[closing - 1]
        offset = before[0] + len(before[1])
        comma = "" if before[1] in (",", "{") else ","
        column = _INDENTATION * 2
        entry = self._newline.join(column + line for line in lines)
        added = (
            f'{comma}{self._newline}{_INDENTATION}"configurations": [{self._newline}{entry}'
            f"{self._newline}{_INDENTATION}]"
        )
        rest = self._text[offset:]
        if not rest.startswith(("\n", "\r", " ", "\t")) or "\n" not in rest.split("}", 1)[0]:
            added += self._newline
        return self._text[:offset] + added + rest

    def _configurations(self) -> int | None:
        """Index of the token that opens the list."""
        depth = 0
        for index, (_, token) in enumerate(self._tokens):
            if token in "{[":
                depth += 1
            elif token in "}]":
                depth -= 1
            elif depth == 1 and token == '"configurations"':
                following = [item for _, item in self._tokens[index + 1 : index + 3]]
                if following == [":", "["]:
                    return index + 2
                if following[:1] == [":"]:
                    raise LaunchJsonError("`configurations` in launch.json is not a list")
        return None

    def _closing(self, opening: int) -> int:
        depth = 0
        for index in range(opening, len(self._tokens)):
            token = self._tokens[index][1]
            if token in "{[":
                depth += 1
            elif token in "}]":
                depth -= 1
                if depth == 0:
                    return index
        raise LaunchJsonError("a bracket of launch.json is not closed")

    def _has_name(self, inside: list[tuple[int, str]]) -> bool:
        wanted = ['"name"', ":", json.dumps(self._name, ensure_ascii=False)]
        words = [token for _, token in inside]
        return any(words[index : index + 3] == wanted for index in range(len(words)))

    def _indentation_at(self, offset: int) -> str:
        start = self._text.rfind("\n", 0, offset) + 1
        line = self._text[start:offset]
        return line[: len(line) - len(line.lstrip())]


def _tokens(text: str) -> list[tuple[int, str]]:
    """Strings, words and signs with their places; blanks and comments left out. Raises LaunchJsonError."""
    found = []
    offset = 0
    while offset < len(text):
        match = _TOKEN.match(text, offset)
        if match is None:
            raise LaunchJsonError(f"launch.json cannot be read at {text[offset : offset + 20]!r}")
        if match.lastgroup not in ("blank", "comment"):
            found.append((offset, match[0]))
        offset = match.end()
    return found
