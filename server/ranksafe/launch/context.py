"""The launch context: what is known of how a script will be started."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from packaging.version import InvalidVersion, Version

DEFAULT_GPUS = 2
"""Assumed when nothing is known: the smallest number of GPUs on which the pitfalls appear."""

_NEEDS_PYTHON: Final = {"torch": (Version("2.0"), Version("3.8"))}
"""Distribution to a version and the oldest Python that it runs on (pytorch issue #80513)."""


class Launcher(str, Enum):
    """The program that starts the script's processes."""

    UNKNOWN = "unknown"
    PYTHON = "python"
    ACCELERATE = "accelerate"
    TORCHRUN = "torchrun"

    @property
    def starts_one_process_per_gpu(self) -> bool:
        """Whether every GPU gets a process of its own (DDP and its relatives) instead of one process for all."""
        return self in (Launcher.ACCELERATE, Launcher.TORCHRUN)


@dataclass(frozen=True, slots=True)
class Fact:
    """A value and the place it was read from ("--gpus", "pyproject.toml", "torch-2.13.0.dist-info", "default")."""

    value: str
    source: str


@dataclass(frozen=True, slots=True)
class LaunchContext:
    """What is known of a script's launch. Immutable; equal contexts give equal findings."""

    gpus: int | None = None
    """CUDA devices the script will see; None: unknown, see `assumed_gpus`."""
    launcher: Launcher = Launcher.UNKNOWN
    versions: Mapping[str, str] = field(default_factory=dict)
    """Distribution name (lower case, as on PyPI) to version."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """``gpus``, ``launcher`` or a distribution's name to the place the fact was read from."""

    @property
    def assumed_gpus(self) -> int:
        """The known number of GPUs, else `DEFAULT_GPUS`."""
        return DEFAULT_GPUS if self.gpus is None else self.gpus

    def version(self, distribution: str) -> Version | None:
        """The version of ``distribution`` the script will meet, or None when it is not known."""
        text = self.versions.get(distribution)
        if text is None:
            return None
        try:
            return Version(text)
        except InvalidVersion:
            return None

    def is_before(self, distribution: str, limit: Version) -> bool:
        """Whether the script is known to meet a version below ``limit``: by that version, or by a Python that is too
        old for a later one."""
        known = self.version(distribution)
        if known is not None:
            return known < limit
        first, oldest = _NEEDS_PYTHON.get(distribution, (None, None))
        python = self.version("python")
        if first is None or oldest is None or python is None:
            return False
        return limit >= first and python < oldest
