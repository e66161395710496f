"""Which clusters the user has: ``clusters.toml`` in the user's own configuration folder, and nowhere else.

A workspace's files never name a cluster, an interpreter or an account: what reaches a process is the user's own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Final

from ranksafe.localization import Translated
from ranksafe.runs.errors import RunNotPossible
from ranksafe.runs.user_files import (
    Environment,
    names_in,
    not_understood,
    read_table,
    read_tables,
    user_file,
)
from ranksafe.settings import Amount, Count, Expected, Text

FILE_NAME: Final = "clusters.toml"
HERE: Final = "local"
"""The login host of a cluster whose login node is the machine ranksafe runs on."""
_NAME = re.compile(r"[A-Za-z0-9][\w.@-]*", re.ASCII)
FromZero = Annotated[
    int, Expected(Translated(en="a whole number, 0 or more", zh_cn="不小于 0 的整数"), minimum=0)
]


@dataclass(frozen=True, slots=True)
class Cluster:
    """One table of the file; its keys are written with hyphens there."""

    name: str = ""
    """Of the table."""
    login: Text = HERE
    """``local``, or the host of the login node as the user names it for ssh."""
    interpreter: Text = "python3"
    """The Python with torch, as the nodes see it; ``~`` is the home folder there."""
    conda: Environment | None = None
    """Instead of `interpreter`: a conda environment, by name or folder, as the login node knows it."""
    folder: Text = "~/.cache/ranksafe/slurm"
    """For runs and projects: on a disk that the login node and all nodes share."""
    partition: Text | None = None
    account: Text | None = None
    qos: Text | None = None
    constraint: Text | None = None
    time: Text | None = None
    """Longest duration of a run, as sbatch takes it: ``30`` (minutes), ``2:00:00``, ``1-12``."""
    nodes: Count = 1
    """The most nodes of a run."""
    gpus_per_node: FromZero = 1
    """0: CPU ranks."""
    gpu_type: Text | None = None
    """As the cluster calls it (``a100``)."""
    ranks_per_node: FromZero = 0
    """Of CPU ranks; 0: one for each GPU that would be there, at least one."""
    cpus_per_node: Count | None = None
    """None: the cluster's own default, on many one single core."""
    memory: Text | None = None
    """Of each node, as sbatch takes it (``64G``); None: the cluster's own default."""
    project_limit_mb: Amount = 200.0
    """Larger projects are not sent to the login host."""
    commands: Text = "/opt/slurm/bin:/usr/local/slurm/bin"
    """Folders where the login node has Slurm's commands, besides those of its PATH."""
    poll_seconds: Amount = 5.0
    """Between two looks at the job."""


def clusters_file() -> Path:
    """``ranksafe/clusters.toml`` under XDG_CONFIG_HOME, ``~/.config`` where that is not set or not absolute."""
    return user_file(FILE_NAME)


def read_clusters() -> dict[str, Cluster]:
    """Every cluster of the user's, by name; empty without a file.

    Raises RunNotPossible where the file cannot be read, or a table or key in it is not as it should be.
    """
    path = clusters_file()
    return {name: _cluster(path, name, table) for name, table in read_tables(path).items()}


def named_clusters() -> list[str]:
    """The names alone; none where the file cannot be read."""
    return names_in(clusters_file())


def cluster_named(name: str) -> Cluster:
    """The cluster of that name. Raises RunNotPossible where the user has none."""
    clusters = read_clusters()
    if name not in clusters:
        known = ", ".join(clusters) or "-"
        raise RunNotPossible(_UNKNOWN.filled(name=name, path=clusters_file(), known=known))
    return clusters[name]


def check_name(path: Path, name: str) -> None:
    """Raise RunNotPossible for what is no name of a cluster."""
    if not _NAME.fullmatch(name):
        raise not_understood(path, _BAD_NAME.filled(name=name))


def _cluster(path: Path, name: str, table: object) -> Cluster:
    check_name(path, name)
    return replace(read_table(Cluster, path, name, table, ("interpreter", "conda")), name=name)


_UNKNOWN = Translated(
    en='No cluster is called "{name}". Describe it in {path}, in a table [{name}] (known there: {known}).',
    zh_cn="没有名为“{name}”的集群。请在 {path} 中用表 [{name}] 描述它（其中已有：{known}）。",
)
_BAD_NAME = Translated(
    en="[{name}]: the name of a cluster is made of letters, digits, dots, hyphens and underscores",
    zh_cn="[{name}]：集群名称只能由字母、数字、点、连字符和下划线组成",
)
