"""Which lines of the user's files this rank executes, each written down once: what a rehearsal did not reach is told
from it.

CPython 3.12 and newer tell of a line the first time only (``sys.monitoring``), at no cost. Older ones trace, which
makes Python half as slow again: imports are left out, and only runs of a few steps are traced. In these, every version
tells of every line, for the `trail`. Nothing is written where
somebody else traces.
"""

from __future__ import annotations

import atexit
import importlib
import os
import sys
import threading
from typing import Any, Iterable

from .journal import Journal
from .trail import Trail, here

_LIBRARIES = frozenset({"site-packages", "dist-packages"})
_NOT_THE_USERS = tuple(
    os.path.join(os.path.realpath(os.path.dirname(file)), "")
    for file in (os.__file__, os.path.dirname(__file__))
)
"""The standard library and the agent itself, which may lie below the user's folder."""
_FREE_TOOLS = (3, 4)
"""Of ``sys.monitoring``; the others are for debuggers, coverage, profilers and optimizers."""
_OUT_OF_SIGHT = ("multiprocessing.popen_spawn_posix", "multiprocessing.popen_forkserver")
"""Processes started so execute the user's files without us."""


class Reached:
    """Writes ``LINE<tab>FILE``, and a line 0 where not everything was seen. Forked workers write to the same file."""

    def __init__(self, path: str, roots: Iterable[str], trail: Trail | None = None) -> None:
        self._trail = trail
        self._roots = tuple(os.path.join(os.path.realpath(root), "") for root in roots)
        self._lines: dict[str, set[int] | None] = {}
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def lines_of(self, filename: str) -> set[int] | None:
        """The lines of a file that were executed; None for a file that is not the user's."""
        try:
            return self._lines[filename]
        except KeyError:
            lines: set[int] | None = set() if self._is_users(filename) else None
            self._lines[filename] = lines
            return lines

    def note(self, filename: str, line: int) -> None:
        """A line is about to be executed."""
        lines = self.lines_of(filename)
        if lines is None:
            return
        if self._trail is not None:
            self._trail.note(filename, line)
        if line not in lines:
            lines.add(line)
            self._write(line, os.path.realpath(filename))

    def end(self) -> None:
        """The rank ends."""
        if any(name in sys.modules for name in _OUT_OF_SIGHT):
            self.lost()

    def lost(self) -> None:
        """There are lines that were executed and not noted."""
        self._write(0, "")

    def _write(self, line: int, filename: str) -> None:
        try:
            os.write(self._descriptor, os.fsencode(f"{line}\t{filename}\n"))
        except OSError:  # a full disk is no reason to end the user's training
            return

    def _is_users(self, filename: str) -> bool:
        if not os.path.isabs(filename):
            return False
        path = os.path.realpath(filename)
        if not path.startswith(self._roots) or path.startswith(_NOT_THE_USERS):
            return False
        return _LIBRARIES.isdisjoint(path.split(os.sep))


def install(journal: Journal, directory: str, rank: int, script: str, is_short: bool) -> None:
    """Note lines from now on; ``is_short``: whether the run makes a few steps only."""
    modern = sys.version_info >= (3, 12)
    if not modern and (not is_short or sys.gettrace() is not None):
        return
    folder = os.path.dirname(os.path.abspath(script))
    trail = here if is_short else None
    if trail is not None:
        trail.open(os.path.join(directory, f"rank{rank}.trail"), journal)
    path = os.path.join(directory, f"rank{rank}.reached")
    reached = Reached(path, (folder, os.getcwd()), trail)
    if modern:
        _monitor(reached, getattr(sys, "monitoring"), is_short)  # noqa: B009 - older stubs lack it
    else:
        _trace(reached)
    atexit.register(reached.end)


def _monitor(reached: Reached, monitoring: Any, is_short: bool) -> None:
    tool = next((tool for tool in _FREE_TOOLS if monitoring.get_tool(tool) is None), None)
    if tool is None:
        return
    monitoring.use_tool_id(tool, "ranksafe")

    def started(code: Any, _offset: int) -> Any:
        if reached.lines_of(code.co_filename) is not None:
            monitoring.set_local_events(tool, code, monitoring.events.LINE)
        return monitoring.DISABLE

    def line(code: Any, number: int) -> Any:
        reached.note(code.co_filename, number)
        return None if is_short else monitoring.DISABLE

    monitoring.register_callback(tool, monitoring.events.PY_START, started)
    monitoring.register_callback(tool, monitoring.events.LINE, line)
    monitoring.set_events(tool, monitoring.events.PY_START)


_IMPORTS = """
def _find_and_load(name, import_):
    tracer = gettrace()
    settrace(None)
    try:
        return find_and_load(name, import_)
    finally:
        settrace(tracer)

def exec_module(self, module):
    if lines_of(getattr(module, "__file__", None) or "") is None:
        return execute(self, module)
    tracer = gettrace()
    settrace(called)
    try:
        return execute(self, module)
    finally:
        settrace(tracer)
"""
"""Tracing rests while something is imported, but not while a module of the user's is executed for it."""


def _trace(reached: Reached) -> None:
    lines_of, gettrace = reached.lines_of, sys.gettrace

    def called(frame: Any, _event: str, _argument: Any) -> Any:
        # Asking for the code raises an audit event, which every hook of the process hears: not for libraries.
        module = frame.f_globals.get("__file__")
        if module is not None and lines_of(module) is None:
            return None
        return None if lines_of(frame.f_code.co_filename) is None else within

    def within(frame: Any, event: str, _argument: Any) -> Any:
        if event == "line":
            reached.note(frame.f_code.co_filename, frame.f_lineno)
        return within

    def unseen() -> Any:
        """Scripts ask in order to learn whether they are debugged."""
        tracer = gettrace()
        return None if tracer is called else tracer

    def end() -> None:
        if gettrace() is not called:
            reached.lost()

    low = importlib.import_module("importlib._bootstrap")
    loader = importlib.import_module("importlib._bootstrap_external").SourceLoader
    names = {
        "called": called,
        "execute": loader.exec_module,
        "find_and_load": getattr(low, "_find_and_load"),  # noqa: B009
        "gettrace": gettrace,
        "lines_of": lines_of,
        "settrace": sys.settrace,
    }
    # Under importlib's own name, by which Python leaves its frames out of the tracebacks of failed imports.
    exec(compile(_IMPORTS, "<frozen importlib._bootstrap>", "exec"), names)  # noqa: S102 - the text above
    setattr(low, "_find_and_load", names["_find_and_load"])  # noqa: B010
    loader.exec_module = names["exec_module"]
    sys.gettrace = unseen
    atexit.register(end)
    threading.settrace(called)
    sys.settrace(called)
