"""Compile the simulated devices for one torch installation, once, and find them again."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

from ranksafe.localization import Translated
from ranksafe.rehearsal.errors import RehearsalNotPossible
from ranksafe.rehearsal.native import device_checks, flags
from ranksafe.rehearsal.native.cache import BuildCache, BuildStopped, not_writable, use_object
from ranksafe.rehearsal.native.compiler import (
    Compiler,
    CompilerFailed,
    find_compiler,
    run_compiler,
)
from ranksafe.rehearsal.native.manifest import DEVICES, Manifest, nccl_file
from ranksafe.rehearsal.native.prebuilt import prebuilt_files
from ranksafe.rehearsal.native.shared_library import oldest_glibc
from ranksafe.rehearsal.native.sources import SOURCES, SourceTree
from ranksafe.rehearsal.native.stand_ins import GENERATOR_FILES, make_stand_ins
from ranksafe.rehearsal.settings import NativeFiles
from ranksafe.rehearsal.torch_build import TorchBuild, torch_build

OnProgress = Callable[[Translated], None]
ShouldStop = Callable[[], bool]

_LARGEST_JOB_BYTES = 3 * 2**29
"""What compiling one file with torch's headers takes at most: 1.2 GiB was seen with g++ 12."""
_MOST_JOBS = 4
_POLL_SECONDS = 0.1


def native_files(
    interpreter: Path,
    on_progress: OnProgress,
    should_stop: ShouldStop = lambda: False,
    environment: Mapping[str, str] | None = None,
) -> NativeFiles:
    """The compiled parts that fit the torch ``interpreter`` imports when started with ``environment``.

    Compiling takes 50 seconds of processor time (g++ 12, torch 2.13), once per torch build; ``on_progress`` gets a
    sentence per step. Raises RehearsalNotPossible when it cannot be done here, BuildStopped when ``should_stop`` turned
    true (what was compiled so far is kept).
    """
    build = torch_build(interpreter, environment)
    ready = prebuilt_files(build, build_key(build, SOURCES))
    if ready is not None:
        return ready
    return Builder(build, BuildCache.of_user(), on_progress, should_stop).files()


