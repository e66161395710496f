"""Renaming and removing folders that were there before the rehearsal.

An isolated rehearsal sees files through overlays made without root. Linux refuses to rename a folder of an overlay's
lower layer (EXDEV, ``redirect_dir`` in Documentation/filesystems/overlayfs.rst), as if source and target were on
different disks. ``mv`` and ``shutil.move`` copy then; here ``os.rename`` and ``os.replace`` do, too. A folder where
an overlay begins can be neither renamed nor removed (EBUSY): a limit of the simulation, and said to be one.
"""

from __future__ import annotations

import errno
import functools
import os
import shutil
from typing import Any, NoReturn

from .. import limits

ISOLATED_VARIABLE = "RANKSAFE_REHEARSAL_ISOLATED"


class FolderCannotMove(OSError, limits.SimulationLimit):
    """Like a folder in use, and a limit of the simulation."""


def install() -> None:
    """Wrap the functions, once per process, where files are overlays."""
    if os.environ.get(ISOLATED_VARIABLE) != "1":
        return
    for name in ("rename", "replace"):
        _replace(name, _renaming)
    _replace("rmdir", _removing)


def _replace(name: str, wrapper: Any) -> None:
    before = getattr(os, name)
    if not hasattr(before, "__wrapped__"):
        setattr(os, name, functools.wraps(before)(wrapper(before)))


def _renaming(before: Any) -> Any:
    def instead(src: Any, dst: Any, **keywords: Any) -> None:
        try:
            before(src, dst, **keywords)
        except OSError as error:
            if keywords or os.path.islink(src) or not os.path.isdir(src):
                raise
            if error.errno == errno.EBUSY and os.path.ismount(src):
                _refuse(src, error)
            if error.errno != errno.EXDEV or not _on_one_disk(src, dst):
                raise
            _copy(src, dst)

    return instead


def _removing(before: Any) -> Any:
    def instead(path: Any, **keywords: Any) -> None:
        try:
            before(path, **keywords)
        except OSError as error:
            if error.errno == errno.EBUSY and not keywords and os.path.ismount(path):
                _refuse(path, error)
            raise

    return instead


def _refuse(path: Any, error: OSError) -> NoReturn:
    name = os.fspath(path)
    english = f"the folder {name} can be neither renamed nor removed in an isolated rehearsal"
    chinese = f"在隔离的预演中，文件夹 {name} 既不能重命名也不能删除"
    limits.note("file-system", str(name), english, chinese)
    raise FolderCannotMove(error.errno, limits.PREFIX + english, name) from error


def _on_one_disk(source: Any, target: Any) -> bool:
    """Whether only the overlay stands in the way."""
    beside = os.path.dirname(os.path.abspath(os.fspath(target)))
    return os.stat(source).st_dev == os.stat(beside).st_dev


def _copy(source: Any, target: Any) -> None:
    if os.path.isdir(target):
        os.rmdir(target)  # raises where it is not empty, as the system does
    elif os.path.lexists(target):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), source, None, target)
    shutil.copytree(source, target, symlinks=True)
    shutil.rmtree(source)
