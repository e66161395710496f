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
        else:
            found = None
    except ImportError as error:
        if error.name not in _POSIX:
            raise
        raise RunNotPossible(_NOT_HERE) from error
    if found is None:
        raise RunNotPossible(_UNKNOWN.filled(name=name))
    return found


_UNKNOWN = Translated(
    en='There is no target "{name}". Known: local, simulated:N (N GPUs).',
    zh_cn="没有名为“{name}”的目标。可用目标：local、simulated:N（N 个 GPU）。",
)
_NOT_HERE = Translated(
    en="Local runs need Linux or macOS. On Windows, work inside WSL.",
    zh_cn="本地运行需要 Linux 或 macOS。在 Windows 上请使用 WSL。",
)
