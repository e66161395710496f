"""The process that is forked: ``python -u start.py``, told by JSON on standard input what to import.

It lives in a folder of its own, which only the user can enter: ``socket`` is there once it can be asked, ``lock`` is
held as long as it lives. It ends when nobody has asked for a while, when the machine's memory runs short, when its
folder or what it has imported changes, and when it is told to.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import importlib
import importlib.util
import json
import os
import resource
import select
import socket
import sys
import time
import warnings
from typing import Any

from .. import settings, state
from . import becoming, children, draws, files, joining, messages, variables

_LOOK_SECONDS = 2.0
_LEAST_FREE = 0.1
"""Of the machine's memory."""
_FORK_SAFE_THREADS = ("jemalloc_bg_thd",)
"""Ended in forks by its own library, which holds its locks around the fork (jemalloc 5.3, ``background_thread.c``)."""
_LAUNCHERS = ("torch.distributed.run", "accelerate.commands.launch")


class Become(BaseException):
    """Raised in a forked process: unwinds the stack, so that the program is all that runs in it."""

    def __init__(self, program: becoming.Program, way: socket.socket | None) -> None:
        super().__init__()
        self._program = program
        self._way = way

    def run(self) -> None:
        """Be it; returns when the program is over, and raises what it raises."""
        if self._way is not None:
            children.ask_for(self._way, lambda words: becoming.understood(words) is not None)
        becoming.run(self._program)


