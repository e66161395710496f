"""Stand-ins for the libraries a CUDA build of torch is linked with, so that it loads without them and without a GPU.

PyPI's torch for Linux is a CUDA build: libtorch_python and libtorch_cpu name libtorch_cuda, libc10_cuda, libcudart and
others as needed. A library that is in the process already is found by its SONAME, wherever the file is, so libraries
with those names are loaded first. They hold stubs of what torch needs of the real ones, no CUDA kernel registers
itself, and the CUDA dispatch key is free for the simulated devices.

libtorch_cuda and libc10_cuda get every function that they export, for the extension modules of other packages:
Python loads those with RTLD_NOW, so that a function that is missing breaks the import and not the call. NVIDIA's
libraries get what torch's own use of them, which covers what is needed for launching kernels; their functions report
"no CUDA-capable device". ``ranksafe_stand_ins_arm`` of the first library (``src/stand_ins/called.cpp``) ends the time
in which calls are forgiven, because torch makes them while it is imported.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from ranksafe.rehearsal.native import shared_library, stand_in_source
from ranksafe.rehearsal.native.compiler import Compiler, run_compiler
from ranksafe.rehearsal.native.shared_library import SharedLibrary, Symbol, read_shared_library
from ranksafe.rehearsal.native.sources import SOURCES
from ranksafe.rehearsal.torch_build import TorchBuild

GENERATOR_FILES = tuple(
    Path(file) for file in (__file__, stand_in_source.__file__, shared_library.__file__)
)
"""What decides how stand-ins look, besides the torch they are for."""

HANDLER = "libranksafe_stand_ins.so"
"""Loaded first; the stubs of the others jump into it."""

_TORCH_CUDA = re.compile(r"lib(torch_cuda|c10_cuda|torch_nvshmem|caffe2_nvrtc)\w*\.so")
_NVIDIA = re.compile(
    r"lib(cudart|cublas|cudnn|cufft|cufile|cupti|curand|cusolver|cusparse|cudss|cutensor|nv|nccl)"
)
_NVIDIA_SYMBOL = re.compile(
    r"_*(cu[A-Z]|cu(da|blas|dnn|fft|file|pti|rand|solver|sparse|tensor)|nccl|nv)"
)


@dataclass(frozen=True, slots=True)
class StandIn:
    """A library to make."""

    soname: str
    symbols: tuple[Symbol, ...]
    versions: tuple[str, ...]
    """Symbol versions that must exist, whether or not a symbol has them."""
    c_interface: bool
    """One of NVIDIA's; else one of torch's own."""


def make_stand_ins(
    build: TorchBuild,
    compiler: Compiler,
    folder: Path,
    should_stop: Callable[[], bool],
    implemented: Path,
) -> tuple[str, ...]:
    """Write the stand-ins for ``build`` into ``folder`` and return their names in the order of loading.

    ``implemented`` is the devices library: what it defines of torch's CUDA functions gets no stub.
    Raises CompilerFailed, BuildStopped and OSError.
    """
    readelf = compiler.tool("readelf")
    users, replaced = torch_libraries(build.folder, readelf)
    users.append(read_shared_library(implemented, readelf))
    planned = plan(users, replaced)
    return link_stand_ins(planned, compiler, folder, should_stop)


def torch_libraries(package: Path, readelf: str) -> tuple[list[SharedLibrary], list[SharedLibrary]]:
    """The libraries of torch that are loaded as they are, and those that are replaced."""
    modules = [*package.glob("_C*.so"), *(package.parent / "functorch").glob("_C*.so")]
    users: list[SharedLibrary] = []
    replaced: list[SharedLibrary] = []
    for path in sorted((package / "lib").glob("*.so*")) + sorted(modules):
        if _NVIDIA.match(path.name):
            continue  # copied into the wheel under a name of its own; its users say what they need of it
        library = read_shared_library(path, readelf)
        (replaced if _TORCH_CUDA.match(library.soname) else users).append(library)
    return users, replaced


def plan(users: Iterable[SharedLibrary], replaced: Iterable[SharedLibrary]) -> list[StandIn]:
    """What has to be made so that ``users`` load without ``replaced`` and without any library of NVIDIA's."""
    users = list(users)
    needed = {name for library in users for name in library.needed}
    kept = {name for library in users for name in library.defined}
    wanted = {symbol.name for library in users for symbol in library.undefined} - kept
    # The others are loaded by these when there is something to do for them.
    replaced = [
        library
        for library in replaced
        if library.soname in needed or not wanted.isdisjoint(library.defined)
    ]
    stand_ins = []
    for library in replaced:
        symbols = [
            replace(symbol, version=None)
            for symbol in library.defined.values()
            if symbol.name not in kept and (symbol.name in wanted or not symbol.weak)
        ]
        stand_ins.append(StandIn(library.soname, tuple(symbols), (), c_interface=False))
        kept.update(symbol.name for symbol in symbols)
    return stand_ins + _of_nvidia(users, replaced, kept)


