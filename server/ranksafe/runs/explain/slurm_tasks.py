"""Which task of a job step Slurm saw fail, where it says so itself (``srun: error: node7: task 0: Out Of Memory``)."""

from __future__ import annotations

import re

_FAILED = re.compile(
    r"^srun: error: (?P<node>[\w.-]+): task (?P<task>\d+): "
    r"(?:Out Of Memory|Segmentation fault|Aborted|Bus error|Illegal instruction|Floating point exception)",
    re.MULTILINE,
)
_TASKS = re.compile(r"^srun: error: [^\s:]+: tasks? ([\d,-]+): ", re.MULTILINE)
_EXITED = re.compile(
    r"^srun: error: [^\s:]+: tasks? (?P<tasks>[\d,-]+): Exited with exit code (?P<code>[1-9]\d*)",
    re.MULTILINE,
)
_OTHER_LAUNCHER = re.compile(
    r"torchrun|torch[./]distributed[./](?:run|launch|elastic)|accelerate|deepspeed|local_rank"
)


def failed_task(text: str) -> tuple[int, str] | None:
    """The only task that ended by itself, and its node; None where it is none or several.

    Tasks that srun terminated after that, or killed, are consequences.
    """
    failed = {int(found["task"]): found["node"] for found in _FAILED.finditer(text)}
    return next(iter(failed.items())) if len(failed) == 1 else None


def exited_tasks(text: str) -> list[tuple[int, int]]:
    """Each task that left with a status, and the status, in the order in which srun saw them end.

    None where something else than srun started the ranks, or where srun lists several together.
    """
    found = list(_EXITED.finditer(text))
    if not tasks_are_ranks(text) or not all(each["tasks"].isdigit() for each in found):
        return []
    return [(int(each["tasks"]), int(each["code"])) for each in found]


def tasks_are_ranks(text: str) -> bool:
    """Whether srun started several tasks and nothing else ranks; with a launcher on each node, a task is a node."""
    several = len(set(_TASKS.findall(text))) > 1
    return several and _OTHER_LAUNCHER.search(text) is None
