"""Compiled files that came with ranksafe, made by tools/prebuild_rehearsal.py: ``prebuilt/<torch>-<Python tag>``."""

from __future__ import annotations

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
    of the same version, or of other sources."""
    folder = prebuilt / prebuilt_name(build)
    try:
        manifest = Manifest.read(folder)
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return manifest.files(folder) if manifest.key == key else None
