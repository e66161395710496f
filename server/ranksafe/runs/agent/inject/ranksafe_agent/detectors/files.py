"""Files that this rank opens to write them anew, with the line that does; compared between ranks after the run."""

from __future__ import annotations

import functools
import os
import sys
from typing import Any, Callable

from .watch import Watch, is_user_file, stack, user_frame

_MOST_FILES = 500
_NOT_OUTPUT = (".lock", ".pid", ".tmp", ".pyc", ".incomplete")
_CACHE_FOLDERS = ("__pycache__", "torchinductor_")
_LOGGERS = {
    "hydra": "hydra-core 1.3.2, core/utils.py: every process that hydra.main starts saves .hydra/*.yaml",
    "logging": "CPython 3.11, logging/__init__.py: FileHandler and its kinds",
    "loguru": "loguru 0.7.3, _file_sink.py",
    "mlflow": "mlflow 3.1.0, store/tracking/file_store.py: meta.yaml of the experiment that all runs share",
    "tensorboard": "tensorboard 2.20.0, summary/writer/event_file_writer.py",
    "tensorboardX": "tensorboardX 2.6.4, event_file_writer.py: a second and the host make the name",
    "wandb": "wandb 0.21.0, sdk/wandb_init.py and wandb_run.py: the folder of the run",
}
"""Packages that write what they always write in every process, with where that was read: no result of the script's is
lost when one of these files is written again."""
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

    def heard(event: str, arguments: tuple[Any, ...], truncates: int = os.O_TRUNC) -> None:
        if event != "open":
            return
        try:
            path, _, flags = arguments
            if isinstance(flags, int) and flags & truncates:
                watch.attempt(files.opened, path)
        except Exception:  # raised here it would become an error of the open() that is watched
            pass

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
        self.asked: set[Any] = set()
        """As they were given, so that a file written again and again costs nothing."""
        self.seen: set[str] = set()
        self.home = os.path.realpath(os.path.expanduser("~")) + os.sep
        ignored = ["/dev", "/proc", "/sys", sys.prefix, sys.base_prefix]
        ignored += [os.environ[name] for name in _CACHES if os.environ.get(name)]
        self.ignored = tuple(os.path.realpath(each) + os.sep for each in ignored)

    def opened(self, path: Any) -> None:
        """Note the file, the first time it is opened."""
        if path in self.asked or len(self.asked) >= _MOST_FILES:
            return
        if not isinstance(path, (str, bytes, os.PathLike)):
            return
        if os.path.isabs(path):
            self.asked.add(path)
        name = os.path.realpath(os.fsdecode(path))
        if name in self.seen or len(self.seen) >= _MOST_FILES:
            return
        self.seen.add(name)
        run = os.path.realpath(self.watch.directory) + os.sep
        if name.startswith((run, *self.ignored, self.home + ".")) or name.endswith(_NOT_OUTPUT):
            return
        if any(part.startswith(_CACHE_FOLDERS) for part in name.split(os.sep)):
            return
        if user_frame() is None:
            return
        frames = stack()
        if _writes_by_itself(frames):
            return
        theirs = [each for each in frames if is_user_file(each["file"])]
        self.watch.journal.write("file-written", path=name, frames=theirs)


def _writes_by_itself(frames: list[dict[str, Any]]) -> bool:
    """Whether the user's innermost line only called a logger, which then opened the file."""
    for frame in reversed(frames):
        if is_user_file(frame["file"]):
            return False
        if not _LOGGERS.keys().isdisjoint(frame["file"].split(os.sep)):
            return True
    return False
