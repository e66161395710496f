"""Decides how a rehearsal is kept away from the user's files and the network."""

# Files as the kernel sees them, call by call: pathlib would only hide which calls are made.
# ruff: noqa: PTH112, PTH117, PTH118

from __future__ import annotations

import os
import socket
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ranksafe.localization import Translated
from ranksafe.rehearsal.errors import RehearsalNotPossible
from ranksafe.rehearsal.isolation import scratch
from ranksafe.rehearsal.isolation.availability import PROGRAM, probe
from ranksafe.rehearsal.isolation.environment import (
    ISOLATED_VARIABLE,
    NOTHING_SENT,
    OFFLINE,
    THROUGH_THE_READER,
    without_secrets,
)
from ranksafe.rehearsal.isolation.memory import host_memory_bound
from ranksafe.rehearsal.isolation.node import node_name
from ranksafe.rehearsal.isolation.specification import Specification
from ranksafe.rehearsal.settings import Isolation, Network

_MOST_SCRATCH_BYTES = 32 << 30
_CACHES = (
    "XDG_CACHE_HOME",
    "XDG_DATA_HOME",
    "HF_HOME",
    "HF_HUB_CACHE",
    "HF_DATASETS_CACHE",
    "TORCH_HOME",
    "WANDB_DIR",
)


@dataclass(frozen=True, slots=True)
class IsolationPlan:
    """How to start a command, and what to tell the user about it."""

    isolated: bool
    """Whether files and network are out of reach; else only libraries' own switches and stand-ins act."""
    offline: bool
    """Whether nothing outside this machine may be contacted (`ProcessSettings.offline`)."""
    reads_network: bool
    """Whether it may be read from, and nothing sent (`ProcessSettings.reads_network`)."""
    prefix: tuple[str, ...]
    environment: Mapping[str, str | None]
    """Changes; None: the variable goes."""
    modified: tuple[Translated, ...]
    limits: tuple[Translated, ...]
    run_directory: Path

    def wrap(self, command: Sequence[str]) -> tuple[str, ...]:
        """The command that starts ``command`` isolated. Status and signals are those of ``command``."""
        return (*self.prefix, *command)

    def changed(self, environment: Mapping[str, str]) -> dict[str, str]:
        """``environment`` as the rehearsal's processes are to see it."""
        changed = {**environment, **self.environment}
        return {name: value for name, value in changed.items() if value is not None}

    def clear(self) -> None:
        """Remove what a run that was killed may have left on disk; never raises. Call it when the run is over."""
        scratch.clear(str(self.run_directory))


