"""Exceptions as plain data: frames with columns, causes, contexts, group members and notes."""

from __future__ import annotations

import linecache
import traceback
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import Any

from . import parameter_names

_MESSAGE_LIMIT = 20000
_CHAIN_LIMIT = 10
_OUTER_FRAMES = 60
_INNER_FRAMES = 120


def describe(error: BaseException, depth: int = 0, seen: tuple[int, ...] = ()) -> dict[str, Any]:
    """``error`` with everything it carries; cycles and endless chains are cut."""
    kind = type(error)
    text = _text_of(error)
    notes = [str(note) for note in getattr(error, "__notes__", None) or ()]
    described: dict[str, Any] = {
        "type": kind.__qualname__,
        "module": kind.__module__,
        "message": text,
        "notes": notes + parameter_names.notes_on(error, text),
        "frames": frames_of(error.__traceback__),
    }
    if isinstance(error, SyntaxError):
        described["frames"].extend(_syntax_frame(error))
    if depth >= _CHAIN_LIMIT:
        return described
    seen = (*seen, id(error))
    cause, context = error.__cause__, error.__context__
    if cause is not None and id(cause) not in seen:
        described["cause"] = describe(cause, depth + 1, seen)
    elif context is not None and not error.__suppress_context__ and id(context) not in seen:
        described["context"] = describe(context, depth + 1, seen)
    members = getattr(error, "exceptions", None)
    if isinstance(members, tuple):
        described["group"] = [
            describe(member, depth + 1, seen)
            for member in members[:20]
            if isinstance(member, BaseException)
        ]
    return described


def frames_of(trace: TracebackType | None) -> list[dict[str, Any]]:
    """The frames of a traceback, outermost first; of an endless recursion both ends."""
    return frames_as_data(list(traceback.extract_tb(trace)))


def frames_as_data(summary: list[traceback.FrameSummary]) -> list[dict[str, Any]]:
    """`FrameSummary` objects as dictionaries; columns 1-based, in characters."""
    if len(summary) > _OUTER_FRAMES + _INNER_FRAMES:
        summary = summary[:_OUTER_FRAMES] + summary[-_INNER_FRAMES:]
    return [_frame(entry) for entry in summary]


def walk(frame: FrameType | None) -> Iterator[tuple[FrameType, int]]:
    """``frame`` and its callers, innermost first, each with the line it is at."""
    while frame is not None:
        yield frame, line_of(frame)
        frame = frame.f_back


def line_of(frame: FrameType) -> int:
    """The line ``frame`` is at, or the last one before it: ``f_lineno`` is None at the instructions that the compiler
    adds of its own (CPython 3.11, which clean up after ``with`` and ``except``)."""
    line: int | None = frame.f_lineno
    if line is not None:
        return line
    code = frame.f_code
    last = code.co_firstlineno
    for start, _, number in code.co_lines():
        if start > frame.f_lasti:
            break
        last = number or last
    return last


def _frame(entry: traceback.FrameSummary) -> dict[str, Any]:
    line = entry.lineno or 0
    end_line = getattr(entry, "end_lineno", None)
    return {
        "file": entry.filename,
        "line": line,
        "function": entry.name,
        "source": linecache.getline(entry.filename, line).strip(),
        "column": _column(entry.filename, line, getattr(entry, "colno", None)),
        "end_line": end_line,
        "end_column": _column(entry.filename, end_line, getattr(entry, "end_colno", None)),
    }


def _column(filename: str, line: int | None, byte_offset: int | None) -> int | None:
    """CPython counts UTF-8 bytes from 0 (``code.co_positions``, 3.11); people count characters from 1."""
    if byte_offset is None or line is None:
        return None
    encoded = linecache.getline(filename, line).encode("utf-8")
    return len(encoded[:byte_offset].decode("utf-8", "replace")) + 1


def _syntax_frame(error: SyntaxError) -> list[dict[str, Any]]:
    if not error.filename or not error.lineno:
        return []
    end_column = getattr(error, "end_offset", None)
    return [
        {
            "file": error.filename,
            "line": error.lineno,
            "function": "<module>",
            "source": (error.text or "").strip(),
            "column": error.offset,
            "end_line": getattr(error, "end_lineno", None) if end_column else None,
            "end_column": end_column or None,
        }
    ]


def _text_of(error: BaseException) -> str:
    try:
        return str(error)[:_MESSAGE_LIMIT]
    except Exception:  # a broken __str__ is the user's, and must not hide the rest
        return "<no text: __str__ failed>"
