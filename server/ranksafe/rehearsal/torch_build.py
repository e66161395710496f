"""Which torch an interpreter has: its version, what it was built for, and what compiling against it needs.

Everything is read from files; the interpreter is asked only where it finds torch and Python's headers. torch itself is
never imported: that takes seconds and may fail on the very machines a rehearsal is for.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.version import InvalidVersion, Version

from ranksafe.localization import Translated
from ranksafe.rehearsal.errors import RehearsalNotPossible

OLDEST_TORCH = Version("2.8")
"""The oldest release that the sources under ``native/src`` compile for (``torch_compatibility.h``)."""

_PROBE_TIMEOUT_SECONDS = 60

# `find_spec` looks a top-level package up without importing it.
_PROBE = """
import json, os, platform, sys, sysconfig
from importlib import util
spec = util.find_spec("torch")
print(json.dumps({
    "torch": os.path.dirname(spec.origin) if spec is not None and spec.origin else None,
    "include": sysconfig.get_paths()["include"],
    "suffix": sysconfig.get_config_var("EXT_SUFFIX"),
    "python": list(sys.version_info[:2]),
    "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
    "implementation": sys.implementation.name,
    "system": sys.platform,
    "machine": platform.machine(),
}))
"""
_ASSIGNMENT = re.compile(r"^(\w+)[ \t]*(?::[^=\n]*)?=[ \t]*(\S(?:.*\S)?)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class TorchBuild:
    """A torch installation, as far as compiled code must fit it."""

    interpreter: Path
    folder: Path
    """The package itself: ``.../site-packages/torch``."""
    version: str
    """With the build's own tag, as in torch/version.py: ``2.13.0+cpu``, ``2.15.0+cu132``, or without one."""
    cuda: str | None
    """The CUDA version it was built for, ``13.2``; None: a CPU build."""
    git_version: str
    python_tag: str
    """``cp311``; ``cp314t`` for a free-threaded Python."""
    extension_suffix: str
    """Of compiled modules: ``.cpython-311-x86_64-linux-gnu.so``."""
    python_include: Path
    """Where Python.h belongs; it need not be there."""
    system: str
    """``sys.platform`` of the interpreter."""
    machine: str
    """``platform.machine()`` of the interpreter."""

    @property
    def libraries(self) -> Path:
        """The folder of libtorch_cpu and the others."""
        return self.folder / "lib"

    @property
    def includes(self) -> Path:
        """The folder of torch's own headers; a slimmed installation may lack it."""
        return self.folder / "include"

    @property
    def release(self) -> Version:
        """The version without the build's tag."""
        return Version(Version(self.version).public)

    @property
    def new_string_abi(self) -> bool:
        """Whether it was compiled with libstdc++'s C++11 ``std::string``, as PyPI's Linux wheels are since 2.7.

        The name of a function of libc10 tells, whose last argument is a string. Raises RehearsalNotPossible.
        """
        return b"torchCheckFailEPKcS2_jRKSs" not in _bytes_of(self.libraries / "libc10.so")

    @property
    def identity(self) -> str:
        """Differs between builds of the same version: of pip and conda, say. Raises RehearsalNotPossible."""
        library = hashlib.sha256(_bytes_of(self.libraries / "libc10.so")).hexdigest()
        facts = (self.version, self.git_version, self.cuda, library, self.python_tag)
        text = json.dumps([*facts, self.extension_suffix, self.system, self.machine])
        return hashlib.sha256(text.encode()).hexdigest()


def torch_build(interpreter: Path, environment: Mapping[str, str] | None = None) -> TorchBuild:
    """What ``import torch`` would import under ``interpreter``, started with ``environment`` (None: this process').

    Raises RehearsalNotPossible where the interpreter does not start, has no torch, or one that cannot carry simulated
    devices: built for ROCm or XPU, too old, or for a system that is not supported.
    """
    facts = _ask(interpreter, environment)
    _check_platform(str(facts["system"]), str(facts["machine"]), str(facts["implementation"]))
    if not facts["torch"]:
        raise RehearsalNotPossible(_NO_TORCH.filled(python=interpreter))
    folder = Path(str(facts["torch"]))
    settings = _version_file(folder)
    for kind in ("hip", "xpu"):
        if settings.get(kind):
            name = {"hip": "ROCm", "xpu": "Intel GPUs (XPU)"}[kind]
            raise RehearsalNotPossible(
                _OTHER_DEVICES.filled(version=settings["__version__"], devices=name)
            )
    build = TorchBuild(
        interpreter=interpreter,
        folder=folder,
        version=settings["__version__"],
        cuda=settings.get("cuda") or None,
        git_version=settings.get("git_version", ""),
        python_tag="cp{}{}{}".format(*facts["python"], "t" if facts["free_threaded"] else ""),
        extension_suffix=str(facts["suffix"]),
        python_include=Path(str(facts["include"])),
        system=str(facts["system"]),
        machine=str(facts["machine"]),
    )
    _check_version(build)
    return build


