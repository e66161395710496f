"""What is compiled for each torch compiles for the oldest one that is supported, too."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from ranksafe.rehearsal.native.compiler import find_compiler
from ranksafe.rehearsal.native.flags import compile_flags
from ranksafe.rehearsal.native.sources import SOURCES
from ranksafe.rehearsal.torch_build import OLDEST_TORCH, torch_build
from ranksafe.runs.directory import cache_directory

WHEEL = (
    "--only-binary",
    ":all:",
    "--platform",
    "manylinux_2_28_x86_64",
    "--python-version",
    "3.11",
)


@pytest.fixture
def headers(tmp_path: Path) -> Path:
    """Those of the oldest release, kept for the next time."""
    folder = cache_directory() / f"headers-torch-{OLDEST_TORCH}"
    if not folder.is_dir():
        download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", *WHEEL]
        wanted = f"torch=={OLDEST_TORCH}.0"
        subprocess.run([*download, "--dest", str(tmp_path), wanted], check=True)
        (wheel,) = tmp_path.glob("torch-*.whl")
        with zipfile.ZipFile(wheel) as archive:
            inside = [each for each in archive.namelist() if each.startswith("torch/include/")]
            archive.extractall(tmp_path, inside)
        folder.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(tmp_path / "torch" / "include", folder)
    return folder


@pytest.mark.long
@pytest.mark.torch
def test_every_source_compiles_for_the_oldest_torch(headers: Path, torch_python: Path) -> None:
    build = torch_build(torch_python)
    installed = str(build.includes)
    flags = [each.replace(installed, str(headers)) for each in compile_flags(build, SOURCES)]
    command = [*find_compiler().command, *flags, "-fsyntax-only"]

    def complaint(source: Path) -> str:
        done = subprocess.run([*command, str(source)], capture_output=True, text=True, check=False)
        return f"{source.name}: {done.stderr[:2000]}" if done.returncode else ""

    with ThreadPoolExecutor(2) as pool:
        assert [
            each for each in pool.map(complaint, [*SOURCES.devices, *SOURCES.nccl]) if each
        ] == []
