"""Which Python a name means on this host: a program, a conda environment, or a command that leads to one.

``{"program": path}``, ``{"conda": name or prefix}`` and ``{"command": [words]}`` become words that can be started, or
an ``error`` with the environments that are there. Nothing is activated, and no tool of conda's is asked: an environment
is a folder with ``conda-meta`` and ``bin/python``, whoever made it (conda, mamba, micromamba, pixi).
"""

from __future__ import annotations

import glob
import os
import shutil
from typing import Any

_ROOTS = ("miniconda3", "miniforge3", "mambaforge", "anaconda3", "micromamba", "mamba", "conda")
_REGISTRY = "~/.conda/environments.txt"
"""A prefix a line: where conda notes every environment it makes (``core/envs_manager.py``, ``register_env``)."""
_LONGEST_LIST = 20


def resolve(chosen: Any) -> Any:
    """``{"words": [...]}``: absolute; or ``{"shown", "error", "environments"}``: what was meant, and what there is."""
    if "command" in chosen:
        words = [os.path.expanduser(word) for word in chosen["command"]]
        found = shutil.which(words[0])
        if found is None:
            return _missing(words[0], "no such program")
        return {"words": [os.path.abspath(found), *words[1:]]}
    if "conda" in chosen:
        return _conda(chosen["conda"])
    path = os.path.expanduser(chosen["program"])
    found = shutil.which(path)
    return _missing(path, "no such program") if found is None else {"words": [found]}


def environments() -> list[str]:
    """The prefixes of the conda environments that can be found without asking conda, each once."""
    prefixes: list[str] = []
    try:
        with open(os.path.expanduser(_REGISTRY), encoding="utf-8", errors="replace") as file:
            prefixes += [line.strip() for line in file]
    except OSError:
        pass
    for root in _roots():
        prefixes += [root, *sorted(glob.glob(os.path.join(glob.escape(root), "envs", "*")))]
    for name in ("CONDA_ENVS_DIRS", "CONDA_ENVS_PATH"):
        for folder in filter(None, os.environ.get(name, "").split(os.pathsep)):
            prefixes += sorted(glob.glob(os.path.join(glob.escape(folder), "*")))
    found: dict[str, str] = {}
    for prefix in filter(os.path.isabs, prefixes):
        if _is_environment(prefix):
            found.setdefault(os.path.realpath(prefix), prefix)
    return list(found.values())


def _conda(name: str) -> Any:
    expanded = os.path.expanduser(name)
    if os.path.isabs(expanded):
        if _is_environment(expanded):
            return {"words": [_python(expanded)]}
        return _missing(expanded, "no conda environment")
    found = [prefix for prefix in environments() if name in _names(prefix)]
    if len(found) == 1:
        return {"words": [_python(found[0])]}
    return _missing(name, "several environments" if found else "no conda environment", found)


def _names(prefix: str) -> list[str]:
    """What users call it: the last part of its prefix below ``envs``; a root is ``base``."""
    if os.path.isdir(os.path.join(prefix, "condabin")) or os.path.realpath(prefix) in map(
        os.path.realpath, _roots()
    ):
        return ["base"]
    return [os.path.basename(prefix.rstrip("/"))]


def _roots() -> list[str]:
    roots = [os.environ.get("MAMBA_ROOT_PREFIX", "")]
    conda = os.environ.get("CONDA_EXE", "")
    if conda:
        roots.append(os.path.dirname(os.path.dirname(conda)))
    for above in ("~", "~/.local/share", "/opt"):
        roots += [os.path.join(os.path.expanduser(above), name) for name in _ROOTS]
    return [root for root in roots if os.path.isabs(root)]


def _is_environment(prefix: str) -> bool:
    return os.path.isdir(os.path.join(prefix, "conda-meta")) and os.access(_python(prefix), os.X_OK)


def _python(prefix: str) -> str:
    return os.path.join(prefix, "bin", "python")


def _missing(shown: str, error: str, found: list[str] | None = None) -> Any:
    return {
        "shown": shown,
        "error": error,
        "environments": (found or environments())[:_LONGEST_LIST],
    }