def _of_nvidia(
    loaded: list[SharedLibrary], replaced: list[SharedLibrary], kept: set[str]
) -> list[StandIn]:
    users = [*loaded, *replaced]
    sonames = sorted({name for user in users for name in user.needed if _NVIDIA.match(name)})
    symbols: dict[str, dict[str, Symbol]] = {soname: {} for soname in sonames}
    versions: dict[str, set[str]] = {soname: set() for soname in sonames}
    for user in users:
        for version, file in user.version_files.items():
            if file in versions:
                versions[file].add(version)
        for symbol in user.undefined:
            if symbol.name in kept:
                continue
            provider = _provider(symbol, user, sonames)
            if provider is None and user in loaded and _is_nvidias(symbol):
                provider = sonames[0]  # any will do for the dynamic linker
            if provider is not None:
                symbols[provider].setdefault(symbol.name, symbol)
    return [
        StandIn(
            soname,
            tuple(symbols[soname].values()),
            tuple(sorted(versions[soname])),
            c_interface=True,
        )
        for soname in sonames
    ]


def _provider(symbol: Symbol, user: SharedLibrary, sonames: list[str]) -> str | None:
    """Which of NVIDIA's libraries defines the symbol, by its version or else by its name; None: nothing tells."""
    if symbol.version is not None:
        file = user.version_files.get(symbol.version, "")
        return file if file in sonames else None
    if not _is_nvidias(symbol):
        return None
    plain = symbol.name.lstrip("_").lower()
    stems = {soname: re.split(r"[._-]", soname[3:].lower())[0] for soname in sonames}
    matching = [soname for soname in sonames if plain.startswith(stems[soname])]
    return max(matching, key=lambda soname: len(stems[soname]), default=None)


def _is_nvidias(symbol: Symbol) -> bool:
    return not symbol.weak and _NVIDIA_SYMBOL.match(symbol.name) is not None


def link_stand_ins(
    stand_ins: Iterable[StandIn],
    compiler: Compiler,
    folder: Path,
    should_stop: Callable[[], bool],
) -> tuple[str, ...]:
    """Assemble and link the libraries into ``folder``; returns their names, the handler's first.

    Raises CompilerFailed, BuildStopped and OSError.
    """
    names = [HANDLER]
    shared = [*compiler.command, "-shared", "-fPIC", "-Wl,-z,noexecstack", "-Wl,-s"]
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        sources = [str(path) for path in SOURCES.stand_ins]
        handler = [*shared, "-O1", *sources, "-ldl", f"-Wl,-soname,{HANDLER}"]
        run_compiler([*handler, "-o", str(folder / HANDLER)], scratch, should_stop)
        for stand_in in stand_ins:
            source, script = scratch / "stand_in.s", scratch / "versions.map"
            source.write_text(
                stand_in_source.assembly(stand_in.symbols, c_interface=stand_in.c_interface)
            )
            command = [
                *shared,
                str(source),
                str(folder / HANDLER),
                f"-Wl,-soname,{stand_in.soname}",
            ]
            if stand_in.versions:
                script.write_text(
                    stand_in_source.version_script(stand_in.symbols, stand_in.versions)
                )
                command.append(f"-Wl,--version-script={script}")
            run_compiler([*command, "-o", str(folder / stand_in.soname)], scratch, should_stop)
            names.append(stand_in.soname)
    return tuple(names)
