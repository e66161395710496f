"""Whether all ranks that a log tells of failed alike, so that none is to be singled out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ranksafe.runs.explain.alike import gist, said_alike
from ranksafe.runs.explain.deaths import CRASHES
from ranksafe.runs.explain.evidence import LOOSE, Evidence, Raised
from ranksafe.runs.explain.launcher_report import LAUNCHER_ERRORS, LauncherReport, read_launcher
from ranksafe.runs.explain.locate import UserCode
from ranksafe.runs.explain.signatures import match
from ranksafe.runs.explain.traceback_text import Located, locate_tracebacks
from ranksafe.runs.explain.unfold import spawned_rank
from ranksafe.runs.log_text.reader import Line, SaidBy, Stream

LAUNCHER_WORDS = LAUNCHER_ERRORS | {"SignalException"}
"""What launchers raise."""
_STARTS_SCRIPTS = re.compile(
    r"accelerate/(?:commands|utils)/|torch/distributed/|deepspeed/launcher/"
)
_LAUNCHER_FILE = re.compile(
    r"torch/distributed/(?:run|launch)\.py$|accelerate/commands/launch\.py$"
)
_LAUNCH_COMMAND = re.compile(
    r"^Command '\[?'?(?:\S*/)?(?:torchrun|accelerate|deepspeed|mpirun|mpiexec|srun)\b"
    r"|torch\.distributed\.(?:run|launch)\b"
)
"""In Python's message about a command that failed."""
RESTARTED = re.compile(r"will restart worker group", re.IGNORECASE)
"""torch.distributed.elastic's agent, before another attempt."""
_LAUNCHED = re.compile(
    r"torch[./]distributed[./](?:run|launch|elastic)|multi_gpu_launcher|deepspeed_launcher|^srun: |launch\.py:\d+"
    r"|ChildFailedError|failed \(exitcode: |Sending process \d+ closing signal|ray::\w"
    r"|GLOBAL_RANK: \d+, MEMBER: \d+/(?:[2-9]|1\d)",
    re.MULTILINE,
)
"""Words of launchers, of Ray about its tasks, and of Lightning (1.0 to 2.x) as each process joins."""


def ranks_alike(evidence: Evidence, said: SaidBy) -> int:
    """How many ranks failed, if several did and all in the same way; else 0."""
    ranks = evidence.ranks.values()
    raised = {
        rank.raised_at: rank.raised for rank in ranks if rank.raised and rank.raised_at != LOOSE
    }
    loose: dict[float | None, Raised] = {}
    for lines in said.others:
        found = lines.once(locate_tracebacks)
        over = launchers_end(lines)
        loose.update(
            (float(each.first), each.raised)
            for each in found
            if (not over or each.first < over or _is_quoted(each, lines))
            and counts(each)
            # What ended a thread, and not a process of its own.
            and not (each.raised.where and not each.raised.where.startswith("Process "))
            # What a rank's logger printed, and the rank then raised.
            and not (each.logged and any(said_alike(each.raised, one) for one in raised.values()))
        )
    if RESTARTED.search(evidence.launcher):
        # The same rank may have printed it once for every attempt.
        loose = dict(list(loose.items())[:1])
    raised |= _without_copies(loose, raised.values())
    if not any(each.type for each in raised.values()):
        return _ended_alike(read_launcher(evidence.launcher))
    if len(raised) < 2 or any(each.group or follows(each) for each in raised.values()):
        return 0
    return len(raised) if len({gist(each) for each in raised.values()}) == 1 else 0


def launchers_end(lines: Stream) -> int:
    """Where a launcher's own exception begins, the last one; 0: nowhere. What stands after it is of those who started
    the launcher, or comes of its end."""
    found = lines.once(locate_tracebacks)
    return max((each.first for each in found if not counts(each) and not each.ignored), default=0)


def _without_copies(
    loose: Mapping[float | None, Raised], of_ranks: Iterable[Raised]
) -> dict[float | None, Raised]:
    """Tracebacks of nobody, but for what a rank printed twice: Python's own way, and with its number."""
    known = list(of_ranks)
    kept = {}
    for at, each in loose.items():
        if each in known:
            known.remove(each)
        else:
            kept[at] = each
    return kept


def _is_quoted(each: Located, lines: Iterable[Line]) -> bool:
    """Whether a launcher's report quotes the traceback (torch.distributed.elastic's ``record``)."""
    header = next((text for number, text in lines if number == each.first), "")
    return header.lstrip().startswith("traceback")


def was_launched(text: str) -> bool:
    """Whether a launcher of several processes speaks in this text."""
    return _LAUNCHED.search(text) is not None


def is_open_ended(evidence: Evidence, said: SaidBy) -> bool:
    """Whether there may have been more ranks than the log shows: one that never spoke is not in it, and of spawned
    processes only one is told of."""
    if any(
        rank.raised and spawned_rank(rank.raised) is not None for rank in evidence.ranks.values()
    ):
        return True
    return any(number >= 0 for number in said.ranks) or was_launched(evidence.launcher)


def counts(each: Located) -> bool:
    """Whether a traceback is a rank's own, and not one that went on or a launcher's."""
    if each.ignored:
        return False
    return each.raised.type not in LAUNCHER_WORDS or _calls_a_program(each.raised)


def _calls_a_program(raised: Raised) -> bool:
    """Whether the user's own code started a program that failed (ffmpeg, git), and not a launcher the script."""
    if raised.type != "CalledProcessError" or _LAUNCH_COMMAND.search(raised.message):
        return False
    names = [frame.filename.replace("\\", "/") for frame in raised.frames]
    own = UserCode((), anywhere=True)
    return any(map(own.contains, names)) and not any(map(_STARTS_SCRIPTS.search, names))


def is_launchers(raised: Raised) -> bool:
    """Whether the launcher itself failed, before any rank existed."""
    return any(_LAUNCHER_FILE.search(frame.filename) for frame in raised.frames)


def kind_of(raised: Raised) -> str | None:
    """The kind of failure that an exception or a printed message is known as."""
    known = match(raised.text, raised.frames)
    return None if known is None else known[0].kind


def follows(raised: Raised) -> bool:
    """Whether the exception only tells of another rank's end."""
    known = match(raised.text, raised.frames)
    return known is not None and known[0].secondary


def _ended_alike(report: LauncherReport) -> int:
    """Every rank left with the same status, or crashed with the same signal; the launcher's signal ended none."""
    statuses = set(report.exits.values())
    stopped = report.stopped_pids - set(report.pids.values())
    if len(report.exits) < 2 or len(statuses) != 1 or stopped:
        return 0
    status = statuses.pop()
    return len(report.exits) if status > 0 or status in CRASHES else 0
