"""The first process of the namespace: starts the command, collects orphans, passes signals on, watches the bounds.

When it ends, the kernel ends every process of the namespace and its mounts go with them.
"""

# Files as the kernel sees them, call by call: pathlib would only hide which calls are made.
# ruff: noqa: PTH123, PTH208

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import time
from collections.abc import Callable, Sequence

from ranksafe.rehearsal.isolation.bounds import PERIOD_SECONDS, Bounds
from ranksafe.rehearsal.isolation.events import EventBook
from ranksafe.rehearsal.isolation.warm import Template

_FAREWELL_SECONDS = 2.0
"""What helpers of a finished command (loggers, uploaders) get before they are ended."""
_SAME_SIGNAL_SECONDS = 0.5
"""A supervisor that signals every process reaches us twice: directly, and through the process outside."""
PASSED_ON = (
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)


class FirstProcess:
    """Lives as long as the command, the lease, and the bounds allow.

    ``lease`` is the reading end of a pipe that the process outside holds open: its end is our end, however that one
    died. ``alone``: whether every process that can be seen is ours (a namespace), or only our descendants are.
    """

    def __init__(self, bounds: Bounds, book: EventBook, lease: int, alone: bool) -> None:
        self._bounds = bounds
        self._book = book
        self._lease = lease
        self._alone = alone
        self._command = 0
        self._status: int | None = None
        self._passed_on: dict[int, float] = {}

    def run(self, start: Callable[[], int]) -> int:
        """Start a command and return its wait status (`os.waitstatus_to_exitcode`) when all has ended."""
        for number in PASSED_ON:
            signal.signal(number, self._pass_on)
        self._command = start()
        while self._status is None:
            if self._lease_is_over() or self._bounds.must_end(self._processes()):
                self._end_all()
                break
            self._collect()
        self._say_farewell()
        self._bounds.at_end()
        return signal.SIGKILL if self._status is None else self._status

    def _pass_on(self, number: int, _frame: object) -> None:
        now = time.monotonic()
        if now - self._passed_on.get(number, -1e9) < _SAME_SIGNAL_SECONDS:
            return
        self._passed_on[number] = now
        if self._status is None and self._command:
            with contextlib.suppress(OSError):
                os.kill(self._command, number)

    def _lease_is_over(self) -> bool:
        return bool(select.select([self._lease], [], [], 0)[0])

    def _collect(self) -> None:
        """Reap until the next look at the bounds is due."""
        until = time.monotonic() + PERIOD_SECONDS
        pause = 0.002
        while self._status is None and time.monotonic() < until:
            self._reap()
            time.sleep(pause)
            pause = min(pause * 2, 0.03)

    def _reap(self) -> bool:
        """Collect every child that has ended; whether one is left."""
        try:
            while True:
                process, status = os.waitpid(-1, os.WNOHANG)
                if process == 0:
                    return True
                if process == self._command:
                    self._status = status
        except ChildProcessError:
            return False

    def _say_farewell(self) -> None:
        """Processes that outlive the command get a moment, then they are ended."""
        until = time.monotonic() + _FAREWELL_SECONDS
        while self._reap() and time.monotonic() < until and not self._lease_is_over():
            time.sleep(0.02)
        left = len(self._processes())
        self._end_all()
        self._book.write("ended", leftovers=left)

    def _end_all(self) -> None:
        until = time.monotonic() + 10.0
        while time.monotonic() < until:
            for process in self._processes():
                with contextlib.suppress(OSError):
                    os.kill(process, signal.SIGKILL)
            if not self._reap():
                return
            time.sleep(0.01)

    def _processes(self) -> list[int]:
        """Every living process of the command."""
        own, parents = os.getpid(), _parents()
        if self._alone:
            return [each for each in parents if each != own]
        found: list[int] = []
        todo = [own]
        while todo:
            parent = todo.pop()
            below = [each for each, above in parents.items() if above == parent]
            found += below
            todo += below
        return found


def start_command(command: Sequence[str], template: Template | None) -> int:
    """The process that becomes ``command``: a fork of the template where there is one that can."""
    process = template.start(command) if template is not None else None
    if process is not None:
        return process
    process = os.fork()
    if process:
        return process
    try:
        for number in PASSED_ON:
            signal.signal(number, signal.SIG_DFL)
        # Python ignores them for itself, and ignored signals stay ignored in what is started.
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        # A dump would be handed to a program outside, or fill the scratch folder.
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        os.execvpe(command[0], list(command), os.environ)
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
    finally:
        os._exit(127)


def _parents() -> dict[int, int]:
    """Each process that is not a zombie, and its parent."""
    found: dict[int, int] = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", "rb") as file:
                fields = file.read().rsplit(b")", 1)[1].split()
        except (OSError, IndexError):
            continue
        if fields[0] != b"Z":
            found[int(entry)] = int(fields[1])
    return found
