"""Whose line it is: the marks that launchers, schedulers and log collectors put before it.

The forms, and where they were read: torch's own excepthook ``[rank3]: `` (torch 2.13.0,
``torch/distributed/distributed_c10d.py``, ``_distributed_excepthook``); ``torchrun --tee`` ``[default3]:``;
``srun --label`` ``3: ``; Ray ``(RayTrainWorker pid=7, ip=10.0.0.2) ``; SkyPilot ``(node-0, worker1, rank=1, pid=7,
ip=10.0.0.2) `` where the rank is the node's (skypilot-org/skypilot#1380); ``kubectl logs --prefix`` ``[pod/p/c] ``;
stern ``pod container ``; pdsh (DeepSpeed's launcher) ``host: ``; Open MPI ``[1,3]<stderr>:``; docker compose
``worker-1  | ``; vLLM's logger ``(VllmWorkerProcess pid=7) ERROR 09-23 10:49:22 worker.py:226] ``
(vllm-project/vllm#8691), with the file in brackets in later versions; TorchX ``role/0 ``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

_PREFIX = re.compile(
    r"\[rank ?(?P<rank>\d{1,6})\]:? ?"  # torch's excepthook, and our own log
    r"|\[(?:default|trainer|worker)(?P<local>\d{1,4})\]:"  # torchrun --tee
    r"|\((?:[^()\n]{0,80}, )?(?:head|worker\d+), rank=(?P<node>\d+), pid=\d+(?:, ip=[\w.:]+)?\) ?"  # SkyPilot
    r"|\((?P<machine>[A-Za-z][\w.-]*), pid=\d+(?:, ip=[\w.:]+)?\) ?"  # SkyPilot with one machine
    r"|\((?P<actor>\w[\w.:-]*)(?: rank=(?P<ray>\d+),?)? pid=(?P<pid>\d+)(?:, ip=(?P<ip>[\w.:]+))?\) ?"
    r"|\[pod/(?P<pod>[\w.-]+)/[\w.-]+\] ?"  # kubectl logs --prefix
    r"|\[(?P<horovod>\d+)\]<std(?:out|err)>:"  # horovodrun
    r"|\[\d+,(?:mpirank:)?(?P<mpi>\d+)(?:,[\w.-]+)?\]<std(?:out|err)>:"  # mpirun --tag-output
    r"|(?P<compose>[a-z0-9][\w.-]*[-_]\d+) +\| "  # docker compose
    r"|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d) (?P<time>)"  # kubectl logs --timestamps
    r"|[\w.-]+/\d+ (?=\[(?:default|rank)\d+\])(?P<replica>)"  # TorchX: role/replica
    r"|(?P<launcher>\[launcher\]) ?"
    r"|(?:ERROR|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d \[?[\w./-]+\.py:\d+\] ?(?P<logger>)"  # vLLM's logger
)
_TRACEBACK = r"Traceback \(most|  File \""
_LABELS = tuple(
    (re.compile(rf"\A{label}"), re.compile(rf"\A{label}(?:{_TRACEBACK}|{telling})"))
    for label, telling in (
        # srun --label
        (r"(?P<task>\d{1,5}): ", r"\[rank\d+\]|\w+(?:Error|Exception): "),
        # Hydra's mpirun -l (MPICH, Intel MPI)
        (r"\[(?P<task>\d{1,5})\] ", r"(?!)"),
        # pdsh; machines are numbered
        (
            r"(?=[\w.-]{0,252}\d)(?P<host>[A-Za-z0-9][\w.-]{0,252}): ",
            r"\[(?:rank\d+\]: |default\d+\]:)",
        ),
        # stern
        (
            r"(?=[a-z0-9.]*-)(?P<pod>[a-z0-9][a-z0-9.-]{0,252}) [a-z0-9][a-z0-9-]{0,62} ",
            r"\[rank\d+\]: |\d{4}-\d\d-\d\dT|\w+(?:Error|Exception): ",
        ),
    )
)
"""Marks that are too like other text, and with what behind them they are seen to be marks."""
_FRAME = re.compile(r'(?:  )?File "')
_RAISED = re.compile(r"(?:\w+\.)*\w+(?:Error|Exception): ")
"""The last line of a traceback, which belongs to the lines above it whatever it says."""
RANK_IN_TEXT = re.compile(r"\[(?:PG [^\[\]]*)?Rank (?P<rank>\d+)\]")
"""What torch's own messages begin with, or have in them where nothing marks the line."""
_BEGINS_LATER = re.compile(
    r"(?<!^)(?=\[rank\d+\]:(?: |\[[EWIF]))|(?<=\])(?=[EWIF]\d{4} \d\d:\d\d|Traceback \(most|ERROR:)"
)
_NOBODYS = ("time", "launcher", "logger", "replica")
"""Marks that say nothing about whose line it is."""
_NODE_KINDS = ("node", "machine", "pod", "compose")


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a line comes from, as far as its marks tell."""

    source: str
    """The marks but the rank's own; "" for none. All lines of one process have the same."""
    number: int | None = None
    """The rank that the source itself names: a task, a local rank, a worker; None: it names none."""
    is_node: bool = False
    """Whether the source is a machine or a pod, which may have several ranks."""
    rank: int | None = None
    """The rank that the line itself names."""


