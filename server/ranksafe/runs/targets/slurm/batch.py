"""What is asked of Slurm for a run: nodes and ranks, sbatch's options, the batch script."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Final

from ranksafe.localization import Translated
from ranksafe.runs.errors import RunNotPossible
from ranksafe.runs.model import RunRequest
from ranksafe.runs.targets.slurm.settings import Cluster

JOB_NAME: Final = "ranksafe-{run}"


@dataclass(frozen=True, slots=True)
class Size:
    """Of a job."""

    nodes: int
    ranks_per_node: int
    gpus_per_node: int
    """0: none are asked for."""

    @property
    def ranks(self) -> int:
        """Of all nodes."""
        return self.nodes * self.ranks_per_node


def size_of(request: RunRequest, cluster: Cluster) -> Size:
    """As few nodes as the wanted ranks need, with the same number on each.

    Raises RunNotPossible for a number that the cluster's settings have no room for, or that does not divide.
    """
    most = cluster.ranks_per_node or max(cluster.gpus_per_node, 1)
    if cluster.gpus_per_node and not request.cpu_ranks:
        most = cluster.gpus_per_node
    wanted = request.gpus or cluster.nodes * most
    nodes = -(-wanted // most)
    if nodes > cluster.nodes:
        raise RunNotPossible(
            _TOO_MANY.filled(wanted=wanted, nodes=cluster.nodes, most=most, name=cluster.name)
        )
    if wanted % nodes:
        raise RunNotPossible(_UNEVEN.filled(wanted=wanted, nodes=nodes))
    ranks = wanted // nodes
    return Size(nodes, ranks, min(ranks, cluster.gpus_per_node) if cluster.gpus_per_node else 0)


def sbatch_options(cluster: Cluster, size: Size, run: str) -> list[str]:
    """Each option with its value in one word: a value is never taken for an option."""
    name = JOB_NAME.format(run=run)
    gpus = f"gpu:{cluster.gpu_type}" if cluster.gpu_type else "gpu"
    wanted = {
        "job-name": name,
        "nodes": size.nodes,
        "ntasks-per-node": 1,
        "gres": f"{gpus}:{size.gpus_per_node}" if size.gpus_per_node else None,
        "cpus-per-task": cluster.cpus_per_node,
        "mem": cluster.memory,
        "time": cluster.time,
        "partition": cluster.partition,
        "account": cluster.account,
        "qos": cluster.qos,
        "constraint": cluster.constraint,
        # The script writes to a file by itself: here Slurm would take a folder's name for a pattern (%j, a backslash).
        "output": "/dev/null",
        "chdir": "/",
        "input": "none",
        "export": "ALL",
    }
    # A job that began anew after the loss of a node would write over the evidence.
    return ["--no-requeue", *(f"--{key}={value}" for key, value in wanted.items() if value)]


def batch_script(interpreter: str, directory: str) -> str:
    """All that a shell ever reads of a run: three quoted words."""
    job, log = (shlex.quote(f"{directory}/{name}") for name in ("job.py", "batch.log"))
    return f"#!/bin/sh\nexec {shlex.quote(interpreter)} -I {job} >>{log} 2>&1\n"


_TOO_MANY = Translated(
    en="{wanted} ranks do not fit the cluster {name}: its settings allow {nodes} nodes with {most} each.",
    zh_cn="集群 {name} 容不下 {wanted} 个 rank：其设置允许 {nodes} 个节点，每个节点 {most} 个。",
)
_UNEVEN = Translated(
    en="{wanted} ranks cannot be spread evenly over {nodes} nodes.",
    zh_cn="{wanted} 个 rank 无法平均分配到 {nodes} 个节点。",
)
