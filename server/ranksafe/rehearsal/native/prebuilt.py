"""Compiled files that came with ranksafe, made by tools/prebuild_rehearsal.py: ``prebuilt/<torch>-<Python tag>``."""

from __future__ import annotations

import os
from pathlib import Path

from ranksafe.rehearsal.native.manifest import Manifest
from ranksafe.rehearsal.settings import NativeFiles
from ranksafe.rehearsal.torch_build import TorchBuild

PREBUILT_FOLDER = Path(__file__).resolve().parent / "prebuilt"


def prebuilt_name(build: TorchBuild) -> str:
    """The name of the folder for that torch."""
    return f"{build.version}-{build.python_tag}"


def prebuilt_files(
    build: TorchBuild, key: str, prebuilt: Path = PREBUILT_FOLDER
) -> NativeFiles | None:
    """The files that fit, or None: not there, damaged, or of another ``key``, because they were made for another build
    of the same version, or of other sources; or made on a system with a newer C library."""
    folder = prebuilt / prebuilt_name(build)
    try:
        manifest = Manifest.read(folder)
    except (OSError, ValueError, TypeError, KeyError):
        return None
    fits = manifest.key == key and _numbers(manifest.glibc) <= _numbers(_glibc())
    return manifest.files(folder) if fits else None


def _glibc() -> str:
    try:
        return (os.confstr("CS_GNU_LIBC_VERSION") or "").removeprefix("glibc ")
    except (AttributeError, OSError, ValueError):
        return "0"  # another C library


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())
