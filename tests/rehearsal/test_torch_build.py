"""Reading a torch installation without importing it: packages on PYTHONPATH that hold what is read, and nothing else."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from ranksafe.rehearsal.errors import RehearsalNotPossible
from ranksafe.rehearsal.torch_build import TorchBuild, torch_build

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="rehearsals run on Linux so far"
)

VERSION_FILE = """\
from typing import Optional

__all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip', 'rocm', 'xpu']
__version__ = '{version}'
debug = False
cuda: Optional[str] = {cuda!r}
git_version = 'd0f2af8b66b20da4baa50644c0cd3f887a2eae2e'
hip: Optional[str] = {hip!r}
rocm: Optional[str] = None
xpu: Optional[str] = {xpu!r}
"""
NEW_STRING = (
    b"\0_ZN3c106detail14torchCheckFailEPKcS2_jRKNSt7__cxx1112basic_stringIcSt11char_traits\0"
)
OLD_STRING = b"\0_ZN3c106detail14torchCheckFailEPKcS2_jRKSs\0_ZNSt7__cxx1112basic_string\0"

Read = Callable[..., TorchBuild]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """What is read of a package that would fail if it were imported."""

    def make(
        version: str,
        cuda: str | None = None,
        hip: str | None = None,
        xpu: str | None = None,
        library: bytes = NEW_STRING,
    ) -> TorchBuild:
        package = tmp_path / "torch"
        (package / "lib").mkdir(parents=True, exist_ok=True)
        (package / "__init__.py").write_text("raise SystemExit('imported')\n")
        text = VERSION_FILE.format(version=version, cuda=cuda, hip=hip, xpu=xpu)
        (package / "version.py").write_text(text)
        (package / "lib" / "libc10.so").write_bytes(b"\x7fELF" + library)
        return torch_build(Path(sys.executable), {**os.environ, "PYTHONPATH": str(tmp_path)})

    return make


def refusal(read: Read, *arguments: str, **fields: str) -> str:
    with pytest.raises(RehearsalNotPossible) as caught:
        read(*arguments, **fields)
    assert caught.value.message.zh_cn
    return caught.value.message.en


def test_a_cuda_build(read: Read, tmp_path: Path) -> None:
    build = read("2.15.0+cu132", cuda="13.2")
    assert build.folder == tmp_path / "torch"
    assert (build.version, build.release.public, build.cuda) == ("2.15.0+cu132", "2.15.0", "13.2")
    assert build.git_version.startswith("d0f2af8b")
    assert build.libraries == tmp_path / "torch" / "lib"


def test_a_cpu_build(read: Read) -> None:
    assert read("2.13.0+cpu").cuda is None


def test_what_compiling_for_the_interpreter_needs(read: Read) -> None:
    build = read("2.13.0+cpu")
    assert build.python_tag.startswith(f"cp{sys.version_info.major}{sys.version_info.minor}")
    assert build.extension_suffix.endswith(".so")
    assert build.python_include.name.startswith("python3")


def test_the_string_abi_is_read_from_the_names_in_libc10(read: Read) -> None:
    assert read("2.13.0").new_string_abi
    assert not read("2.13.0+conda", library=OLD_STRING).new_string_abi


def test_builds_of_one_version_are_told_apart(read: Read) -> None:
    first = read("2.13.0").identity
    assert read("2.13.0").identity == first
    assert read("2.13.0", library=NEW_STRING + b"conda").identity != first


def test_rocm_and_xpu_are_refused_by_name(read: Read) -> None:
    assert "ROCm" in refusal(read, "2.13.0+rocm7.0", hip="7.0.51831")
    assert "XPU" in refusal(read, "2.13.0+xpu", xpu="20260101")


def test_an_old_release_is_refused(read: Read) -> None:
    assert "2.7.1+cu126 is too old" in refusal(read, "2.7.1+cu126", cuda="12.6")


def test_a_torch_without_libraries_is_refused(read: Read, tmp_path: Path) -> None:
    read("2.13.0")
    (tmp_path / "torch" / "version.py").write_text("nothing = 1\n")
    with pytest.raises(RehearsalNotPossible, match="incomplete"):
        torch_build(Path(sys.executable), {**os.environ, "PYTHONPATH": str(tmp_path)})


def test_an_interpreter_without_torch_is_refused() -> None:
    with pytest.raises(RehearsalNotPossible, match="has no PyTorch"):
        torch_build(Path(sys.executable), {"PATH": os.environ["PATH"]})


def test_an_interpreter_that_does_not_start_is_refused(tmp_path: Path) -> None:
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho no module named encodings >&2\nexit 1\n")
    broken.chmod(0o755)
    with pytest.raises(RehearsalNotPossible, match="no module named encodings"):
        torch_build(broken)


def test_the_real_torch(torch_python: Path) -> None:
    build = torch_build(torch_python)
    assert build.interpreter == torch_python
    assert (build.libraries / "libtorch_cpu.so").is_file()
    assert (build.includes / "torch" / "library.h").is_file()
    assert (build.python_include / "Python.h").is_file()
