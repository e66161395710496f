"""Which clusters the user has: ``clusters.toml`` in the user's own configuration folder, and nowhere else.

A workspace's files never name a cluster, an interpreter or an account: what reaches a process is the user's own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

from ranksafe.localization import Translated
from ranksafe.runs.errors import RunNotPossible
from ranksafe.runs.user_files import read_tables, user_file

FILE_NAME: Final = "clusters.toml"
HERE: Final = "local"
"""The login host of a cluster whose login node is the machine ranksafe runs on."""
_NAME = re.compile(r"[A-Za-z0-9][\w.@-]*", re.ASCII)
_TYPES: Final[dict[str, Any]] = {
    "int": int,
    "str": str,
    "str | None": str,
    "int | None": int,
    "float": (int, float),
}


@dataclass(frozen=True, slots=True)
class Cluster:
    """One table of the file; its keys are written with hyphens there."""

    name: str
    login: str = HERE
    """``local``, or the host of the login node as the user names it for ssh."""
    interpreter: str = "python3"
    """The Python with torch, as the nodes see it; ``~`` is the home folder there."""
    conda: str | None = None
    """Instead of `interpreter`: a conda environment, by name or folder, as the login node knows it."""
    folder: str = "~/.cache/ranksafe/slurm"
    """For runs and projects: on a disk that the login node and all nodes share."""
    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    constraint: str | None = None
    time: str | None = None
    """Longest duration of a run, as sbatch takes it: ``30`` (minutes), ``2:00:00``, ``1-12``."""
    nodes: int = 1
    """The most nodes of a run."""
    gpus_per_node: int = 1
    """0: CPU ranks."""
    gpu_type: str | None = None
    """As the cluster calls it (``a100``)."""
    ranks_per_node: int = 0
    """Of CPU ranks; 0: one for each GPU that would be there, at least one."""
    cpus_per_node: int | None = None
    """None: the cluster's own default, on many one single core."""
    memory: str | None = None
    """Of each node, as sbatch takes it (``64G``); None: the cluster's own default."""
    project_limit_mb: float = 200.0
    """Larger projects are not sent to the login host."""
    commands: str = "/opt/slurm/bin:/usr/local/slurm/bin"
    """Folders where the login node has Slurm's commands, besides those of its PATH."""
    poll_seconds: float = 5.0
    """Between two looks at the job."""


def clusters_file() -> Path:
    """``ranksafe/clusters.toml`` under XDG_CONFIG_HOME, ``~/.config`` where that is not set or not absolute."""
    return user_file(FILE_NAME)


def read_clusters() -> dict[str, Cluster]:
    """Every cluster of the user's, by name; empty without a file.

    Raises RunNotPossible where the file cannot be read, or a table or key in it is not as it should be.
    """
    path = clusters_file()
    try:
        tables = read_tables(path)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise RunNotPossible(_UNREADABLE.filled(path=path, reason=reason)) from error
    return {name: _cluster(name, table) for name, table in tables.items()}


def named_clusters() -> list[str]:
    """The names alone; none where the file is not as it should be."""
    try:
        return list(read_clusters())
    except RunNotPossible:
        return []


def cluster_named(name: str) -> Cluster:
    """The cluster of that name. Raises RunNotPossible where the user has none."""
    clusters = read_clusters()
    if name not in clusters:
        known = ", ".join(clusters) or "-"
        raise RunNotPossible(_UNKNOWN.filled(name=name, path=clusters_file(), known=known))
    return clusters[name]


def _cluster(name: str, table: object) -> Cluster:
    if not _NAME.fullmatch(name):
        raise _wrong(name, _BAD_NAME)
    if not isinstance(table, Mapping):
        raise _wrong(name, _NO_TABLE)
    known = {field.name.replace("_", "-"): field for field in fields(Cluster)}
    del known["name"]
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in known:
            raise _wrong(name, _UNKNOWN_KEY.filled(key=key, known=", ".join(known)))
        kind = _TYPES[str(known[key].type)]
        if not isinstance(value, kind) or isinstance(value, bool):
            raise _wrong(name, _WRONG_TYPE.filled(key=key, wanted=_WANTED[kind]))
        values[known[key].name] = value
    if "conda" in values and ("interpreter" in values or values["conda"].startswith("-")):
        raise _wrong(name, _WRONG_CONDA)
    cluster = Cluster(name, **values)
    for key in ("nodes", "poll_seconds", "project_limit_mb"):
        if not 0 < getattr(cluster, key) < math.inf:
            raise _wrong(name, _WRONG_TYPE.filled(key=key.replace("_", "-"), wanted=_ABOVE_ZERO))
    for key in ("gpus_per_node", "ranks_per_node"):
        if getattr(cluster, key) < 0:
            raise _wrong(name, _WRONG_TYPE.filled(key=key.replace("_", "-"), wanted=_FROM_ZERO))
    return cluster


def _wrong(name: str, reason: Translated) -> RunNotPossible:
    return RunNotPossible(_WRONG.filled(path=clusters_file(), name=name, reason=reason))


_UNREADABLE = Translated(en="{path} cannot be read: {reason}", zh_cn="无法读取 {path}：{reason}")
_UNKNOWN = Translated(
    en='No cluster is called "{name}". Describe it in {path}, in a table [{name}] (known there: {known}).',
    zh_cn="没有名为“{name}”的集群。请在 {path} 中用表 [{name}] 描述它（其中已有：{known}）。",
)
_WRONG = Translated(en="{path}, [{name}]: {reason}", zh_cn="{path}，[{name}]：{reason}")
_BAD_NAME = Translated(
    en="the name of a cluster is made of letters, digits, dots, hyphens and underscores",
    zh_cn="集群名称只能由字母、数字、点、连字符和下划线组成",
)
_NO_TABLE = Translated(en="this is not a table", zh_cn="这不是一个表")
_UNKNOWN_KEY = Translated(
    en="there is no key {key}; there are {known}", zh_cn="没有键 {key}；可用的键：{known}"
)
_WRONG_TYPE = Translated(en="{key} must be {wanted}", zh_cn="{key} 必须是{wanted}")
_WANTED: Final[dict[Any, Translated]] = {
    int: Translated(en="a whole number", zh_cn="整数"),
    str: Translated(en="text in quotes", zh_cn="带引号的文本"),
    (int, float): Translated(en="a number", zh_cn="数字"),
}
_ABOVE_ZERO = Translated(en="above 0", zh_cn="大于 0 的数")
_FROM_ZERO = Translated(en="0 or more", zh_cn="不小于 0 的数")
_WRONG_CONDA = Translated(
    en="conda must be the name or folder of an environment, and interpreter is not given beside it",
    zh_cn="conda 必须是环境的名称或文件夹，且不能同时给出 interpreter",
)
