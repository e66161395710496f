"""Where a run happens: one module per target, all behind one protocol."""

from __future__ import annotations

from pathlib import Path

from ranksafe.localization import Translated
from ranksafe.runs.errors import RunNotPossible
from ranksafe.runs.targets.protocol import Target

_POSIX = ("fcntl", "pwd")


def target_named(name: str) -> Target:
    """The target a user names.

    Raises RunNotPossible for a name that does not exist, or one that this machine cannot serve.
    """
    kind = name.partition(":")[0]
    try:
        # POSIX modules: the import fails on Windows.
        if kind == "local":
            from ranksafe.runs.targets.local import LocalTarget

            found: Target | None = LocalTarget() if name == kind else None
        elif kind == "simulated":
            from ranksafe.runs.targets.simulated import target_of

            found = target_of(name)
        elif kind == "ssh":
            from ranksafe.runs.targets.ssh import SshTarget

            found = SshTarget(name.partition(":")[2])
        elif kind == "slurm" and name != kind:
            from ranksafe.runs.targets.slurm.target import SlurmTarget

            found = SlurmTarget(name.partition(":")[2])
        else:
            found = None
    except ImportError as error:
        if error.name not in _POSIX:
            raise
        raise RunNotPossible(_NOT_HERE) from error
    if found is None:
        raise RunNotPossible(_UNKNOWN.filled(name=name))
    return found


def named_targets() -> list[str]:
    """This machine, then the hosts and clusters that the user's own files name; none from a file that is broken."""
    from ranksafe.runs.hosts.ssh_names import configured_hosts
    from ranksafe.runs.remote.host_settings import named_hosts
    from ranksafe.runs.targets.slurm.settings import named_clusters

    hosts = [f"ssh:{name}" for name in dict.fromkeys((*named_hosts(), *configured_hosts()))]
    return ["local", *hosts, *(f"slurm:{name}" for name in named_clusters())]


def add_target(name: str, login: str | None = None) -> Path:
    """Note a host (``ssh:HOST``) or a cluster (``slurm:NAME``, with the host of its login node) in the user's own file;
    one that is there stays as it is. Returns the file.

    Raises RunNotPossible for what is no such name, and where the file cannot be understood or written.
    """
    from ranksafe.runs.hosts.ssh import SshHost
    from ranksafe.runs.remote.host_settings import settings_file
    from ranksafe.runs.targets.slurm.settings import HERE, check_name, clusters_file
    from ranksafe.runs.user_files import add_table

    kind, _, own = name.partition(":")
    if kind == "ssh":
        return add_table(settings_file(), SshHost(own).name, {})
    if kind != "slurm":
        raise RunNotPossible(_UNKNOWN.filled(name=name))
    check_name(clusters_file(), own)
    chosen = HERE if login in (None, HERE) else SshHost(login or "").name
    return add_table(clusters_file(), own, {"login": chosen})


_UNKNOWN = Translated(
    en='There is no target "{name}". Known: local, simulated:N (N GPUs), ssh:HOST, slurm:NAME.',
    zh_cn="没有名为“{name}”的目标。可用目标：local、simulated:N（N 个 GPU）、ssh:HOST、slurm:NAME。",
)
_NOT_HERE = Translated(
    en="Local runs need Linux or macOS. On Windows, work inside WSL.",
    zh_cn="本地运行需要 Linux 或 macOS。在 Windows 上请使用 WSL。",
)
