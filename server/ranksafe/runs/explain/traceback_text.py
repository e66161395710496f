"""Printed tracebacks back into data: logs, worker and replica messages, interleaved ranks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from ranksafe.runs.explain.evidence import Raised
from ranksafe.runs.model import Frame

_HEADER = re.compile(
    r"(?:Original |Exception Group |Remote )?Traceback \(most recent call last\):\s*$"
)
_FRAME = re.compile(
    r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+)(?:, in (?P<function>.+?))?\s*$'
)
_LAST = re.compile(r"^(?P<type>[A-Za-z_][\w.]*)(?:: ?(?P<message>.*))?$")
_MARKERS = re.compile(r"^[\s~^]+$")
_CONNECTORS = {
    "The above exception was the direct cause of the following exception:": "cause",
    "During handling of the above exception, another exception occurred:": "context",
}
_MEMBER = re.compile(r"^\s*(?:\+-)?\+?-+ \d+ -+\s*$")
_MARGIN = re.compile(r"^(?:\s{2})*[|+]\s?(?=[^-]|$)")
_NOT_A_MESSAGE = re.compile(
    r"^(?:[WEIF]\d{4} \d\d:|\[[WEIF]\d* |\d{4}-\d\d-\d\d[ T]|(?:ERROR|WARNING|INFO)[: ]|=+$|-{10,}$"
    r"|\[rank ?\d+\]|Exception in thread |Exception ignored in|terminate called)"
)
_LONGEST_MESSAGE = 60
_LONGEST_QUOTE = 500


def parse_tracebacks(text: str) -> list[Raised]:
    """Every traceback in one stream of lines, in order; chained ones as one exception with its causes."""
    return list(_Parser(text.splitlines()).parse())


class _Parser:
    def __init__(self, lines: Iterable[str]) -> None:
        self.lines = [_MARGIN.sub("", line) for line in _without_echoes(lines)]
        self.position = 0

    def parse(self) -> Iterator[Raised]:
        found: list[Raised] = []
        relation: str | None = None
        member = False
        while self.position < len(self.lines):
            line = self.lines[self.position]
            self.position += 1
            stripped = line.strip()
            if stripped in _CONNECTORS:
                relation = _CONNECTORS[stripped]
            elif _MEMBER.match(line):
                member = True
            elif _HEADER.search(line) or self._is_bare_syntax_error(line):
                if not _HEADER.search(line):
                    self.position -= 1
                raised = self._traceback()
                if raised is not None:
                    _append(found, raised, relation, member)
                relation, member = None, False
        yield from found

    def _is_bare_syntax_error(self, line: str) -> bool:
        """A SyntaxError in the script itself is printed without a header."""
        match = _FRAME.match(line)
        if not match or match["function"]:
            return False
        following = self.lines[self.position : self.position + 3]
        return any(re.match(r"(?:Syntax|Indentation|Tab)Error: ", each) for each in following)

    def _traceback(self) -> Raised | None:
        frames: list[Frame] = []
        while self.position < len(self.lines):
            line = self.lines[self.position]
            match = _FRAME.match(line)
            if match:
                frame = Frame(match["file"], int(match["line"]), match["function"] or "<module>")
                if not frames or frames[-1] != frame:
                    frames.append(frame)
            elif _HEADER.search(line) and frames:
                return None
            elif self._is_inside(line, frames):
                if frames and not frames[-1].source and not _MARKERS.match(line):
                    frames[-1] = replace(frames[-1], source=line.strip())
            elif line.strip() and not _HEADER.search(line):
                last = _LAST.match(line.strip())
                if last is None or not frames:
                    return None
                self.position += 1
                return _unsourced(last["type"], self._message(last["message"] or ""), frames)
            self.position += 1
        return None

    def _is_inside(self, line: str, frames: list[Frame]) -> bool:
        return bool(frames) and line.startswith(("    ", "  [Previous line"))

    def _message(self, first: str) -> str:
        """The rest of a message of several lines; it has no end mark, so what looks like a log ends it.

        A message that quotes another process's traceback goes on through that one header.
        """
        lines = [first]
        quotes = self._quotes(first)
        limit = _LONGEST_QUOTE if quotes else _LONGEST_MESSAGE
        quoted = False
        while self.position < len(self.lines) and len(lines) < limit:
            line = self.lines[self.position]
            if _NOT_A_MESSAGE.match(line) or line.strip() in _CONNECTORS or _MEMBER.match(line):
                break
            if _HEADER.search(line):
                if not quotes or (quoted and "Original" not in line):
                    break
                quoted = True
            if not line.strip() and not quotes and not first.endswith(":"):
                break
            lines.append(line)
            self.position += 1
        return "\n".join(lines).strip()

    def _quotes(self, first: str) -> bool:
        following = (line for line in self.lines[self.position : self.position + 3] if line.strip())
        return "Caught " in first or next(following, "").startswith("-- Process ")


def _append(found: list[Raised], raised: Raised, relation: str | None, member: bool) -> None:
    if relation == "cause" and found:
        found[-1] = replace(raised, cause=found[-1])
    elif relation == "context" and found:
        found[-1] = replace(raised, context=found[-1])
    elif member and found:
        found[-1] = replace(found[-1], group=(*found[-1].group, raised))
    else:
        found.append(raised)


def _unsourced(name: str, message: str, frames: list[Frame]) -> Raised:
    return Raised(type=name.rsplit(".", 1)[-1], message=message, frames=tuple(frames))


def _without_echoes(lines: Iterable[str]) -> Iterator[str]:
    """Two ranks that fail alike and share a stream print each line twice in a row."""
    previous = None
    for line in lines:
        if line != previous or not line.strip():
            yield line
        previous = line