def _ask(interpreter: Path, environment: Mapping[str, str] | None) -> dict[str, Any]:
    try:
        answer = subprocess.run(
            [str(interpreter), "-c", _PROBE],
            env=dict(os.environ if environment is None else environment),
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PROBE_TIMEOUT_SECONDS,
            check=True,
        )
        facts = json.loads(answer.stdout.decode().splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError) as error:
        lines = (getattr(error, "stderr", None) or b"").decode(errors="replace").split("\n")
        reason = next((line for line in reversed(lines) if line.strip()), str(error))
        raise RehearsalNotPossible(
            _BROKEN_PYTHON.filled(python=interpreter, reason=reason)
        ) from error
    assert isinstance(facts, dict)
    return facts


def _version_file(folder: Path) -> dict[str, str]:
    """The assignments of torch/version.py whose value is a string; others are left out."""
    try:
        text = (folder / "version.py").read_text(encoding="utf-8")
    except OSError as error:
        raise RehearsalNotPossible(_DAMAGED_TORCH.filled(path=folder)) from error
    values = {name: value for name, value in _ASSIGNMENT.findall(text) if value[0] in "'\""}
    settings = {name: value.strip("'\"") for name, value in values.items()}
    if "__version__" not in settings or not (folder / "lib").is_dir():
        raise RehearsalNotPossible(_DAMAGED_TORCH.filled(path=folder))
    return settings


def _check_platform(system: str, machine: str, implementation: str) -> None:
    """Linux on x86-64 is what was tried.

    Elsewhere it takes: a compiler call and library names of that system in ``native.compiler`` (macOS: clang,
    ``.dylib``, ``-undefined dynamic_lookup``; Windows: MSVC, ``torch_cpu.lib``, ``LoadLibrary`` order instead of
    RTLD_GLOBAL), the stubs of ``native.stand_in_source`` for that processor (aarch64; only CUDA builds need them) and
    somebody who runs the tests there.
    """
    if implementation != "cpython":
        raise RehearsalNotPossible(_NOT_CPYTHON.filled(implementation=implementation))
    if system != "linux" or machine not in ("x86_64", "AMD64"):
        raise RehearsalNotPossible(_OTHER_SYSTEM.filled(system=system, machine=machine))


def _check_version(build: TorchBuild) -> None:
    try:
        release = build.release
    except InvalidVersion as error:
        raise RehearsalNotPossible(_DAMAGED_TORCH.filled(path=build.folder)) from error
    if release.release[:2] < OLDEST_TORCH.release[:2]:
        raise RehearsalNotPossible(
            _TOO_OLD.filled(version=build.version, oldest=OLDEST_TORCH.public)
        )


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise RehearsalNotPossible(_DAMAGED_TORCH.filled(path=path.parent.parent)) from error


_BROKEN_PYTHON = Translated(
    en="The Python interpreter {python} does not run: {reason}",
    zh_cn="Python 解释器 {python} 无法运行：{reason}",
)
_NO_TORCH = Translated(
    en="{python} has no PyTorch, so there is nothing to rehearse with. Install it there (pip "
    "install torch; the CPU build will do), or choose another interpreter.",
    zh_cn="{python} 没有安装 PyTorch，无法预演。请在其中安装（pip install torch，CPU 版即可），"
    "或选择另一个解释器。",
)
_DAMAGED_TORCH = Translated(
    en="The PyTorch in {path} is incomplete: its version or its libraries cannot be read. "
    "Reinstall it.",
    zh_cn="{path} 中的 PyTorch 不完整：无法读取其版本或库文件。请重新安装。",
)
_OTHER_DEVICES = Translated(
    en="PyTorch {version} was built for {devices}; a rehearsal simulates CUDA devices and needs "
    "a CPU or CUDA build. Choose an interpreter that has one.",
    zh_cn="PyTorch {version} 是为 {devices} 构建的；预演模拟的是 CUDA 设备，需要 CPU 版或 CUDA "
    "版。请选择装有这类版本的解释器。",
)
_TOO_OLD = Translated(
    en="PyTorch {version} is too old for a rehearsal: {oldest} is the oldest release that "
    "simulated GPUs work with.",
    zh_cn="PyTorch {version} 太旧，无法预演：模拟 GPU 最低支持 {oldest}。",
)
_NOT_CPYTHON = Translated(
    en="A rehearsal needs CPython; this interpreter is {implementation}.",
    zh_cn="预演需要 CPython；该解释器是 {implementation}。",
)
_OTHER_SYSTEM = Translated(
    en="Rehearsals run on Linux on x86-64 so far, not on {system} on {machine}. Rehearse in a "
    "Linux container, in WSL 2 or on a Linux machine (ssh, CI).",
    zh_cn="预演目前只支持 x86-64 上的 Linux，不支持 {machine} 上的 {system}。请在 Linux 容器、"
    "WSL 2 或 Linux 机器（ssh、CI）上预演。",
)
