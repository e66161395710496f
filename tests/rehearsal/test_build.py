"""Compiling once, keeping it, stopping and going on: with small sources that include nothing of torch's."""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from ranksafe.localization import Translated
from ranksafe.rehearsal.errors import RehearsalNotPossible
from ranksafe.rehearsal.native import BuildStopped
from ranksafe.rehearsal.native.build import Builder, build_key
from ranksafe.rehearsal.native.cache import BuildCache
from ranksafe.rehearsal.native.manifest import Manifest
from ranksafe.rehearsal.native.prebuilt import prebuilt_files
from ranksafe.rehearsal.native.sources import SourceTree
from ranksafe.rehearsal.torch_build import TorchBuild, torch_build

from tests.rehearsal.compiled import needed_compiler, shared_library

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="rehearsals run on Linux so far"
)

SOURCES = {
    "answer.h": "#pragma once\nint answer();\n",
    "answer.cpp": '#include "answer.h"\nint answer() { return 42; }\n',
    "interface.cpp": '#include "answer.h"\nextern "C" int ranksafe_answer() { return answer(); }\n',
    "nccl/one_unit.cpp": '#include "module.cpp"\n',
    "nccl/module.cpp": '#include "../answer.h"\nextern "C" int doubled() { return 2 * answer(); }\n',
}
SLOW = """
template <unsigned depth, unsigned long path> struct Tree {
  static constexpr unsigned long sum =
      Tree<depth - 1, 2 * path>::sum + Tree<depth - 1, 2 * path + 1>::sum;
};
template <unsigned long path> struct Tree<0, path> { static constexpr unsigned long sum = path; };
unsigned long slow = Tree<18, 1>::sum;
"""
"""Takes g++ 12 some 13 s of processor time and 1.5 GB."""
LIBRARIES = ("libtorch_cpu.so", "libc10.so", "libtorch_python.so")


class Workplace:
    """A small torch, small sources, a cache, and what a build said."""

    def __init__(self, folder: Path, build: TorchBuild) -> None:
        self.build = build
        self.tree = SourceTree(folder / "src")
        self.cache = BuildCache(folder / "cache")
        self.said: list[str] = []
        for name, text in SOURCES.items():
            self.write(name, text)

    def write(self, name: str, text: str) -> None:
        path = self.tree.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def builder(self, should_stop: Callable[[], bool] = lambda: False) -> Builder:
        return Builder(self.build, self.cache, self.hear, should_stop, self.tree)

    def hear(self, step: Translated) -> None:
        assert step.zh_cn
        self.said.append(step.en)

    @property
    def objects(self) -> dict[str, int]:
        """Every kept object and when it was written."""
        return {path.name: path.stat().st_ino for path in self.cache.objects.glob("*.o")}


@pytest.fixture(scope="module")
def small_torch(tmp_path_factory: pytest.TempPathFactory) -> TorchBuild:
    """A package with the layout of torch, whose libraries are empty."""
    compiler = needed_compiler()
    site = tmp_path_factory.mktemp("site")
    libraries = site / "torch" / "lib"
    libraries.mkdir(parents=True)
    for name in LIBRARIES:
        shared_library(compiler, libraries / name, "")
    (site / "torch" / "__init__.py").write_text("")
    (site / "torch" / "version.py").write_text("__version__ = '2.13.0+cpu'\ncuda = None\n")
    headers = site / "torch" / "include" / "torch"
    headers.mkdir(parents=True)
    (headers / "library.h").write_text("")
    return torch_build(Path(sys.executable), {"PYTHONPATH": str(site)})


@pytest.fixture
def workplace(tmp_path: Path, small_torch: TorchBuild) -> Workplace:
    return Workplace(tmp_path, small_torch)


def test_the_files_are_compiled_linked_and_listed(workplace: Workplace) -> None:
    files = workplace.builder().files()
    assert files.stand_ins == ()
    assert ctypes.CDLL(files.devices, mode=ctypes.RTLD_GLOBAL).ranksafe_answer() == 42
    assert ctypes.CDLL(files.nccl_module).doubled() == 84
    assert Path(files.nccl_module).name.endswith(workplace.build.extension_suffix)
    assert (
        "Compiling the simulated GPUs for PyTorch 2.13.0+cpu, once: 0 of 2 parts" in workplace.said
    )


def test_the_second_time_nothing_is_done(workplace: Workplace) -> None:
    first = workplace.builder().files()
    workplace.said.clear()
    assert workplace.builder().files() == first
    assert workplace.said == []


def test_an_edit_recompiles_the_part_that_it_is_in(workplace: Workplace) -> None:
    first = workplace.builder().files()
    before = workplace.objects
    workplace.write("answer.cpp", '#include "answer.h"\nint answer() { return 43; }\n')
    second = workplace.builder().files()
    assert second.devices != first.devices
    assert len(workplace.objects) == len(before) + 1
    assert before.items() <= workplace.objects.items()


def test_an_edited_header_recompiles_all_that_includes_it(workplace: Workplace) -> None:
    workplace.builder().files()
    before = workplace.objects
    workplace.write("answer.h", "#pragma once\nint answer();\nint more();\n")
    workplace.builder().files()
    assert len(workplace.objects) == len(before) + 2


