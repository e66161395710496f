"""Tracebacks in rich's boxes, written as Python prints them.

rich 15.0.0 (``rich/traceback.py``) draws ``╭── Traceback (most recent call last) ──╮``, then for each frame
``/path/file.py:12 in function``, a blank line and source lines with ``❱`` before the one that runs, and the exception
under the box. A path too long for the box goes on in the next line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_TOP = re.compile(r"^\s*[╭┌+][─-]+ Traceback \(most recent call last\) [─-]+[╮┐+]\s*$")
_BOTTOM = re.compile(r"^\s*[╰└+][─-]+[╯┘+]\s*$")
_INSIDE = re.compile(r"^\s*[│|] ?(?P<text>.*?) ?[│|]\s*$")
_FRAME = re.compile(r"^(?P<file>[^\s:❱│][^:❱│]*?):(?P<line>\d+)(?: in (?P<function>.+))?$")
_CURRENT = re.compile(r"^❱ *(?P<line>\d+)[ │|]*(?P<source>.*)")
_CUT = re.compile(r"^(?:[/~]\S*|\S+:\d+ in)$")
"""The first part of a frame's place that did not fit into one line."""
_FILE = "  File"
_PLACE = re.compile(r'^  File "[^"]+", line \d+, in \S+')
_BROKEN_INTO = 4
"""Lines that one place takes at the most."""
_CONNECTORS = ("The above exception was ", "During handling of the above ")

Line = tuple[int, str]


def unboxed(lines: Sequence[Line]) -> list[Line]:
    """The lines with every boxed traceback replaced; as they are where there is none."""
    if not any("╭" in text or "┌" in text or "+--" in text for _, text in lines):
        return list(lines)
    return list(_unboxed(lines))


def _unboxed(lines: Sequence[Line]) -> Iterator[Line]:
    position = 0
    while position < len(lines):
        at, text = lines[position]
        position += 1
        if not _TOP.match(text):
            while text.startswith(_CONNECTORS) and ":" not in text and position < len(lines):
                text = f"{text.rstrip()} {lines[position][1].strip()}"
                position += 1
            if text.rstrip() == _FILE:
                text, position = _place(text, lines, position)
            yield at, text
            continue
        content: list[Line] = []
        while position < len(lines) and (inside := _INSIDE.match(lines[position][1])):
            content.append((lines[position][0], inside["text"].rstrip()))
            position += 1
        position += position < len(lines) and bool(_BOTTOM.match(lines[position][1]))
        yield at, "Traceback (most recent call last):"
        yield from _frames(content)


def _place(text: str, lines: Sequence[Line], position: int) -> tuple[str, int]:
    """A quoted frame's place that was broken where the box's width ended, in one line; and the position after it."""
    joined, at = text.rstrip() + " ", position
    while at < len(lines) and at - position < _BROKEN_INTO:
        joined += lines[at][1].strip("\r\n")
        at += 1
        if _PLACE.match(joined):
            return joined, at
    return text, position


def _frames(content: Sequence[Line]) -> Iterator[Line]:
    """Frame by frame; `` locals `` boxes inside are skipped, because nothing in them looks like a frame."""
    waiting = ""
    for index, (at, text) in enumerate(content):
        stripped = text.strip()
        if current := _CURRENT.match(stripped):
            yield at, f"    {current['source'].strip() or '…'}"
            continue
        joined = f"{waiting} {stripped}" if waiting.endswith(" in") else waiting + stripped
        found = _FRAME.match(joined) or _FRAME.match(stripped)
        waiting = ""
        if _CUT.match(stripped) and not _is_followed_by_source(content, index, 1):
            waiting = stripped
        elif found and (found["function"] or _is_followed_by_source(content, index)):
            function = found["function"] or "<module>"
            yield at, f'  File "{found["file"]}", line {found["line"]}, in {function}'


def _is_followed_by_source(content: Sequence[Line], index: int, within: int = 7) -> bool:
    """Whether source lines follow: after a blank line, the lines around the one that runs."""
    following = [text.strip() for _, text in content[index + 1 : index + 1 + within]]
    return any("❱" in text for text in following) or (within == 1 and following == [""])
