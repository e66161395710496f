"""Frames of a traceback that a terminal's width broke in two: text that was copied from a window."""

from __future__ import annotations

import re

_PATH = '  File "'
_BEGINS = re.compile(r'  File "(?:[^"]*|[^"]+"(?:,(?: l\w*(?: \d*(?:, ?(?:in?)?)?)?)?)?) ?$')
_WHOLE = re.compile(r'  File "[^"]+", line \d+, in \S+\s*$')
_END_OF_NAME = re.compile(r"(?!\w*(?:Error|Exception|Exit|Interrupt|Iteration)$)\w*>?$")
_RAISED = re.compile(r"^(?:\[\w+\]: )?(?:\w+\.)*\w+(?:Error|Exception): ")
_NARROWEST = 40
_MOST_ROWS = 4


class Unwrapper:
    """Puts such lines together again. What was joined leaves empty lines, so that lines keep their numbers."""

    def __init__(self) -> None:
        self._width = 0
        """Of the window, once a frame has shown it."""
        self._held: list[str] = []
        """The beginning of a frame, at the end of what has come."""

    def is_wanted(self, text: str) -> bool:
        """Whether there may be something to join in what comes next."""
        return bool(self._held) or _PATH in text

    def joined(self, lines: list[str], *, final: bool) -> list[str]:
        """Whole lines of the log; what may go on in the next ones is held back, unless these are the last."""
        lines = [*self._held, *lines]
        self._held = []
        index = 0
        while index < len(lines):
            line = lines[index]
            rows = 1
            if len(line) >= _NARROWEST and _PATH in line:
                rows, whole = _frame(lines[index : index + _MOST_ROWS])
                looked_at = _MOST_ROWS - 1 if rows == 1 and _BEGINS.search(line) else rows
                if not final and index + looked_at >= len(lines):
                    lines, self._held = lines[:index], lines[index:]
                elif rows > 1:
                    self._width = self._width or len(line)
                    lines[index : index + rows] = [whole, *("" for _ in range(rows - 1))]
            elif len(line) == self._width and _RAISED.match(line) and index + 1 < len(lines):
                rows = 2
                lines[index : index + rows] = [line + lines[index + 1], ""]
            index += rows
        return lines


def _frame(rows: list[str]) -> tuple[int, str]:
    """How many of these rows are one frame, and the frame; the space at which it was broken may be lost."""
    count, frame = 1, rows[0]
    if _BEGINS.search(frame):
        joined = (
            (count, between.join(rows[:count]))
            for count in range(2, len(rows) + 1)
            for between in ("", " ")
        )
        count, frame = next((each for each in joined if _WHOLE.search(each[1])), (1, frame))
    rest = rows[count] if count < len(rows) else ""
    if rest and _WHOLE.search(frame) and _END_OF_NAME.match(rest):
        return count + 1, frame + rest
    return count, frame
