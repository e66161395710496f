"""The suppression comments of a file and the logical lines they cover.

A small scanner of our own instead of ``tokenize``: it must go on through half-typed text, where ``tokenize`` stops,
and it runs after every keystroke in a file that has such a comment, where ``tokenize`` would take most of the time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from ranksafe.pausing import pause_point
from ranksafe.source.position import Position, Range
from ranksafe.source.text import split_lines

MARKER = "ranksafe:"
"""A text without this word has no suppression comment."""

_DIRECTIVE = re.compile(
    r"#\s*ranksafe:\s*(?P<kind>ignore-file|ignore)\b(?:\s*\[(?P<rules>[^\]\n#]*)\])?"
)
_RULE = re.compile(r"[A-Za-z0-9][\w-]*")
_TOKEN = re.compile(
    r"""
      (?P<string>(?:\b[rRbBuUfFtT]{1,2})?(?:
          \"\"\"(?:[^\\"]|\\.|\"(?!\"\"))*(?:\"\"\"|\Z)
        | '''(?:[^\\']|\\.|'(?!''))*(?:'''|\Z)
        | "(?:[^\\"\n]|\\.)*(?:"|$)
        | '(?:[^\\'\n]|\\.)*(?:'|$)))
    | (?P<comment>\#[^\n]*)
    | (?P<open>[(\[{])
    | (?P<close>[)\]}])
    | (?P<continued>\\\r?\n)
    | (?P<end>\n)
    | (?P<statement>^(?:async[ ]+def|class|def|import|from|return|@)\b)
    | (?P<code>[^\s#"'()\[\]{}\\]+)
    """,
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)


class Coverage(str, Enum):
    """What a suppression comment covers."""

    LINE = "ignore"
    FILE = "ignore-file"


@dataclass(frozen=True, slots=True)
class NamedRule:
    """A code or name in a comment's brackets."""

    text: str
    range: Range


@dataclass(frozen=True, slots=True)
class SuppressionComment:
    """``# ranksafe: ignore[RS101]`` or ``# ranksafe: ignore-file[RS101]``."""

    coverage: Coverage
    rules: tuple[NamedRule, ...]
    """Empty when no rule is named: such a comment has no effect."""
    range: Range
    """From the hash to the closing bracket."""
    first_line: int
    """First line of the logical line that the comment belongs to (0-based)."""
    last_line: int
    at_top: bool
    """Nothing but comments and the docstring stands before it."""

    def names(self, code: str, name: str) -> bool:
        """Whether the comment names the rule."""
        return any(rule.text.upper() == code or rule.text == name for rule in self.rules)


def suppression_comments(text: str) -> tuple[SuppressionComment, ...]:
    """Every suppression comment, in order. Hashes inside strings are no comments."""
    if MARKER not in text:
        return ()
    lines = split_lines(text)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    return tuple(
        comment
        for first, last, at_top, comments in _logical_lines(text)
        for line, offset, content in comments
        for comment in _directives(content, line, offset - starts[line], first, last, at_top)
    )


_NESTING: dict[str | None, int] = {"open": 1, "close": -1}
_Comment = tuple[int, int, str]
"""Line, offset in the text, text."""


def _logical_lines(text: str) -> Iterator[tuple[int, int, bool, list[_Comment]]]:
    """First line, last line, whether no code came before, and the comments of each logical line that has some."""
    line = first = depth = 0
    code_before = False
    code_here = False
    comments: list[_Comment] = []
    for token in _TOKEN.finditer(text):
        pause_point()
        kind, content = token.lastgroup, token[0]
        if kind == "statement" and depth:
            # A bracket was left open above: nothing else puts such a word at the start of a line.
            if comments:
                yield first, line - 1, not code_before, comments
                comments = []
            depth, first, code_before = 0, line, True
        if kind == "end":
            line += 1
            if depth == 0:
                if comments:
                    yield first, line - 1, not (code_before or code_here), comments
                    comments = []
                code_before = code_before or code_here
                code_here = False
                first = line
        elif kind == "comment":
            comments.append((line, token.start(), content))
        elif kind in ("string", "continued"):
            line += content.count("\n")
        else:
            code_here = True
            depth = max(0, depth + _NESTING.get(kind, 0))
    if comments:
        yield first, line, not (code_before or code_here), comments


def _directives(
    comment: str, line: int, column: int, first: int, last: int, at_top: bool
) -> Iterator[SuppressionComment]:
    for match in _DIRECTIVE.finditer(comment):
        offset = match.start("rules") if match["rules"] is not None else 0
        rules = tuple(
            NamedRule(
                found[0],
                _on_line(line, column + offset + found.start(), column + offset + found.end()),
            )
            for found in _RULE.finditer(match["rules"] or "")
        )
        yield SuppressionComment(
            Coverage(match["kind"]),
            rules,
            _on_line(line, column + match.start(), column + match.end()),
            first,
            last,
            at_top,
        )


def _on_line(line: int, start: int, end: int) -> Range:
    return Range(Position(line, start), Position(line, end))