def test_another_build_of_torch_gets_files_of_its_own(workplace: Workplace) -> None:
    first = workplace.builder().files()
    workplace.build = replace(workplace.build, git_version="another")
    assert workplace.builder().files().devices != first.devices


def test_a_stopped_build_leaves_no_build_and_goes_on_later(workplace: Workplace) -> None:
    workplace.write("nccl/module.cpp", SLOW)
    with pytest.raises(BuildStopped):
        workplace.builder(lambda: bool(workplace.objects)).files()
    kept = workplace.objects
    assert len(kept) == 1
    assert [entry.name for entry in workplace.cache.builds.iterdir() if entry.is_dir()] == []
    workplace.write("nccl/module.cpp", SOURCES["nccl/module.cpp"])
    workplace.said.clear()
    workplace.builder().files()
    assert kept.items() <= workplace.objects.items()
    assert any("0 of 1 parts" in step for step in workplace.said)


def test_a_stop_does_not_wait_for_the_compiler(workplace: Workplace) -> None:
    workplace.write("slow.cpp", SLOW)
    begun = time.monotonic()
    with pytest.raises(BuildStopped):
        workplace.builder(lambda: time.monotonic() > begun + 1).files()
    assert time.monotonic() - begun < 15


def test_an_error_of_the_compiler_is_kept_and_named(workplace: Workplace) -> None:
    workplace.write("answer.cpp", "this is not C++\n")
    with pytest.raises(
        RehearsalNotPossible, match=r"What the compiler said is in (\S+\.txt)"
    ) as caught:
        workplace.builder().files()
    log = next(workplace.cache.logs.iterdir())
    assert str(log) in caught.value.message.en
    assert str(log) in caught.value.message.zh_cn
    assert "answer.cpp:1:1: error:" in log.read_text()


def test_two_at_once_compile_once(workplace: Workplace) -> None:
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(workplace.builder().files()))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 3
    assert len(set(results)) == 1
    assert sum(step.startswith("Linking") for step in workplace.said) == 1
    assert "Another process is compiling the simulated GPUs; waiting for it" in workplace.said


def test_a_waiting_build_can_be_stopped(workplace: Workplace) -> None:
    workplace.cache.prepare()
    with (
        workplace.cache.locked("key", lambda: False, lambda: None),
        pytest.raises(BuildStopped),
        workplace.cache.locked("key", lambda: True, lambda: None),
    ):
        pass


def test_without_a_compiler_it_is_said_what_to_install(
    workplace: Workplace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(RehearsalNotPossible, match=r"apt-get install g\+\+ .* dnf .* conda"):
        workplace.builder().files()


def test_a_broken_compiler_is_passed_over(
    workplace: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", "false --version")
    assert workplace.builder().files().devices


def test_without_headers_it_is_said_what_to_install(workplace: Workplace, tmp_path: Path) -> None:
    workplace.build = replace(workplace.build, python_include=tmp_path)
    with pytest.raises(
        RehearsalNotPossible, match=r"Python\.h .* apt-get install python3\.\d+-dev"
    ):
        workplace.builder().files()
    (tmp_path / "lib").symlink_to(workplace.build.libraries)
    workplace.build = replace(workplace.build, folder=tmp_path)
    with pytest.raises(RehearsalNotPossible, match=r"headers of PyTorch 2\.13\.0\+cpu"):
        workplace.builder().files()


def test_a_cache_that_cannot_be_written_is_named(workplace: Workplace, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    workplace.cache = BuildCache(tmp_path / "file" / "cache")
    with pytest.raises(RehearsalNotPossible, match="cannot be written to"):
        workplace.builder().files()


def test_what_is_not_used_for_a_month_is_deleted(workplace: Workplace) -> None:
    first = workplace.builder().files()
    old = time.time() - 31 * 86_400
    for path in [*workplace.cache.objects.iterdir(), Path(first.devices).parent]:
        os.utime(path, (old, old))
    workplace.write("more.cpp", "int more() { return 1; }\n")
    second = workplace.builder().files()
    assert not Path(first.devices).exists()
    assert Path(second.devices).exists()
    assert len(workplace.objects) == 2  # the one that was needed again is in use again


def test_prebuilt_files_serve_that_build_only(workplace: Workplace, tmp_path: Path) -> None:
    finished = Path(workplace.builder().files().devices).parent
    prebuilt = tmp_path / "prebuilt"
    place = prebuilt / f"2.13.0+cpu-{workplace.build.python_tag}"
    shutil.copytree(finished, place)
    key = build_key(workplace.build, workplace.tree)
    found = prebuilt_files(workplace.build, key, prebuilt)
    assert found == Manifest.read(place).files(place)
    workplace.write("more.cpp", "")
    newer = build_key(workplace.build, workplace.tree)
    assert prebuilt_files(workplace.build, newer, prebuilt) is None
    assert prebuilt_files(replace(workplace.build, version="2.14.0"), key, prebuilt) is None


def test_prebuilt_files_of_a_newer_system_are_left_alone(
    workplace: Workplace, tmp_path: Path
) -> None:
    finished = Path(workplace.builder().files().devices).parent
    place = tmp_path / "prebuilt" / f"2.13.0+cpu-{workplace.build.python_tag}"
    shutil.copytree(finished, place)
    replace(Manifest.read(place), glibc="2.99").write(place)
    key = build_key(workplace.build, workplace.tree)
    assert prebuilt_files(workplace.build, key, place.parent) is None