class Prefixes:
    """Takes the marks off lines. Labels that are too like other text count only once they were seen to be labels."""

    def __init__(self) -> None:
        self._labels: set[str] = set()
        self._stamps: list[re.Pattern[str]] = []
        self._stamped = ""

    def split(self, line: str) -> tuple[Origin, str]:
        """The origin of one line, and the line without its marks."""
        if not line or line[0].isspace():
            return _NOBODY, line
        origin, line = self._without_label(line)
        origin, line = self._without_marks(origin, line)
        if origin.rank is None and "ank " in line and not _RAISED.match(line):
            named = RANK_IN_TEXT.search(line)
            origin = origin if named is None else replace(origin, rank=int(named["rank"]))
        return origin, line

    def _without_label(self, line: str) -> tuple[Origin, str]:
        """Take off what is a mark only where it was seen to be one: a task's number, a machine, a pod."""
        for label, surely in _LABELS:
            found = label.match(line)
            if found is None:
                continue
            ((kind, name),) = found.groupdict().items()
            seen = name if kind == "host" else label.pattern
            if seen not in self._labels:
                if len(self._labels) >= _MOST_LABELS or not surely.match(line):
                    continue
                self._labels.add(seen)
            rest = line[found.end() :]
            return (
                Origin(f"task{name}", int(name)) if kind == "task" else Origin(name, is_node=True)
            ), rest
        return _NOBODY, line

    def _without_marks(self, origin: Origin, line: str) -> tuple[Origin, str]:
        """Take off what can be nothing but a mark, as often as there is one."""
        while found := _PREFIX.match(line) or self._stamp(line):
            line = line[found.end() :]
            if found.re is _PREFIX:
                origin = _with_mark(origin, found)
            elif said := _RANK_IN_STAMP.search(found.group()):
                origin = replace(origin, rank=int(said["rank"]))
        return origin, line

    def _stamp(self, line: str) -> re.Match[str] | None:
        """What somebody put before every line (time, level, a quoting mark), once a traceback has shown its form."""
        for stamp in self._stamps:
            if found := stamp.match(line):
                return found
        if "Traceback (most" in line:
            self._stamped = line[: line.index("Traceback (most")]
        elif self._stamped and (frame := _FRAME.search(line)) and len(self._stamps) < _MOST_STAMPS:
            # Some loggers strip the line: the frame has lost its indentation.
            shape = _shape(line[: frame.start()])
            if shape == _shape(self._stamped):
                self._stamps.append(re.compile(shape))
                return self._stamps[-1].match(line)
        return None


def _with_mark(origin: Origin, found: re.Match[str]) -> Origin:
    """The origin with what one of the launchers' and collectors' marks says."""
    groups = found.groupdict()
    if groups["rank"] is not None:
        return replace(origin, rank=int(groups["rank"]))
    if any(groups[name] is not None for name in _NOBODYS):
        return origin
    source = f"{origin.source} {found.group().strip(' :')}".lstrip()
    if found.lastgroup in _NODE_KINDS:
        return replace(origin, source=source, is_node=True)
    own = groups["local"] or groups["ray"] or groups["mpi"] or groups["horovod"]
    return replace(origin, source=source, number=None if own is None else int(own), is_node=False)


def _shape(stamp: str) -> str:
    """A pattern for stamps that differ from this one in their numbers only."""
    return re.sub(r"\d+", r"\\d+", re.escape(stamp))


def pieces(text: str) -> list[str]:
    """A line without its marks, cut where ranks wrote into one another's lines, or after a progress bar."""
    if text.find("[rank", 1) < 0 and "%|" not in text:
        return [text]
    return [piece for piece in _BEGINS_LATER.split(text) if piece] or [text]


_MOST_LABELS = 10_000
_MOST_STAMPS = 8
_RANK_IN_STAMP = re.compile(r"\brank\W{0,2}(?P<rank>\d{1,6})\b", re.IGNORECASE)
_NOBODY = Origin("")
