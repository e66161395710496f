"""The C++ compiler of the machine: which one there is, how it is called, and running it so that it can be stopped."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ranksafe.localization import Translated
from ranksafe.rehearsal.errors import RehearsalNotPossible
from ranksafe.rehearsal.native.cache import BuildStopped

_NAMES = ("g++", "c++", "clang++")
_POLL_SECONDS = 0.05
_LONGEST_SECONDS = 900


@dataclass(frozen=True, slots=True)
class Compiler:
    """A C++ compiler that answered when asked for its version."""

    command: tuple[str, ...]
    """What starts it; CXX may hold options too (``ccache g++``)."""
    version: str
    """The first line of its ``--version``."""

    def tool(self, name: str) -> str:
        """The path of a program that belongs to the compiler (``readelf``); the bare name where it does not know."""
        answer = subprocess.run(
            [*self.command, f"-print-prog-name={name}"], capture_output=True, text=True, check=False
        )
        return answer.stdout.strip() or name


def find_compiler() -> Compiler:
    """The compiler in CXX, else g++, c++ or clang++ on PATH.

    Raises RehearsalNotPossible, naming what to install, when none of them works.
    """
    chosen = os.environ.get("CXX", "").strip()
    commands = [tuple(shlex.split(chosen))] if chosen else []
    commands += [(name,) for name in _NAMES]
    for command in commands:
        if shutil.which(command[0]) is None:
            continue
        try:
            answer = subprocess.run(
                [*command, "--version"], capture_output=True, text=True, timeout=60, check=True
            )
        except (OSError, subprocess.SubprocessError):
            continue
        return Compiler(command, answer.stdout.partition("\n")[0])
    raise RehearsalNotPossible(_NO_COMPILER)


class CompilerFailed(Exception):
    """The compiler ended with an error; the argument is what it wrote."""


def run_compiler(command: Sequence[str], folder: Path, should_stop: Callable[[], bool]) -> None:
    """Run one compiler or linker call in ``folder``, in a process group of its own that a stop ends at once.

    Raises CompilerFailed, BuildStopped, and OSError when the program cannot be started.
    """
    environment = {**os.environ, "LC_ALL": "C"}
    with (folder / "output.txt").open("w+b") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        deadline = time.monotonic() + _LONGEST_SECONDS
        try:
            while process.poll() is None:
                if should_stop():
                    raise BuildStopped
                if time.monotonic() > deadline:
                    raise CompilerFailed(
                        f"stopped after {_LONGEST_SECONDS} s: {shlex.join(command)}"
                    )
                time.sleep(_POLL_SECONDS)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        if process.returncode != 0:
            output.seek(0)
            text = output.read().decode(errors="replace")
            raise CompilerFailed(f"{shlex.join(command)}\n{text}\nexit status {process.returncode}")


_NO_COMPILER = Translated(
    en="A rehearsal compiles a small library for your PyTorch once, and no C++ compiler was "
    "found. Install one: apt-get install g++ python3-dev (Debian, Ubuntu), dnf install "
    "gcc-c++ python3-devel (Fedora), conda install -c conda-forge gxx (conda); or set CXX to "
    "the compiler.",
    zh_cn="预演需要为您的 PyTorch 编译一次小型库，但找不到 C++ 编译器。请安装：apt-get install "
    "g++ python3-dev（Debian、Ubuntu）、dnf install gcc-c++ python3-devel（Fedora）、"
    "conda install -c conda-forge gxx（conda）；或将 CXX 设为编译器路径。",
)
