"""Parsing half-typed code: leave out what is broken, keep everything else where it stands.

A broken statement is replaced, line for line, by ``pass`` (or by ``if 1:`` where an indented block follows), so that
every other statement keeps its line and column. The block below a broken header is kept while the header is being
typed; where nothing is known of an edit it goes with the header, which may have been a condition. Which statement is
broken is known from the edit, when there was one, and else from the line CPython's parser names.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ranksafe.pausing import pause_point
from ranksafe.source.parsing import has_too_long_statement, parse_python
from ranksafe.source.text import split_lines

_MAXIMUM_ATTEMPTS = 15
_TRIED_ALONE = 6
"""Lines of an edit up to which each is suspected alone."""
_INDENT = re.compile(r"[ \t\f]*")
_CLAUSE = re.compile(r"[ \t]*(else|elif|except|finally|case)\b")
_TRY = re.compile(r"[ \t]*try\s*:")
_HEADER = re.compile(
    r"[ \t\f]*(if|elif|else|for|while|with|try|except|finally|def|class|match|case|async)\b"
)
_EMPTY_BLOCK = re.compile(r"expected an indented block after .* on line (\d+)")


@dataclass(frozen=True, slots=True)
class Parsed:
    """A tree with the lines (0-based) that were left out to get it."""

    tree: ast.Module
    blanked: frozenset[int]
    lines: list[str] | None = None
    """The lines as they were parsed, where that is not the text itself."""


def parse(text: str) -> ast.Module | None:
    """The tree of intact text, None for anything the parser refuses (syntax, NUL characters, too deep nesting)."""
    try:
        return parse_python(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def parse_tolerantly(text: str, suspects: Sequence[Collection[int]] = ()) -> Parsed | None:
    """Parse text of which parts may be broken.

    ``suspects``: sets of 0-based lines that may be what is broken (what was edited last, the statement around it), the
    likeliest first; each is tried alone. None: nothing could be parsed at all, or a statement is too long to be.
    """
    if has_too_long_statement(text):
        return None
    tree = parse(text)
    if tree is not None:
        return Parsed(tree, frozenset())
    lines = split_lines(text)
    tried: set[frozenset[int]] = set()
    for suspect in suspects:
        broken = frozenset(number for number in suspect if 0 <= number < len(lines))
        if broken and broken not in tried:
            tried.add(broken)
            found = _without(lines, broken)
            if found is not None:
                return found
    return _following_the_parser(lines) or _piece_by_piece(lines)


def edited_lines(text: str, first: int, last: int) -> list[frozenset[int]]:
    """Suspects for an edit: each line it touched (an edit that only takes lines away touches none), all of them, then
    the lines up to the end of the statement that begins on the last of them.

    Several edits told as one may lie apart: then a single line among them is broken, most likely.
    """
    lines = split_lines(text)
    first, last = max(first, 0), min(last, len(lines) - 1)
    if first > last:
        return []
    touched = frozenset(range(first, last + 1))
    single = [frozenset({number}) for number in range(last, first - 1, -1) if lines[number].strip()]
    few = single if len(touched) <= _TRIED_ALONE else []
    return [*few, touched, touched | frozenset(range(last, _logical_end(lines, last) + 1))]


def _without(lines: list[str], broken: frozenset[int]) -> Parsed | None:
    for keep_indentation in (True, False):
        pause_point()
        trial = lines[:]
        for run in _runs(broken):
            pause_point()
            _blank(trial, run, keep_indentation=keep_indentation)
        tree = parse("".join(trial))
        if tree is not None:
            return Parsed(tree, broken, trial)
    return None


def _runs(numbers: frozenset[int]) -> list[range]:
    """Consecutive numbers as ranges."""
    runs: list[range] = []
    for number in sorted(numbers):
        if runs and runs[-1].stop == number:
            runs[-1] = range(runs[-1].start, number + 1)
        else:
            runs.append(range(number, number + 1))
    return runs


def _blank(lines: list[str], broken: range, *, keep_indentation: bool = False) -> None:
    """Replace lines by one statement that does nothing, keeping their number.

    The statement stands where the broken one stood (``keep_indentation``), or where the line before says it must.
    """
    own = next((lines[number] for number in broken if lines[number].strip()), "")
    for number in broken:
        end = lines[number][len(lines[number].rstrip("\r\n")) :]
        lines[number] = end
    first = broken.start
    if first >= len(lines):
        return
    filler = _filler_at(lines, broken, own) if keep_indentation and own else _filler(lines, broken)
    lines[first] = filler + lines[first]


def _filler_at(lines: list[str], broken: range, own: str) -> str:
    indent = _indent(own)
    after = _first_with_code(lines, range(broken.stop, len(lines)))
    return indent + ("if 1:" if len(_indent(after)) > len(indent) else "pass")


def _filler(lines: list[str], broken: range) -> str:
    before = _first_with_code(lines, range(broken.start - 1, -1, -1))
    after = _first_with_code(lines, range(broken.stop, len(lines)))
    indent_before, indent_after = _indent(before), _indent(after)
    opens_block = before.split("#")[0].rstrip().endswith(":")
    if opens_block:
        # The body that belongs to the header above, or the statement that was to become it.
        if len(indent_after) > len(indent_before):
            return ""
        return indent_before + "    pass"
    if len(indent_after) > len(indent_before):
        return indent_before + "if 1:"
    return ""


def _first_with_code(lines: list[str], numbers: range) -> str:
    return next((lines[number] for number in numbers if lines[number].strip()), "")


def _indent(line: str) -> str:
    match = _INDENT.match(line)
    return match.group() if match else ""


def _logical_end(lines: list[str], first: int) -> int:
    """Last line of the statement that begins on a line, by brackets; stops where a new statement must begin."""
    depth = 0
    indent = len(_indent(lines[first]))
    for number in range(first, min(len(lines), first + 200)):
        code = lines[number].split("#")[0]
        if number > first and depth > 0 and code.strip() and len(_indent(lines[number])) <= indent:
            return number if code.strip()[0] in ")]}" else number - 1
        depth += sum(code.count(item) for item in "([{") - sum(code.count(item) for item in ")]}")
        if depth <= 0 and not code.rstrip().endswith("\\"):
            return number
    return first


def _following_the_parser(lines: list[str]) -> Parsed | None:
    """Blank the line CPython's error names, again and again; step upwards when the same line is named twice."""
    trial = lines[:]
    blanked: set[int] = set()
    seen: dict[int, int] = {}
    for _ in range(_MAXIMUM_ATTEMPTS):
        pause_point()
        try:
            return Parsed(parse_python("".join(trial)), frozenset(blanked), trial)
        except SyntaxError as error:
            number = min(max((error.lineno or 1) - 1, 0), len(trial) - 1)
            message = error.msg or ""
        except (ValueError, RecursionError, MemoryError):
            return None
        if "expected 'except' or 'finally'" in message:
            opener = _try_above(trial, number)
            written = None if opener is None else _TRY.match(trial[opener])
            if opener is not None and written is not None:
                rest = trial[opener][written.end() :]
                trial[opener] = f"{_indent(trial[opener])}if 1:{rest}"
                blanked.add(opener)
                continue
        while number > 0 and not trial[number].strip():
            number -= 1
        if "unexpected indent" in message and number not in seen:
            header = _indent(trial[number])
            previous = next((i for i in range(number - 1, -1, -1) if not trial[i].strip()), None)
            if previous is not None and previous in blanked:
                outer = next((line for line in reversed(trial[:previous]) if line.strip()), "")
                if len(_indent(outer)) < len(header):
                    end = trial[previous]
                    trial[previous] = _indent(outer) + "if 1:" + (end or "\n")
                    seen[number] = 1
                    continue
        empty = _EMPTY_BLOCK.match(message)
        if empty is not None and int(empty[1]) - 1 not in blanked:
            number = int(empty[1]) - 1
        number = max(0, number - seen.get(number, 0))
        seen[number] = seen.get(number, 0) + 1
        broken = range(number, _end_of_block(trial, number))
        _blank(trial, broken)
        blanked.update(broken)
    return None


