"""Which versions of the training libraries an interpreter will import, read from the packages' metadata.

Nothing is imported and no interpreter started: the answer must be had in a workspace that is not trusted, too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from ranksafe.launch.context import Fact
from ranksafe.launch.interpreter import site_packages

TRACKED: Final = frozenset(
    {
        "accelerate",
        "adapters",
        "bitsandbytes",
        "datasets",
        "deepspeed",
        "flax",
        "jax",
        "lightning",
        "numpy",
        "peft",
        "pytorch-lightning",
        "torch",
        "torchvision",
        "transformers",
        "trl",
    }
)
"""Distributions whose versions rules may ask for (names as PyPI compares them)."""

_VERSION = re.compile(r"^Version:[ \t]*(\S+)", re.MULTILINE | re.IGNORECASE)
_METADATA_LIMIT = 64 * 1024
"""Name and Version stand at the top; long descriptions follow and are not read."""


def normalized(name: str) -> str:
    """A distribution's name as PyPI compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def installed_versions(interpreter: Path) -> Mapping[str, Fact]:
    """Distribution name (lower case, dashes) to its version, with the metadata folder as source.

    Only `TRACKED` distributions; of several the one found first on the interpreter's path. Empty when the interpreter
    cannot be found or its layout is not known.
    """
    found: dict[str, Fact] = {}
    for folder in site_packages(interpreter):
        for name, version, source in _distributions(folder):
            found.setdefault(name, Fact(version, str(source)))
    return found


def _distributions(folder: Path) -> Iterator[tuple[str, str, Path]]:
    try:
        entries = sorted(entry.name for entry in os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        stem, suffix = Path(entry).stem, Path(entry).suffix
        if suffix not in (".dist-info", ".egg-info"):
            continue
        name, _, rest = stem.partition("-")
        distribution = normalized(name)
        if distribution not in TRACKED:
            continue
        path = folder / entry
        version = _version_in(path) or re.sub(r"-py[\d.]+$", "", rest)
        if version:
            yield distribution, version, path


def _version_in(path: Path) -> str | None:
    """The Version header of a ``.dist-info`` or ``.egg-info`` (which may be a folder or a single file)."""
    for candidate in (path / "METADATA", path / "PKG-INFO", path):
        if candidate.is_file():
            try:
                with candidate.open(encoding="utf-8", errors="replace") as stream:
                    headers = stream.read(_METADATA_LIMIT).partition("\n\n")[0]
            except OSError:
                continue
            version = _VERSION.search(headers)
            return version[1] if version else None
    return None
