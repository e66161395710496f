"""What a text imports, read without parsing it: the question who may use a file is asked of all files of a project."""

from __future__ import annotations

import re
from collections.abc import Iterator

_STATEMENT = re.compile(
    r"""
    (?:^|[;:])[ \t]*
    (?P<word>from|import)\b
    (?P<rest> (?:[^\n;#\\(]|\\\r?\n)* )
    (?P<listed> \( (?:[^)#]|\#[^\n]*)* )?
    """,
    re.VERBOSE | re.MULTILINE,
)
_IMPORT = re.compile(r"\bimport\b")
_COMMENT = re.compile(r"#[^\n]*")
_NAME = re.compile(r"[\w.]+|\*")


def imported(text: str) -> Iterator[tuple[int, str]]:
    """The level (dots) and the dotted name of all that the statements of a text import, as written.

    More is named rather than less: what looks like an import in a docstring, too.
    """
    for found in _STATEMENT.finditer(text):
        if found["word"] == "import":
            for name, is_renamed in _names(found["rest"]):
                yield 0, name
                if not is_renamed and "." in name:
                    # The name bound is the outermost package's.
                    yield 0, name.partition(".")[0]
            continue
        origin, *named = _IMPORT.split(found["rest"], maxsplit=1)
        words = _NAME.findall(origin)
        if named and len(words) < 3:
            dotted = "".join(words)
            module = dotted.lstrip(".")
            for name, _ in _names(found["listed"] or named[0]):
                yield len(dotted) - len(module), f"{module}.{name}" if module else name


def _names(listed: str) -> Iterator[tuple[str, bool]]:
    """The names of ``a.b as c, d``, and whether each gets another one."""
    for part in _COMMENT.sub("", listed).split(","):
        words = _NAME.findall(part)
        if words:
            yield words[0], "as" in words[1:]
