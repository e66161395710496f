"""Printed tracebacks back into data: logs, worker and replica messages, interleaved ranks."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ranksafe.runs.explain.evidence import Raised
from ranksafe.runs.log_text.progress import is_progress
from ranksafe.runs.model import Frame

_HEADER = re.compile(
    r"(?:Original |Exception Group |Remote )?Traceback \(most recent call last\):\s*$"
)
_OF_RAY = re.compile(r"\bray::\S+ \(pid=\d+, ip=\S+")
"""Above the frames of a task (Ray 2.x, ``RayTaskError``), where only the exception's text was printed."""
_FRAME = re.compile(
    r'^(?:> ?|\s*)File "(?P<file>[^"]+)", line (?P<line>\d+)(?:, in(?: (?P<function>.+?))?)?\s*$'
)
_LAST = re.compile(r"^(?P<type>[A-Za-z_][\w.]*)(?:: ?(?P<message>.*))?$")
_BROKEN_SOURCE = re.compile(r"(?:Syntax|Indentation|Tab)Error: ")
_MARKERS = re.compile(r"^[\s~^]+$")
_CONNECTORS = {
    "The above exception was the direct cause of the following exception:": "cause",
    "During handling of the above exception, another exception occurred:": "context",
}
_MEMBER = re.compile(r"^\s*(?:\+-)?\+?-+ \d+ -+\s*$")
_MARGIN = re.compile(r"^(?:\s{2})*[|+]\s?(?=[^-]|$)")
_LOGGED = "Message"
"""Under the call stack of a record that ``logging`` could not write: what was to be written."""
_LONGEST_MESSAGE = 60
_LONGEST_QUOTE = 500
_FOREIGN_LINES = 2
_CUT_WITHIN = 4
"""Lines at the beginning of a text in which a traceback without its header may go on."""
_ERROR = re.compile(r"(?:Error|Exception)$")


@dataclass(frozen=True, slots=True)
class Located:
    """A traceback and where in the text it is; lines are counted as the caller counts them."""

    raised: Raised
    first: int
    last: int
    ignored: bool = False
    """Python says that it went on: ``Exception ignored in``."""
    logged: bool = False
    """A log record stands right above it, as ``logging.exception`` writes it: the script caught it."""
    announced: str = ""
    """The line right above it."""


def parse_tracebacks(text: str) -> list[Raised]:
    """Every traceback in one stream of lines, in order; chained ones as one exception with its causes."""
    return [each.raised for each in locate_tracebacks(list(enumerate(text.splitlines())))]


def locate_tracebacks(lines: Sequence[tuple[int, str]]) -> list[Located]:
    """The same for numbered lines, with the numbers of each traceback's first and last line."""
    return _Parser(lines).parse()


def loose_lines(lines: Sequence[tuple[int, str]]) -> list[tuple[int, str]]:
    """The lines that are in no traceback."""
    return outside(lines, locate_tracebacks(lines))


def outside(lines: Sequence[tuple[int, str]], found: Iterable[Located]) -> list[tuple[int, str]]:
    """The lines that are in none of these tracebacks."""
    inside: set[int] = set()
    for each in found:
        inside.update(range(each.first, each.last + 1))
    return [line for line in lines if line[0] not in inside]


def cut_traceback(lines: Sequence[tuple[int, str]]) -> Raised | None:
    """The traceback in whose middle the lines end: without a type, its message is the last line there is."""
    parser = _Parser(lines)
    parser.parse()
    if not parser.unfinished:
        return None
    last = next((line.strip() for line in reversed(parser.lines) if line.strip()), "")
    return Raised("", last, parser.unfinished)


