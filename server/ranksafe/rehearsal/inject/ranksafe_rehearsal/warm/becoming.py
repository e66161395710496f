"""Turns a forked process into ``python SCRIPT ARGUMENTS…`` or ``python -m MODULE ARGUMENTS…``."""

from __future__ import annotations

import builtins
import importlib
import io
import logging
import os
import runpy
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from types import ModuleType
from typing import Any, NoReturn

from .. import journal, settings, state
from . import draws, files, variables


@dataclass(frozen=True)
class Imported:
    """What the template has done, as far as it concerns its forks."""

    environment: Mapping[str, str]
    """It was started with."""
    at_start: Mapping[str, "str | None"]
    """Changes that are made in every process of a rehearsal when it starts."""
    by_imports: Mapping[str, "str | None"]
    """Changes that the imports made."""
    asked: set[str]
    """Variables that imports looked at."""
    output: tuple[bytes, bytes]
    """What they printed, to each stream."""
    journal: tuple[bytes, ...]
    """What they noted, for the rehearsal's journal."""
    unseeded: draws.Unseeded


@dataclass(frozen=True)
class Program:
    """A command line, understood."""

    command: tuple[str, ...]
    unbuffered: bool
    module: str | None
    script: str | None
    arguments: tuple[str, ...]


def understood(command: Sequence[str]) -> Program | None:
    """None where it is not this very Python with a script or a module, and at most ``-u`` before."""
    rest = list(command)
    if not rest or rest.pop(0) != sys.executable:
        return None
    unbuffered = rest[:1] == ["-u"]
    if unbuffered:
        del rest[0]
    if rest[:1] == ["-m"] and len(rest) > 1:
        return Program(tuple(command), unbuffered, rest[1], None, tuple(rest[2:]))
    if not rest or rest[0].startswith("-"):
        return None
    return Program(tuple(command), unbuffered, None, rest[0], tuple(rest[1:]))


def cold(command: Sequence[str], environment: Mapping[str, str]) -> NoReturn:
    """Start the command as it is, in this process."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execve(command[0], list(command), dict(environment))
    finally:
        os._exit(127)


def become(program: Program, environment: Mapping[str, str], imported: Imported) -> None:
    """Make everything that Python code can see as if this process had just been started; `cold` in doubt."""
    differing = variables.changed(imported.environment, environment)
    folder = os.getcwd() if program.script is None else _folder_of(program.script)
    is_rank = program.script is not None
    changes = {**imported.at_start, **(imported.by_imports if is_rank else {})}
    if any(True for _ in variables.matter(differing, imported.asked)):
        cold(program.command, environment)
    if not changes.keys().isdisjoint(differing) or files.hidden_by(folder):
        cold(program.command, environment)
    wanted = {**environment, **changes}
    os.environ.clear()
    os.environ.update({name: value for name, value in wanted.items() if value is not None})
    sys.orig_argv[:] = program.command
    sys.argv[:] = [program.script or "-m", *program.arguments]
    sys.path[0] = folder
    importlib.invalidate_caches()
    sys.path_importer_cache.pop("", None)
    if not program.unbuffered:
        sys.stdout = sys.__stdout__ = _stream(1, sys.stdout)  # type: ignore[misc]
        sys.stderr = sys.__stderr__ = _stream(2, sys.stderr)  # type: ignore[misc]
    imported.unseeded.draw_anew()
    _begin(imported, is_rank)
    logging._startTime = time.time_ns() if sys.version_info >= (3, 13) else time.time()  # type: ignore[attr-defined]


def _begin(imported: Imported, is_rank: bool) -> None:
    """What sitecustomize does in every process of a rehearsal and a run."""
    settings.read_again()
    if "torch" in sys.modules:
        state.devices().begin()
    agent: Any = importlib.import_module("ranksafe_agent")
    agent.activate(os.path.dirname(os.path.dirname(agent.__file__)))
    if not is_rank:
        return
    for number, written in zip((1, 2), imported.output):
        if written:
            os.write(number, written)
    journal.write_again(imported.journal)
    journal.modified(
        "started warm: the first imports of the script had been done before",
        "热启动：脚本开头的导入已提前完成",
        kind="warm-start",
    )


def _folder_of(script: str) -> str:
    """What Python puts first on its path: links of the script followed, not of its folder."""
    path = os.path.realpath(script) if os.path.islink(script) else script
    return os.path.abspath(os.path.dirname(path))


def _stream(number: int, before: Any) -> io.TextIOWrapper:
    """As Python makes its standard streams (CPython 3.11, ``create_stdio``)."""
    raw = open(number, "wb", -1, closefd=False)
    lines = number == 2 or os.isatty(number)
    return io.TextIOWrapper(raw, before.encoding, before.errors, "\n", line_buffering=lines)


def run(program: Program) -> None:
    """The rest of the process. What the program raises, this raises."""
    main = ModuleType("__main__")
    names = vars(main)
    names["__builtins__"] = builtins
    if sys.version_info < (3, 14):
        names["__annotations__"] = {}
    sys.modules["__main__"] = main
    try:
        if program.module is not None:
            sys.modules.pop(program.module, None)
            runpy._run_module_as_main(program.module)  # type: ignore[attr-defined]
        elif program.script is not None:
            names["__file__"] = program.script
            names["__cached__"] = None
            names["__loader__"] = SourceFileLoader("__main__", program.script)
            with io.open_code(os.path.abspath(program.script)) as file:
                text = file.read()
            code = compile(text, program.script, "exec", dont_inherit=True)
            exec(code, names)  # noqa: S102 - the user's script
    except SystemExit:
        raise
    except BaseException as error:
        _hide_own_frames(error)
        raise


def _hide_own_frames(error: BaseException) -> None:
    """Whoever is told of the exception sees the traceback that it has where Python itself runs the script."""
    hook = sys.excepthook

    def told(kind: Any, value: BaseException, trace: Any) -> None:
        if value is error:
            while trace is not None and _is_ours(trace.tb_frame.f_code.co_filename):
                trace = trace.tb_next
            value.__traceback__ = sys.last_traceback = trace
        sys.excepthook = hook
        hook(kind, value, trace)

    sys.excepthook = told


def _is_ours(filename: str) -> bool:
    return filename.startswith(os.path.dirname(__file__) + os.sep)
