"""How a scheduler says that a job ended, told together with what its ranks left."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from ranksafe.localization import Language, Translated, both
from ranksafe.runs.explain import lost_node
from ranksafe.runs.explain.evidence import Evidence, parse_entry, read_tail
from ranksafe.runs.explain.signatures import meaning_of_end
from ranksafe.runs.model import Failure

FILE: Final = "slurm.json"
"""In a run's directory: {"job", "state", "reason", "nodes", "down", "exit", "signal", "began", "directory"}."""

_LOST_NODE = re.compile(r"error: Node failure on (?P<nodes>[\w.,\[\]-]+)")
_NOT_HERE = re.compile(
    r"^ranksafe: node (?P<node>\S+) cannot use (?P<path>.+): (?P<reason>[^:\n]+)$", re.MULTILINE
)
"""`compute_node.node.NOT_HERE`."""
_NO_INTERPRETER = re.compile(
    r"slurm_script: (?:line )?2: (?:exec: )?(?P<path>[^:]+): (?P<reason>not found|No such file.*|Permission denied)"
)
"""The shell's complaint (dash 0.5, bash 5) about what the batch script starts."""


@dataclass(frozen=True, slots=True)
class JobEnd:
    """Of a Slurm job."""

    job: str
    state: str
    """As scontrol calls it."""
    nodes: tuple[str, ...]
    lost: tuple[str, ...] = ()
    """Those that failed, as far as somebody names them."""
    unusable: Translated | None = None
    """What a node could not use, as a message."""


def load_job_end(directory: Path) -> JobEnd | None:
    """What a run's directory has; None where the run was no job."""
    try:
        end = parse_entry((directory / FILE).read_text(encoding="utf-8"))
        batch = read_tail(directory / "batch.log")
        logs = {
            int(path.name.split(".")[1]): read_tail(path) for path in directory.glob("node.*.log")
        }
        nodes = tuple(str(name) for name in end.get("nodes") or ())
        down = [str(name) for name in end.get("down") or ()]
        named = [name for found in _LOST_NODE.finditer(batch) for name in found["nodes"].split(",")]
        return JobEnd(
            job=str(end["job"]),
            state=_state(end),
            nodes=nodes,
            lost=tuple(dict.fromkeys((*named, *down))),
            unusable=_never_began(end, nodes) or _unusable(batch, logs, nodes),
        )
    except (OSError, KeyError, ValueError, TypeError):
        return None


def _state(end: Mapping[str, Any]) -> str:
    """What a forgotten job's own last word tells counts as Slurm's."""
    state, word = str(end.get("state", "UNKNOWN")), end.get("script_status")
    if state == "UNKNOWN" and isinstance(word, int):
        return "FAILED" if word else "COMPLETED"
    return state


def with_job_end(
    failures: Sequence[Failure], evidence: Evidence, end: JobEnd | None, language: Language
) -> list[Failure]:
    """``failures`` with the scheduler's part in them: its own act comes first, as the cause."""
    if end is None or evidence.status == "cancelled":
        return list(failures)
    if end.lost and end.state not in _STATES and lost_node.is_cause(failures, end.lost, evidence):
        # The script saw its peers' ends, and ended, before Slurm missed the node.
        end = replace(end, state="NODE_FAIL")
    if end.state in ("TIMEOUT", "DEADLINE"):
        told = meaning_of_end("slurm TIMEOUT")
        return [replace(each, explanation=both(told, each.explanation)) for each in failures]
    own = _own_failure(end, language)
    if own is None:
        return list(failures)
    if own.kind == lost_node.KIND:
        return lost_node.with_ranks(own, failures, end.lost or end.nodes, evidence, language)
    # What is told of the run as a whole is told better here.
    felt = [replace(each, root_cause=False) for each in failures if each.rank is not None]
    return [own, *felt]


def _own_failure(end: JobEnd, language: Language) -> Failure | None:
    """Of the job as a whole."""
    values = {"job": end.job, "node": ", ".join(end.lost or end.nodes) or "?"}
    if end.unusable is not None:
        kind = "not-on-the-node"
        return Failure.without_place(kind, end.unusable, meaning_of_end(kind), language)
    if end.state not in _STATES:
        return None
    kind, message = _STATES[end.state]
    explanation = meaning_of_end(f"slurm {end.state}")
    return Failure.without_place(kind, message.filled(**values), explanation, language)


def _never_began(end: Mapping[str, Any], nodes: Sequence[str]) -> Translated | None:
    if end.get("began") is not False or end.get("state") != "FAILED":
        return None
    node = nodes[0] if nodes else "?"
    return _UNUSABLE.filled(node=node, path=end.get("directory", "?"), reason=_NOT_THERE)


def _unusable(batch: str, logs: Mapping[int, str], nodes: Sequence[str]) -> Translated | None:
    for _, text in sorted(logs.items()):
        if found := _NOT_HERE.search(text):
            return _UNUSABLE.filled(**found.groupdict())
    if found := _NO_INTERPRETER.search(batch):
        return _UNUSABLE.filled(node=nodes[0] if nodes else "?", **found.groupdict())
    return None


_UNUSABLE = Translated(
    en="node {node} cannot use {path}: {reason}", zh_cn="节点 {node} 无法使用 {path}：{reason}"
)
_NOT_THERE = Translated(en="it is not there", zh_cn="不存在")
_STATES = {
    "NODE_FAIL": (
        "node-failure",
        Translated("node {node} failed (job {job})", "节点 {node} 发生故障（作业 {job}）"),
    ),
    "BOOT_FAIL": (
        "node-failure",
        Translated("node {node} did not start (job {job})", "节点 {node} 未能启动（作业 {job}）"),
    ),
    "PREEMPTED": ("preempted", Translated("job {job} was preempted", "作业 {job} 被抢占")),
    "UNKNOWN": (
        "run-lost",
        Translated(
            "Slurm does not know any more how job {job} ended",
            "Slurm 已不再保留作业 {job} 的结束状态",
        ),
    ),
}
