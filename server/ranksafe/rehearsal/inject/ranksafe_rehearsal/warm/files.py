"""What was imported, as files: a template is of no use any more once one of them has changed."""

from __future__ import annotations

import fcntl
import os
import stat
import sys

_NOT_IMPORTED = ("__main__", "_ranksafe_nccl")


def stamps() -> dict[str, tuple[int, int] | None]:
    """Time and size of every file that a module came from, and of the folders in which modules are looked for."""
    paths = {path for module in list(sys.modules.values()) if (path := _file_of(module))}
    # The first is the template's own folder.
    paths.update(entry for entry in sys.path[1:] if os.path.isabs(entry))
    return {path: _stamp(path) for path in paths}


def have_changed(known: dict[str, tuple[int, int] | None]) -> bool:
    """Whether a file is not what it was."""
    return any(_stamp(path) != stamp for path, stamp in known.items())


def is_installed(path: str) -> bool:
    """Whether a file belongs to the standard library or to an installed package, not to somebody's project."""
    real = os.path.realpath(path)
    parts = real.split(os.sep)
    if "site-packages" in parts or "dist-packages" in parts:
        return True
    return real.startswith(os.path.dirname(os.path.realpath(os.__file__)) + os.sep)


def of_a_project() -> "str | None":
    """A file that was imported and is neither installed nor ours."""
    agent = sys.modules.get("ranksafe_agent")
    ours = [os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))]
    ours += [os.path.dirname(os.path.dirname(path)) for path in [_file_of(agent)] if path]
    known = tuple(each + os.sep for each in ours)
    for name, module in list(sys.modules.items()):
        path = _file_of(module)
        if (
            path
            and name not in _NOT_IMPORTED
            and not path.startswith(known)
            and not is_installed(path)
        ):
            return path
    return None


def hidden_by(folder: str) -> bool:
    """Whether a script in ``folder`` would import a file from there in place of a module of this process."""
    loaded = {name for name in sys.modules if "." not in name}
    try:
        entries = [entry for entry in os.scandir(folder) if entry.name.partition(".")[0] in loaded]
    except OSError:
        return False
    return any(
        entry.name.endswith((".py", ".so", ".pyc"))
        or os.path.exists(os.path.join(entry.path, "__init__.py"))
        for entry in entries
    )


def can_be_handed_on(descriptor: int) -> bool:
    """Whether an open file gives no way around the layers that a rehearsal sees files through."""
    try:
        kind = os.fstat(descriptor).st_mode
    except OSError:  # closed meanwhile
        return True
    if stat.S_ISDIR(kind):
        return False
    writable = fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY
    return not (stat.S_ISREG(kind) and writable)


def _file_of(module: object) -> str | None:
    try:
        path = module.__file__  # type: ignore[attr-defined]
    except Exception:  # a module may be any object
        return None
    return path if isinstance(path, str) and os.path.isabs(path) else None


def _stamp(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
