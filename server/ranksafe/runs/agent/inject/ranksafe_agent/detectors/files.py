"""Files that this rank opens to write them anew, with the line that does; compared between ranks after the run."""

from __future__ import annotations

import functools
import os
import sys
from typing import Any, Callable

from .watch import Watch, is_user_file, stack, user_frame

_MOST_FILES = 500
_TRUNCATES = os.O_TRUNC
_NOT_OUTPUT = (".lock", ".pid", ".tmp", ".pyc", ".incomplete")
_CACHES = (
    "XDG_CACHE_HOME",
    "HF_HOME",
    "HF_HUB_CACHE",
    "HF_DATASETS_CACHE",
    "TORCH_HOME",
    "TORCHINDUCTOR_CACHE_DIR",
    "TRITON_CACHE_DIR",
    "MPLCONFIGDIR",
)


def hooks(watch: Watch) -> dict[str, Callable[[Any], None]]:
    """What to do after which import; ``open`` is watched from now on."""
    files = _Files(watch)

    def heard(event: str, arguments: tuple[Any, ...]) -> None:
        if event != "open" or len(arguments) != 3:
            return
        path, _, flags = arguments
        if isinstance(flags, int) and flags & _TRUNCATES:
            watch.attempt(files.opened, path)

    sys.addaudithook(heard)
    return {"torch.serialization": functools.partial(_hook, files)}


def _hook(files: _Files, module: Any) -> None:
    """torch.save opens a named file in C++ (torch 2.13.0, ``PyTorchFileWriter``), which no audit hook hears."""
    save = module.save

    @functools.wraps(save)
    def watched_save(obj: Any, f: Any, *arguments: Any, **keywords: Any) -> Any:
        if isinstance(f, (str, os.PathLike)):
            files.watch.attempt(files.opened, f)
        return save(obj, f, *arguments, **keywords)

    module.save = watched_save


class _Files:
    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.seen: set[str] = set()
        home = os.path.expanduser("~")
        ignored = [watch.directory, "/dev", "/proc", "/sys", sys.prefix, sys.base_prefix]
        ignored += [os.path.join(home, ".cache"), os.path.join(home, ".triton")]
        ignored += [os.environ[name] for name in _CACHES if os.environ.get(name)]
        self.ignored = tuple(os.path.realpath(each) + os.sep for each in ignored)

    def opened(self, path: Any) -> None:
        """Note the file, the first time it is opened."""
        if not isinstance(path, (str, bytes, os.PathLike)):
            return
        name = os.path.realpath(os.fsdecode(path))
        if name in self.seen or len(self.seen) >= _MOST_FILES:
            return
        self.seen.add(name)
        parts = name.split(os.sep)
        if name.startswith(self.ignored) or name.endswith(_NOT_OUTPUT) or "__pycache__" in parts:
            return
        if user_frame() is None:
            return
        frames = [each for each in stack() if is_user_file(each["file"])]
        self.watch.journal.write("file-written", path=name, frames=frames)