class Template:
    """Imports, then answers."""

    def __init__(self, told: dict[str, Any], lock: int) -> None:
        self.lock = lock
        self.lease = os.dup(0) if told["leased"] else -1
        """Held by who ends us by letting go."""
        self.folder: str = told["folder"]
        self.idle_seconds: float = told["idle_seconds"]
        self.statements: list[tuple[str, list[str]]] = told["imports"]
        self.used = time.monotonic()
        self.forks: set[int] = set()
        self.open: dict[socket.socket, float] = {}
        self.imported: becoming.Imported
        self.stamps: dict[str, tuple[int, int] | None] = {}

    def prepare(self) -> str:
        """Import; returns why what came of it cannot be forked, empty where it can."""
        sys.path[0] = self.folder
        started_with, at_start = variables.at_start(), dict(os.environ)
        watched, unseeded = variables.Watched(), draws.Unseeded()
        printed = [
            os.open(os.path.join(self.folder, name), os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
            for name in ("out", "err")
        ]
        for number, file in enumerate(printed, 1):
            os.dup2(file, number)
        for name, attributes in self.statements:
            if not _import(name, attributes):
                break
        watched.stop()
        unseeded.stop()
        sys.stdout.flush()
        sys.stderr.flush()
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(nothing, number)
        os.close(nothing)
        self.imported = becoming.Imported(
            started_with,
            variables.changed(started_with, at_start),
            variables.changed(at_start, dict(os.environ)),
            watched.asked,
            (_content(printed[0]), _content(printed[1])),
            _journal(),
            unseeded,
        )
        self.stamps = files.stamps()
        gc.collect()
        gc.freeze()
        return self._unfit()

    def _unfit(self) -> str:
        """Why this process cannot be forked; empty: it can."""
        torch: Any = sys.modules.get("torch")
        if torch is None or torch.cuda.is_initialized():
            return "torch"
        project = files.of_a_project()
        if project is not None:
            return project
        for name in os.listdir("/proc/self/fd"):
            if int(name) not in (0, 1, 2, self.lock, self.lease) and not files.can_be_handed_on(
                int(name)
            ):
                return "file " + os.readlink("/proc/self/fd/" + name)
        state.devices().is_template = True
        # Some libraries (OpenBLAS) end their threads before a fork and start them again when they are needed.
        process = _fork()
        if process == 0:
            os._exit(0)
        os.waitpid(process, 0)
        threads = [name for name in _other_threads() if name not in _FORK_SAFE_THREADS]
        return "threads " + " ".join(threads) if threads else ""

    def serve(self) -> None:
        """Answer until it is time to end. Raises Become in a fork."""
        listener = _listen(self.folder)
        watched: list[Any] = [listener] + ([self.lease] if self.lease >= 0 else [])
        while self._is_wanted():
            readable, _, _ = select.select([*watched, *self.open], [], [], _LOOK_SECONDS)
            self._reap()
            if self.lease in readable:
                return
            for each in readable:
                if each is listener:
                    connection, _ = listener.accept()
                    if messages.is_own(connection):
                        self.open[connection] = time.monotonic()
                    else:
                        connection.close()
                elif not self._answer(each, listener):
                    return

    def _answer(self, connection: socket.socket, listener: socket.socket) -> bool:
        """Whether to go on."""
        del self.open[connection]
        numbers: list[int] = []
        try:
            asked = messages.receive(connection)
            if asked is None:
                return True
            request, numbers = asked
            if request["ask"] == "end":
                return False
            if request["ask"] == "status":
                messages.send(connection, self._status())
            elif files.have_changed(self.stamps):
                messages.send(connection, {"no": "changed"})
                return False
            elif request["ask"] == "start":
                self._start(connection, listener, request, numbers)
        except (OSError, ValueError, KeyError, TypeError):
            return True
        finally:
            for number in numbers:
                with contextlib.suppress(OSError):
                    os.close(number)
            connection.close()
        return True

    def _start(
        self,
        connection: socket.socket,
        listener: socket.socket,
        request: dict[str, Any],
        numbers: list[int],
    ) -> None:
        program = becoming.understood(request["command"])
        if program is None:
            messages.send(connection, {"no": "command"})
            return
        self.used = time.monotonic()
        process = _fork()
        if process:
            self.forks.add(process)
            return
        try:
            listener.close()
            os.close(self.lock)
            if self.lease >= 0:
                os.close(self.lease)
            for each in self.open:
                each.close()
            joining.enter(connection, request, numbers)
            numbers.clear()
            connection.close()
        except OSError as error:
            messages.send(connection, {"no": str(error)})
            os._exit(1)
        self._become(program, request)

    def _become(self, program: becoming.Program, request: dict[str, Any]) -> None:
        way = None
        environment = request["environment"]
        if program.module in _LAUNCHERS and request["ranks"] and children.is_possible():
            kept = children.keep_one()
            if isinstance(kept, dict):
                environment = kept["environment"]
                found = becoming.understood(kept["command"])
                if found is None:
                    becoming.cold(kept["command"], environment)
                program = found
            else:
                way = kept
        if program.script is not None and not request["ranks"]:
            becoming.cold(program.command, environment)
        becoming.become(program, environment, self.imported)
        raise Become(program, way)

    def _status(self) -> dict[str, Any]:
        return {
            "process": os.getpid(),
            "imports": [name for name, _ in self.statements],
            "memory_bytes": _memory_held(),
            "idle_seconds": time.monotonic() - self.used,
        }

    def _is_wanted(self) -> bool:
        now = time.monotonic()
        for connection, since in list(self.open.items()):
            if now - since > 60:  # who came and never asked
                del self.open[connection]
                connection.close()
        there = os.path.exists(os.path.join(self.folder, "socket"))
        return there and now - self.used < self.idle_seconds and not _memory_is_short()

    def _reap(self) -> None:
        for process in list(self.forks):
            if os.waitpid(process, os.WNOHANG)[0]:
                self.forks.discard(process)


def _import(name: str, attributes: list[str]) -> bool:
    """As the statement would; whether it worked, and is no code of a project."""
    top = name.partition(".")[0]
    try:
        if top not in sys.builtin_module_names and top not in sys.modules:
            spec = importlib.util.find_spec(top)
            if spec is None or spec.origin is None or spec.origin == "frozen":
                return spec is not None and spec.origin == "frozen"
            if not files.is_installed(spec.origin):
                return False
        module = importlib.import_module(name)
        for attribute in attributes:
            if attribute != "*" and not hasattr(module, attribute):
                importlib.import_module(f"{name}.{attribute}")
    except Exception:  # the script itself is to meet it
        return False
    return True


def _fork() -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # CPython 3.12 warns of threads, which are looked at here
        return os.fork()


def _other_threads() -> list[str]:
    names = []
    for task in os.listdir("/proc/self/task"):
        if int(task) != os.getpid():
            with open(f"/proc/self/task/{task}/comm", encoding="utf-8") as file:
                names.append(file.read().strip())
    return names


def _journal() -> tuple[bytes, ...]:
    chosen = settings.current()
    if chosen is None:
        return ()
    path = os.path.join(chosen.run_directory, "rehearsal-%d.jsonl" % os.getpid())
    try:
        with open(path, "rb") as file:
            return tuple(file.read().splitlines())
    except OSError:
        return ()


def _content(descriptor: int) -> bytes:
    with open(descriptor, "rb") as file:
        file.seek(0)
        return file.read()


def _memory_is_short() -> bool:
    with open("/proc/meminfo", encoding="ascii") as file:
        sizes = {
            name: int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in file)
        }
    return sizes.get("MemAvailable", 1) < _LEAST_FREE * sizes.get("MemTotal", 1)


def _memory_held() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def _listen(folder: str) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # A socket's path may have 107 bytes; a folder that is open has a short one.
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        place = f"/proc/self/fd/{descriptor}/socket"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(place)
        listener.bind(place)
    finally:
        os.close(descriptor)
    listener.listen(16)
    return listener


def main() -> Become | None:
    """Returns in a fork that has become a process of a rehearsal; the template itself ends."""
    line = b""
    while not line.endswith(b"\n"):
        line += os.read(0, 1 << 16) or b"\n"
    told = json.loads(line)
    lock = os.open(os.path.join(told["folder"], "lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return None
    with (
        contextlib.suppress(OSError),
        open("/proc/self/oom_score_adj", "w", encoding="ascii") as file,
    ):
        file.write("900")
    template = Template(told, lock)
    try:
        unfit = template.prepare()
        if unfit:
            with open(os.path.join(told["folder"], "refused"), "w", encoding="utf-8") as file:
                file.write(unfit)
        else:
            template.serve()
    except Become as become:
        return become
    with contextlib.suppress(OSError):
        os.unlink(os.path.join(told["folder"], "socket"))
    os._exit(0)