class _Parser:
    def __init__(self, lines: Sequence[tuple[int, str]]) -> None:
        self.numbers = [number for number, _ in lines]
        self.lines = [_MARGIN.sub("", line) for _, line in lines]
        self.position = 0
        self.headed = False
        self.unfinished: tuple[Frame, ...] = ()

    def parse(self) -> list[Located]:
        found: list[Located] = []
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
            elif (
                (is_headed := self._is_headed(line))
                or self._is_bare_syntax_error(line)
                or self._is_cut(line)
            ):
                cut = not is_headed and self._is_cut(line)
                if not is_headed:
                    self.position -= 1
                first = max(self.position, 1)
                self.headed = True
                announced = self._announcement(first - 1)
                raised = self._traceback()
                if raised is not None and cut and not _ERROR.search(raised.type):
                    raised = None
                if raised is not None:
                    if thread := _IN_THREAD.match(announced):
                        raised = replace(raised, where=thread["name"])
                    last = min(self.position, len(self.numbers)) - 1
                    each = Located(
                        raised,
                        self.numbers[min(first, len(self.numbers)) - 1],
                        self.numbers[last],
                        ignored=announced.startswith(_IGNORED),
                        logged=_RECORD.search(announced) is not None,
                        announced=announced,
                    )
                    _append(found, each, relation, member)
                elif relation and found and self.unfinished:
                    found[-1] = self._with_calls(found[-1])
                relation, member = None, False
        return found

    def _with_calls(self, before: Located) -> Located:
        """The exception with the lines that led to it, from the one it led to, in whose traceback the text ends."""
        frames = (*self.unfinished, *before.raised.frames)
        self.unfinished = ()
        return replace(before, raised=replace(before.raised, frames=frames), last=self.numbers[-1])

    def _announcement(self, header: int) -> str:
        """The last line before a traceback, which may say whose it is."""
        before = self.lines[max(0, header - 3) : header]
        return next((line.strip() for line in reversed(before) if line.strip()), "")

    def _is_headed(self, line: str) -> bool:
        if _HEADER.search(line):
            return True
        following = self.lines[self.position : self.position + 1]
        return bool(following and _OF_RAY.search(line) and _FRAME.match(following[0]))

    def _is_bare_syntax_error(self, line: str) -> bool:
        """A SyntaxError in the script itself is printed without a header."""
        match = _FRAME.match(line)
        if not match or match["function"]:
            return False
        following = self.lines[self.position : self.position + 3]
        return any(_BROKEN_SOURCE.match(each) for each in following)

    def _is_cut(self, line: str) -> bool:
        """Whether the text begins in the middle of a traceback, as the end of a longer log does."""
        return not self.headed and self.position <= _CUT_WITHIN and _FRAME.match(line) is not None

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
                if frames and not _BROKEN_SOURCE.match(line) and self._goes_on():
                    self.position += 1
                    continue
                last = _LAST.match(line.strip())
                if last is None or not frames or last["type"] == _LOGGED:
                    if not any(each.strip() for each in self.lines[self.position + 1 :]):
                        self.unfinished = tuple(frames)
                    return None
                self.position += 1
                name = last["type"].rsplit(".", 1)[-1]
                message = self._message(name, last["message"] or "", frames[-1].source)
                return Raised(name, message, tuple(frames))
            self.position += 1
        self.unfinished = tuple(frames)
        return None

    def _is_inside(self, line: str, frames: list[Frame]) -> bool:
        return bool(frames) and line.startswith(("    ", "  [Previous line"))

    def _goes_on(self) -> bool:
        """Whether this line is another process's, written into the middle of the traceback."""
        # Ray leaves the marker lines of the frames that it takes out.
        following = (line for line in self.lines[self.position + 1 :] if not _MARKERS.match(line))
        for line in itertools.islice(following, _FOREIGN_LINES):
            if _FRAME.match(line):
                return True
            if _HEADER.search(line) or line.strip() in _CONNECTORS:
                return False
        return False

    def _message(self, name: str, first: str, source: str) -> str:
        """The rest of a message of several lines; it has no end mark, so what looks like a log ends it.

        A message that quotes another process's traceback goes on through that one header. Python's own errors about
        names, keys and files take one line. Where the same words come again, perhaps under the same ``source`` line,
        another process says them.
        """
        lines = [first]
        own = self.lines[self.position - 1].strip()
        quotes = self._quotes(first)
        if (_ONE_LINE.fullmatch(name) or _OF_ONE_LINE.match(first)) and not quotes:
            return first.strip()
        limit = _LONGEST_QUOTE if quotes else _LONGEST_MESSAGE
        quoted = False
        while self.position < len(self.lines) and len(lines) < limit:
            line = self.lines[self.position]
            if _NOT_A_MESSAGE.match(line) or _MEMBER.match(line):
                break
            if line.strip().endswith(own) and not quotes:
                if lines[-1].strip() == source and len(lines) > 1:
                    lines.pop()
                break
            if is_progress(line) and not quotes:
                break
            if line.strip() in _CONNECTORS:
                if not (quotes and quoted):
                    break
                # The quoted process's own chain goes on.
                quoted = False
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


def _append(found: list[Located], each: Located, relation: str | None, member: bool) -> None:
    if not found or not (relation or member):
        found.append(each)
        return
    before, raised = found[-1].raised, each.raised
    if relation == "context" and before.type in _INTERRUPTIONS:
        # What fails while an interruption ends the program follows from it.
        raised = before
    elif relation == "cause":
        raised = replace(raised, cause=before)
    elif relation == "context":
        raised = replace(raised, context=before)
    else:
        raised = replace(before, group=(*before.group, raised))
    found[-1] = replace(found[-1], raised=raised, last=each.last)


_INTERRUPTIONS = ("KeyboardInterrupt", "SignalException")
_IN_THREAD = re.compile(r"^(?:Exception in thread |(?=Process \S+-\d+:$))(?P<name>.+?):?$")
_RECORD = re.compile(r"(?:^|[\s\[|])(?:ERROR|WARNING|CRITICAL)\b[\]:|\s-]")
_IGNORED = (
    "Error in atexit._run_exitfuncs",
    "Exception ignored in",
    "Exception ignored on",
)
_NOT_A_MESSAGE = re.compile(
    r"^(?:[WEIF]\d{4} \d\d:|\d{1,2}-[A-Z][a-z]{2}-\d{4} |\[[WEIF]\d* |\[?\d{4}-\d\d-\d\d[ T]|\d\d:\d\d:\d\d[.,]\d+ +\|"
    r"|\[\d\d:\d\d:\d\d|\S+\.py:\d+: \w*Warning: |Time to load \w+ op: |\[rank: \d+\] Child process"
    r"|(?:ERROR|WARNING|INFO)[: ]|=+$|-{10,}$|\[rank ?\d+\]|Exception in thread |Exception ignored in"
    r"|terminate called|\[W\d* |wandb: |\(raylet|slurmstepd|srun: |sbatch: |Process \w+-\d+:$|Killed$|Terminated$"
    r"|\"{3}$)"
)
"""What looks like a log's or a launcher's line, and not like the rest of a message."""
_OF_ONE_LINE = re.compile(
    r"attempted relative import |'[\w.]+' object (?:is not|has no attribute '\w+'$)"
)
_ONE_LINE = re.compile(
    r"(?:Key|Index|Name|UnboundLocal|ZeroDivision|Recursion|JSONDecode|UnicodeDecode|ModuleNotFound|FileNotFound|Syntax"
    r"|Indentation|Tab|OutOfMemory|DistNetwork|Permission|IsADirectory|NotADirectory|FileExists)Error"
)
"""Types, and first words, of exceptions whose message has one line."""