@dataclass(frozen=True, slots=True)
class Builder:
    """Compiles ``sources`` for ``build``, unless ``cache`` has the result."""

    build: TorchBuild
    cache: BuildCache
    on_progress: OnProgress
    should_stop: ShouldStop
    sources: SourceTree = SOURCES

    def files(self) -> NativeFiles:
        """The finished files. Raises RehearsalNotPossible and BuildStopped."""
        key = build_key(self.build, self.sources)
        self.cache.prepare()
        kept = self.cache.build(key)
        if kept is None:
            try:
                with self.cache.locked(key, self.should_stop, lambda: self.on_progress(_WAITING)):
                    kept = self.cache.build(key) or self._make(key)
            except OSError as error:
                raise not_writable(self.cache.folder, error) from error
        return Manifest.read(kept).files(kept)

    def _make(self, key: str) -> Path:
        flags.check_headers(self.build)
        compiler = find_compiler()
        try:
            with self.cache.new_build(key) as folder:
                self.compile_into(folder, compiler)
        except CompilerFailed as error:
            log = self.cache.logs / f"{key}.txt"
            log.write_text(str(error), encoding="utf-8")
            raise RehearsalNotPossible(
                _FAILED.filled(version=self.build.version, compiler=compiler.version, log=log)
            ) from error
        return self.cache.builds / key

    def compile_into(self, folder: Path, compiler: Compiler) -> None:
        """Fill ``folder`` with the libraries and their manifest, whatever the cache has.

        Raises CompilerFailed, BuildStopped, RehearsalNotPossible and OSError.
        """
        devices, module = self._compiled((self.sources.devices, self.sources.nccl), compiler)
        self.on_progress(_LINKING)
        self._link(compiler, flags.devices_link(self.build, devices, DEVICES), folder)
        nccl = nccl_file(self.build)
        self._link(compiler, flags.nccl_link(self.build, module, nccl, folder / DEVICES), folder)
        stand_ins: tuple[str, ...] = ()
        if self.build.cuda is not None:
            self.on_progress(_STAND_INS.filled(version=self.build.version))
            stand_ins = make_stand_ins(
                self.build, compiler, folder, self.should_stop, folder / DEVICES
            )
        device_checks.write_table(self.build.folder.parent, folder / device_checks.TABLE_FILE)
        key = build_key(self.build, self.sources)
        files = [*stand_ins, DEVICES, nccl]
        glibc = oldest_glibc([folder / name for name in files], compiler.tool("readelf"))
        Manifest(key, self.build.version, stand_ins, DEVICES, nccl, glibc).write(folder)

    def _link(self, compiler: Compiler, arguments: Sequence[str], folder: Path) -> None:
        run_compiler([*compiler.command, *arguments], folder, self.should_stop)
        (folder / "output.txt").unlink()

    def _compiled(self, units: Sequence[Sequence[Path]], compiler: Compiler) -> list[Path]:
        """The object file of each unit, where it is not kept compiled, several at a time."""
        options = flags.compile_flags(self.build, self.sources)
        command = [*compiler.command, *options]
        facts = [self.build.identity, compiler.version, *options]
        objects = self._objects(units, facts)
        missing = [
            (unit, path) for unit, path in zip(units, objects, strict=True) if not use_object(path)
        ]
        stopped = threading.Event()
        with ThreadPoolExecutor(_jobs()) as pool:
            running: set[Future[None]] = {
                pool.submit(self._compile, unit, path, command, stopped.is_set)
                for unit, path in missing
            }
            try:
                self._wait_for(running)
            except BaseException:
                stopped.set()
                pool.shutdown(cancel_futures=True)
                raise
        if self._objects(units, facts) != objects:
            for _, path in missing:
                path.unlink()
            raise CompilerFailed("The sources were changed while they were compiled.")
        return objects

    def _objects(self, units: Iterable[Sequence[Path]], facts: Sequence[str]) -> list[Path]:
        keys = (self.sources.content_key(unit, facts) for unit in units)
        return [self.cache.object_file(key) for key in keys]

    def _wait_for(self, running: set[Future[None]]) -> None:
        total = len(running)
        told = -1
        while running:
            if told != total - len(running):
                told = total - len(running)
                self.on_progress(
                    _COMPILING.filled(version=self.build.version, done=told, total=total)
                )
            if self.should_stop():
                raise BuildStopped
            done, running = wait(running, _POLL_SECONDS, FIRST_COMPLETED)
            for future in done:
                future.result()

    def _compile(
        self, unit: Iterable[Path], goal: Path, command: Sequence[str], should_stop: ShouldStop
    ) -> None:
        """Compile the files of ``unit`` as one: parsing torch's headers takes five times as long as what is ours."""
        with tempfile.TemporaryDirectory(dir=self.cache.objects) as name:
            scratch = Path(name)
            one, made = scratch / "one_unit.cpp", scratch / "one_unit.o"
            one.write_text("".join(f'#include "{path}"\n' for path in unit), encoding="utf-8")
            run_compiler([*command, "-c", str(one), "-o", str(made)], scratch, should_stop)
            shutil.move(made, goal)


def build_key(build: TorchBuild, sources: SourceTree) -> str:
    """Names a build in the cache: differs where the torch, our sources, or what makes files of them differ."""
    digest = hashlib.sha256(build.identity.encode())
    digest.update(sources.key().encode())
    for path in (
        Path(__file__),
        Path(flags.__file__),
        Path(device_checks.__file__),
        *GENERATOR_FILES,
    ):
        digest.update(path.read_bytes())
    return f"torch-{build.version}-{build.python_tag}-{digest.hexdigest()[:20]}"


def _jobs() -> int:
    """How many files are compiled at a time: as many as there are processors and memory for."""
    processors = len(os.sched_getaffinity(0))
    memory = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(1, min(processors, _MOST_JOBS, memory // _LARGEST_JOB_BYTES))


_WAITING = Translated(
    en="Another process is compiling the simulated GPUs; waiting for it",
    zh_cn="另一个进程正在编译模拟 GPU，等待其完成",
)
_COMPILING = Translated(
    en="Compiling the simulated GPUs for PyTorch {version}, once: {done} of {total} parts",
    zh_cn="正在为 PyTorch {version} 编译模拟 GPU（仅一次）：已完成 {done}/{total} 个部分",
)
_STAND_INS = Translated(
    en="Making stand-ins for the CUDA libraries of PyTorch {version}, once",
    zh_cn="正在为 PyTorch {version} 的 CUDA 库生成替身（仅一次）",
)
_LINKING = Translated(
    en="Linking the simulated GPUs",
    zh_cn="正在链接模拟 GPU",
)
_FAILED = Translated(
    en="The simulated GPUs could not be compiled for PyTorch {version} with {compiler}. What "
    "the compiler said is in {log}. Try another compiler (CXX) or another PyTorch release; "
    "please report it with that file.",
    zh_cn="无法用 {compiler} 为 PyTorch {version} 编译模拟 GPU。编译器的输出在 {log}。请换一个编"
    "译器（CXX）或 PyTorch 版本；也请附上该文件反馈问题。",
)