def _end_of_block(lines: list[str], header: int) -> int:
    """Behind the last line that the header of a block on a line has below it: what only ran under a condition must not
    look as if it always did. Behind the line itself where it is no header."""
    body = _first_with_code(lines, range(header + 1, len(lines)))
    inner = len(_indent(body))
    end = header + 1
    if _HEADER.match(lines[header]) and inner > len(_indent(lines[header])):
        for number in range(end, len(lines)):
            if lines[number].strip():
                if len(_indent(lines[number])) < inner:
                    break
                end = number + 1
    return end


def _try_above(lines: list[str], number: int) -> int | None:
    limit = len(_indent(lines[number])) if lines[number].strip() else 10**6
    for candidate in range(min(number, len(lines) - 1), -1, -1):
        if _TRY.match(lines[candidate]) and len(_indent(lines[candidate])) <= limit:
            return candidate
    return None


def _piece_by_piece(lines: list[str]) -> Parsed | None:
    """Cut where unindented statements begin, keep the pieces that parse alone."""
    starts = [
        number
        for number, line in enumerate(lines)
        if line.strip() and line[0] not in " \t\f#)]}" and not _CLAUSE.match(line)
    ]
    if not starts:
        return None
    kept = (
        lines[: starts[0]]
        if parse("".join(lines[: starts[0]])) is not None
        else ["\n" for _ in lines[: starts[0]]]
    )
    blanked: set[int] = set()
    for start, stop in zip(starts, [*starts[1:], len(lines)], strict=True):
        pause_point()
        piece = lines[start:stop]
        if parse("".join(piece)) is None:
            blanked.update(range(start, stop))
            piece = ["\n" if line else line for line in piece]
        kept += piece
    tree = parse("".join(kept))
    return None if tree is None else Parsed(tree, frozenset(blanked), kept)
