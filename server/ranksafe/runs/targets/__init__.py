"""Where a run happens: one module per target, all behind one protocol."""

from __future__ import annotations

from ranksafe.localization import Translated
from ranksafe.runs.errors import RunNotPossible
from ranksafe.runs.targets.protocol import Target


def target_named(name: str) -> Target:
    """The target a user names.

    Raises RunNotPossible for a name that does not exist, or one that this machine cannot serve.
    """
    if name != "local":
        raise RunNotPossible(_UNKNOWN.filled(name=name))
    try:
        # POSIX modules: the import fails on Windows.
        from ranksafe.runs.targets.local import LocalTarget
    except ImportError as error:
        raise RunNotPossible(_NOT_HERE) from error
    return LocalTarget()


_UNKNOWN = Translated(
    en='There is no target "{name}". Known: local.',
    zh_cn="没有名为“{name}”的目标。可用目标：local。",
)
_NOT_HERE = Translated(
    en="Local runs need Linux or macOS. On Windows, work inside WSL.",
    zh_cn="本地运行需要 Linux 或 macOS。在 Windows 上请使用 WSL。",
)