def plan_isolation(
    choice: Isolation,
    *,
    run_directory: Path,
    working_directory: Path,
    environment: Mapping[str, str],
    folders: Iterable[Path] = (),
    nodes: int = 1,
    network: Network = Network.NONE,
    host_memory_bytes: int | None = None,
    disk_bytes: int | None = None,
    texts: Sequence[tuple[str, str]] = (),
) -> IsolationPlan:
    """Write what is needed into ``run_directory`` and say how to start the command.

    ``folders``: where the script is likely to write beside working directory, HOME and caches (the workspace's
    folders, the script's own). ``host_memory_bytes``: what all processes together may hold; None: a safe share of what
    is there. ``disk_bytes``: what the script may write; None: half of that share. ``texts``: what files, by path, are
    to say in there.

    Raises RehearsalNotPossible where isolation is required, or needed for ``texts``, and not to be had, or
    ``run_directory`` cannot be written.
    """
    why_not = probe() if choice is not Isolation.OFF else None
    if choice is Isolation.REQUIRED and why_not is not None:
        raise RehearsalNotPossible(_REQUIRED.filled(reason=why_not))
    isolated = choice is not Isolation.OFF and why_not is None
    if texts and not isolated:
        raise RehearsalNotPossible(_NEEDED)
    kept_away = choice is not Isolation.OFF
    reads = kept_away and network is Network.READ_ONLY and _starts_in_between()
    bound = host_memory_bytes or host_memory_bound()
    disk = disk_bytes or min(bound // 2, _MOST_SCRATCH_BYTES)
    names = (socket.gethostname(), *(node_name(each) for each in range(nodes) if nodes > 1))
    run = run_directory.resolve()
    specification = Specification(
        run_directory=str(run),
        working_directory=str(working_directory.absolute()),
        writable_folders=_writable(environment, [working_directory, *folders]),
        host_names=names,
        namespaces=isolated,
        disk_bytes=disk,
        shared_memory_bytes=max(bound // 2, 64 << 20),
        host_memory_bytes=bound,
        reads_network=reads,
        texts=tuple(texts),
    )
    thrown_away = _READS_AND_THROWN_AWAY if reads else _THROWN_AWAY
    return IsolationPlan(
        isolated=isolated,
        offline=kept_away and not reads,
        reads_network=reads,
        prefix=_prefix(specification, run),
        environment=_changes(choice, environment, isolated, reads),
        modified=(thrown_away, _NO_SECRETS) if isolated else (),
        limits=_limits(choice, why_not),
        run_directory=run,
    )


def _prefix(specification: Specification, run: Path) -> tuple[str, ...]:
    """Without namespaces the bounds are watched all the same, where there is a /proc to look into."""
    if not _starts_in_between():
        return ()
    try:
        path = specification.write(run)
    except OSError as error:
        raise RehearsalNotPossible(_CANNOT_WRITE.filled(path=run, reason=error.strerror)) from error
    return (sys.executable, "-I", str(PROGRAM), str(path), "--")


def _starts_in_between() -> bool:
    """Whether `enter` can stand between the command and who starts it."""
    return sys.platform.startswith("linux")


def _changes(
    choice: Isolation, environment: Mapping[str, str], isolated: bool, reads_network: bool
) -> dict[str, str | None]:
    if choice is Isolation.OFF:
        return dict(NOTHING_SENT)
    overlays = {ISOLATED_VARIABLE: "1" if isolated else None}
    network = THROUGH_THE_READER if reads_network else OFFLINE
    return {**without_secrets(environment), **network, **NOTHING_SENT, **overlays}


def _limits(choice: Isolation, why_not: Translated | None) -> tuple[Translated, ...]:
    if choice is Isolation.OFF:
        return (_CHOSEN_OFF,)
    return () if why_not is None else (_NOT_ISOLATED.filled(reason=why_not),)


def _writable(environment: Mapping[str, str], folders: Iterable[Path]) -> tuple[str, ...]:
    home = environment.get("HOME") or str(Path.home())
    wanted = [
        *map(str, folders),
        home,
        os.path.join(home, ".cache"),
        tempfile.gettempdir(),
        "/tmp",
        "/var/tmp",
    ]
    wanted += [environment[name] for name in (*_CACHES, "TMPDIR") if environment.get(name)]
    found = (os.path.realpath(each) for each in wanted if os.path.isabs(each))
    return tuple(dict.fromkeys(each for each in found if os.path.isdir(each) and each != "/"))


_REQUIRED = Translated(en="Isolation is required, but {reason}.", zh_cn="要求隔离，但{reason}。")
_NEEDED = Translated(
    en="Another text of a file is tried in isolation only, and there is none here.",
    zh_cn="只有在隔离环境中才会试用文件的另一份内容，而这里没有隔离。",
)
_CANNOT_WRITE = Translated(
    en="The run's files cannot be written to {path}: {reason}.",
    zh_cn="无法将运行文件写入 {path}：{reason}。",
)
_THROWN_AWAY = Translated(
    en="isolated: no network, and everything the script wrote, renamed or removed was thrown away",
    zh_cn="已隔离：没有网络；脚本写入、重命名或删除的一切均已丢弃",
)
_READS_AND_THROWN_AWAY = Translated(
    en="isolated: the network can only be read from (GET and HEAD, without your tokens), and everything the script "
    "wrote, renamed, removed or downloaded was thrown away",
    zh_cn="已隔离：只能从网络读取（GET 和 HEAD，不带你的令牌）；脚本写入、重命名、删除或下载的一切均已丢弃",
)
_NO_SECRETS = Translated(
    en="secrets in the environment (tokens, keys, passwords) were replaced by worthless values",
    zh_cn="环境变量中的机密信息（令牌、密钥、密码）已替换为无效值",
)
_NOT_ISOLATED = Translated(
    en="not isolated: {reason}. Files that the script writes or removes are real; trackers, uploads and network "
    "connections from Python are refused",
    zh_cn="未隔离：{reason}。脚本写入或删除的文件都是真实的；来自 Python 的实验跟踪、上传和网络连接均被拒绝",
)
_CHOSEN_OFF = Translated(
    en="not isolated, as chosen: files that the script writes or removes are real, and the network can be reached; "
    "trackers and uploads are refused",
    zh_cn="按选择未隔离：脚本写入或删除的文件都是真实的，且可以访问网络；实验跟踪和上传均被拒绝",
)
