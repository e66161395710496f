"""How the compiler and the linker are called, as torch's own torch/utils/cpp_extension.py does where it matters."""

from __future__ import annotations

import re
from pathlib import Path

from ranksafe.localization import Translated
from ranksafe.rehearsal.errors import RehearsalNotPossible
from ranksafe.rehearsal.native.manifest import NCCL_MODULE
from ranksafe.rehearsal.native.sources import SourceTree
from ranksafe.rehearsal.torch_build import TorchBuild

# As in pybind11's detail/internals.h before version 3 of it: the compiler, the standard library and its ABI.
_PYBIND_ABI = re.compile(rb"__pybind11_internals_v\d+(_[a-z]+)(_libstdcpp|_libcpp)(_cxxabi\d+)__")


def compile_flags(build: TorchBuild, sources: SourceTree) -> list[str]:
    """Options for every source. Raises RehearsalNotPossible."""
    return [
        "-std=c++20",
        # Our own code is small and torch's does the work; -O2 costs a third more compile time.
        "-O1",
        "-g0",
        "-fPIC",
        "-DNDEBUG",
        f"-D_GLIBCXX_USE_CXX11_ABI={int(build.new_string_abi)}",
        f"-DTORCH_EXTENSION_NAME={NCCL_MODULE}",
        *_pybind_flags(build),
        # After the system's: a header of ours is called like one of C's (limits.h).
        "-idirafter",
        str(sources.folder),
        # As system headers: their warnings are not ours.
        "-isystem",
        str(build.includes),
        "-isystem",
        str(build.includes / "torch" / "csrc" / "api" / "include"),
        "-isystem",
        str(build.python_include),
    ]


def devices_link(build: TorchBuild, compiled: Path, name: str) -> list[str]:
    """Options that link the devices library; without a path to torch, which is loaded before it."""
    return [
        "-shared",
        str(compiled),
        "-o",
        name,
        f"-Wl,-soname,{name}",
        f"-L{build.libraries}",
        "-ltorch_cpu",
        "-lc10",
        "-pthread",
        "-Wl,-s",
    ]


def nccl_link(build: TorchBuild, compiled: Path, name: str, devices: Path) -> list[str]:
    """Options that link the extension module; torch and the devices are in the process already."""
    return [
        "-shared",
        str(compiled),
        "-o",
        name,
        str(devices),
        f"-L{build.libraries}",
        "-ltorch_python",
        "-ltorch_cpu",
        "-lc10",
        "-pthread",
        "-Wl,-s",
    ]


def check_headers(build: TorchBuild) -> None:
    """Raises RehearsalNotPossible where torch's or Python's headers are not there, saying how to get them."""
    if not (build.includes / "torch" / "library.h").is_file():
        raise RehearsalNotPossible(
            _NO_TORCH_HEADERS.filled(version=build.version, folder=build.includes)
        )
    if not (build.python_include / "Python.h").is_file():
        release = build.python_tag.removeprefix("cp").rstrip("t")
        raise RehearsalNotPossible(
            _NO_PYTHON_HEADERS.filled(
                folder=build.python_include, python=f"{release[0]}.{release[1:]}"
            )
        )


def _pybind_flags(build: TorchBuild) -> list[str]:
    """What makes pybind11 share its registry of types with torch's, though another compiler made that.

    torch passes the same through ``torch._C._PYBIND11_*`` up to 2.8; later its pybind11 does not tell compilers apart.
    """
    try:
        found = _PYBIND_ABI.search((build.libraries / "libtorch_python.so").read_bytes())
    except OSError:
        return []
    if found is None:
        return []
    names = ("COMPILER_TYPE", "STDLIB", "BUILD_ABI")
    return [
        f'-DPYBIND11_{name}="{value.decode()}"'
        for name, value in zip(names, found.groups(), strict=True)
    ]


_NO_TORCH_HEADERS = Translated(
    en="A rehearsal compiles a small library for your PyTorch once, and the headers of PyTorch "
    "{version} are not in {folder}. Reinstall PyTorch with pip or conda, which bring them.",
    zh_cn="预演需要为您的 PyTorch 编译一次小型库，但 {folder} 中没有 PyTorch {version} 的头文件。"
    "请用 pip 或 conda 重新安装 PyTorch，它们自带头文件。",
)
_NO_PYTHON_HEADERS = Translated(
    en="A rehearsal compiles a small library for your PyTorch once, and Python.h is not in "
    "{folder}. Install it: apt-get install python{python}-dev (Debian, Ubuntu), dnf install "
    "python{python}-devel (Fedora); Pythons of conda, pyenv and uv bring it.",
    zh_cn="预演需要为您的 PyTorch 编译一次小型库，但 {folder} 中没有 Python.h。请安装：apt-get "
    "install python{python}-dev（Debian、Ubuntu）、dnf install python{python}-devel（"
    "Fedora）；conda、pyenv 和 uv 的 Python 自带该文件。",
)
