"""What a look at a cluster found, checked and put into words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ranksafe.localization import Translated
from ranksafe.runs.errors import RunNotPossible
from ranksafe.runs.hosts.protocol import Host
from ranksafe.runs.interpreter import DISTRIBUTIONS, PROBE, Interpreter
from ranksafe.runs.model import RunRequest
from ranksafe.runs.on_host import program
from ranksafe.runs.targets.slurm.settings import Cluster

_LOOK_SECONDS = 300.0
"""Far more than a busy controller takes; each question has its own, shorter limit."""
_NEEDED_BYTES = 20 * 2**20
_GPUS = re.compile(r"gpu(?::(?P<type>[^:(,]+))?:(?P<count>\d+)")
_OUT_OF_SERVICE = re.compile(r"down|drain|fail|maint|unknown|power|inval|reserved|not_respond")


@dataclass(frozen=True, slots=True)
class Partition:
    """A line of sinfo: nodes of a partition that are alike."""

    name: str
    is_default: bool
    time: str
    nodes: int
    state: str
    gpus: int
    gpus_used: int
    """Of all these nodes."""

    @property
    def free(self) -> int:
        """GPUs that a job could have."""
        return 0 if _OUT_OF_SERVICE.search(self.state) else self.gpus - self.gpus_used


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """All that is known before a job is submitted."""

    slurm: str
    interpreter: Interpreter
    folder: str
    """Of the runs, absolute."""
    free_bytes: int
    accounting: bool
    partitions: tuple[Partition, ...]


def look_at(cluster: Cluster, host: Host, request: RunRequest) -> ClusterFacts:
    """Ask the login node.

    Raises RunNotPossible where Slurm is not there, the interpreter does not run, or the runs' folder cannot be used.
    """
    asked = {
        "interpreter": _choice(cluster, request),
        "probe": PROBE,
        "distributions": DISTRIBUTIONS,
        "folder": cluster.folder,
        "commands": cluster.commands,
    }
    text = program("targets.slurm.login_node.look", "on_host.request", "on_host.environments")
    found = host.ask(text, asked, timeout_seconds=_LOOK_SECONDS)
    if "missing" in found:
        raise RunNotPossible(_NO_SLURM.filled(host=host.name, reason=found["missing"]))
    if "silent" in found:
        raise RunNotPossible(_SILENT.filled(host=host.name, reason=found["silent"]))
    if "broken" in found:
        there = ", ".join(found.get("environments") or ())
        broken = _BROKEN.filled(
            path=found["shown"],
            host=host.name,
            reason=found["broken"],
            there=_THERE.filled(names=there) if there else "",
            name=cluster.name,
        )
        raise RunNotPossible(broken)
    if not found["writable"] or found["free_bytes"] < _NEEDED_BYTES:
        reason = _FULL if found["writable"] else _FORBIDDEN
        raise RunNotPossible(_UNUSABLE.filled(folder=found["folder"], reason=reason))
    facts = found["interpreter"]
    return ClusterFacts(
        slurm=str(found["slurm"]),
        interpreter=Interpreter(
            Path(facts["path"]), facts["python"], facts["versions"], facts["cuda"]
        ),
        folder=str(found["folder"]),
        free_bytes=int(found["free_bytes"]),
        accounting=bool(found["accounting"]),
        partitions=_partitions(found["partitions"]),
    )


def _choice(cluster: Cluster, request: RunRequest) -> dict[str, str]:
    """As `on_host.environments` reads it."""
    if request.interpreter is None and cluster.conda is not None:
        return {"conda": cluster.conda}
    return {"program": str(request.interpreter or cluster.interpreter)}


def described_cluster(facts: ClusterFacts, cluster: Cluster, host: Host) -> list[Translated]:
    """For people, one sentence each."""
    found = [_SLURM.filled(version=facts.slurm, host=host.name)]
    for each in facts.partitions:
        if cluster.partition not in (None, each.name):
            continue
        state = Translated(each.state, each.state)
        found.append(
            (_PARTITION_GPUS if each.gpus else _PARTITION).filled(
                name=each.name + ("*" if each.is_default else ""),
                nodes=each.nodes,
                state=state,
                free=each.free,
                gpus=each.gpus,
                time=each.time,
            )
        )
    found.append(_FREE_SPACE.filled(folder=facts.folder, free=f"{facts.free_bytes / 2**30:.1f}"))
    if not facts.accounting:
        found.append(_NO_ACCOUNTING)
    return found


def check_partition(facts: ClusterFacts, cluster: Cluster) -> None:
    """Raise RunNotPossible for a partition that is not there."""
    names = sorted({each.name for each in facts.partitions})
    if names and cluster.partition is not None and cluster.partition not in names:
        # A job may name several, separated by commas.
        if not set(cluster.partition.split(",")) <= set(names):
            wrong = _NO_PARTITION.filled(name=cluster.partition, known=", ".join(names))
            raise RunNotPossible(wrong)


def _partitions(lines: Sequence[Sequence[str]]) -> tuple[Partition, ...]:
    return tuple(_partition(line) for line in lines if len(line) >= 6 and line[2].isdigit())


def _partition(line: Sequence[str]) -> Partition:
    name, time, nodes, state, there, used = line[:6]
    return Partition(
        name=name.rstrip("*"),
        is_default=name.endswith("*"),
        time=time,
        nodes=int(nodes),
        state=state.rstrip("*~#!%$@^-"),
        gpus=_count(there) * int(nodes),
        gpus_used=_count(used) * int(nodes),
    )


def _count(resources: str) -> int:
    return sum(int(match["count"]) for match in _GPUS.finditer(resources))


_NO_SLURM = Translated(
    en="{host} has no Slurm ({reason}): name the cluster's login node in its settings, or run ranksafe there.",
    zh_cn="{host} 上没有 Slurm（{reason}）：请在设置中指定该集群的登录节点，或在登录节点上运行 ranksafe。",
)
_SILENT = Translated(
    en="Slurm's controller does not answer on {host}: {reason}",
    zh_cn="{host} 上的 Slurm 控制器没有应答：{reason}",
)
_BROKEN = Translated(
    en="The Python interpreter {path} does not run on {host}: {reason}.{there} Set interpreter of the cluster {name} "
    "to the one of your environment there, or conda to the environment's name.",
    zh_cn="Python 解释器 {path} 无法在 {host} 上运行：{reason}。{there}"
    "请把集群 {name} 的 interpreter 设置为您在该处环境中的解释器，或把 conda 设置为环境名称。",
)
_THERE = Translated(en=" Conda environments there: {names}.", zh_cn="那里的 conda 环境：{names}。")
_UNUSABLE = Translated(
    en="The runs' folder {folder} cannot be used: {reason}",
    zh_cn="无法使用运行目录 {folder}：{reason}",
)
_FULL = Translated(en="the disk is full", zh_cn="磁盘已满")
_FORBIDDEN = Translated(en="permission denied", zh_cn="没有权限")
_SLURM = Translated(en="Slurm {version} on {host}", zh_cn="Slurm {version}（{host}）")
_PARTITION_GPUS = Translated(
    en="partition {name}: {nodes} nodes {state}, {free} of {gpus} GPUs free, at most {time}",
    zh_cn="分区 {name}：{nodes} 个节点 {state}，{gpus} 个 GPU 中 {free} 个空闲，时限 {time}",
)
_PARTITION = Translated(
    en="partition {name}: {nodes} nodes {state}, no GPUs, at most {time}",
    zh_cn="分区 {name}：{nodes} 个节点 {state}，没有 GPU，时限 {time}",
)
_FREE_SPACE = Translated(
    en="runs on the cluster: {folder} ({free} GiB free)",
    zh_cn="集群上的运行目录：{folder}（剩余 {free} GiB）",
)
_NO_ACCOUNTING = Translated(
    en="the cluster keeps no accounts: how a job ended is known for minutes only",
    zh_cn="该集群没有记账服务：作业的结束状态只能保留几分钟",
)
_NO_PARTITION = Translated(
    en='There is no partition "{name}"; there are {known}.',
    zh_cn="没有分区“{name}”；可用分区：{known}。",
)
