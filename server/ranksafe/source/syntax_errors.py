"""Why a text does not parse, and where: for whoever is told that a file was not, or only partly, checked."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

from ranksafe.localization import Translated
from ranksafe.source.parsing import parse_python
from ranksafe.source.position import Position, Range
from ranksafe.source.text import split_lines

_TOO_DEEP = Translated("it is nested too deeply", "嵌套过深")


@dataclass(frozen=True, slots=True)
class SyntaxProblem:
    """The first thing that the parser refuses, in its own words."""

    reason: Translated
    range: Range

    @property
    def is_depth(self) -> bool:
        """Whether nothing is wrong with the text but that the parser cannot follow it so deep."""
        return self.reason is _TOO_DEEP


def syntax_problem(text: str) -> SyntaxProblem | None:
    """What the parser says of a text, or None where it parses."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            parse_python(text)
    except SyntaxError as error:
        return SyntaxProblem(Translated(error.msg, error.msg), _range_of(error, text))
    except (ValueError, RecursionError, MemoryError):
        return SyntaxProblem(_TOO_DEEP, Range(Position(0, 0), Position(0, 0)))
    return None


def _range_of(error: SyntaxError, text: str) -> Range:
    """The error's columns count characters from 1; 0, None and what lies behind the line's end are seen in CPython."""
    lines = split_lines(text)
    line = min(max((error.lineno or 1) - 1, 0), len(lines) - 1)
    length = len(lines[line].rstrip("\r\n"))
    start = min(max((error.offset or 1) - 1, 0), length)
    end = length
    if error.end_lineno == error.lineno and error.end_offset is not None:
        end = min(max(error.end_offset - 1, start), length)
    return Range(Position(line, start), Position(line, end))
