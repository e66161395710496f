"""Where a run happens: one module per target, all behind one protocol."""

from __future__ import annotations

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
    from ranksafe.runs.remote.host_settings import named_hosts
    from ranksafe.runs.targets.slurm.settings import named_clusters

    hosts = [f"ssh:{name}" for name in named_hosts()]
    return ["local", *hosts, *(f"slurm:{name}" for name in named_clusters())]


_UNKNOWN = Translated(
    en='There is no target "{name}". Known: local, simulated:N (N GPUs), ssh:HOST, slurm:NAME.',
    zh_cn="没有名为“{name}”的目标。可用目标：local、simulated:N（N 个 GPU）、ssh:HOST、slurm:NAME。",
)
_NOT_HERE = Translated(
    en="Local runs need Linux or macOS. On Windows, work inside WSL.",
    zh_cn="本地运行需要 Linux 或 macOS。在 Windows 上请使用 WSL。",
)
