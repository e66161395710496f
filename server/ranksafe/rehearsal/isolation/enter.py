"""Starts a command in namespaces of its own: ``python -I enter.py SPECIFICATION -- COMMAND…``. Linux only.

Two processes stand between who starts us and the command. This one stays outside: it gives the users of the namespace
their numbers, passes signals on, ends as the command ended (same status, same signal) and clears the scratch folder.
The other is the namespace's first process (`first_process`). The loss of either ends the command and all it started.

Exit status `NOT_ENTERED` with one JSON line on stderr (``step``, ``errno``, ``text``): the command was not started.
"""

# Files as the kernel sees them, call by call: pathlib would only hide which calls are made.
# ruff: noqa: PTH118

from __future__ import annotations

import contextlib
import functools
import json
import os
import resource
import signal
import struct
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

if __name__ == "__main__":
    # Started by its path and isolated from the environment: our own package has to be found first.
    sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from ranksafe.localization import Translated
from ranksafe.rehearsal.isolation import kernel, scratch, warm
from ranksafe.rehearsal.isolation.bounds import Bounds, be_ended_first
from ranksafe.rehearsal.isolation.events import EventBook
from ranksafe.rehearsal.isolation.file_tree import FileTree
from ranksafe.rehearsal.isolation.first_process import PASSED_ON, FirstProcess, start_command
from ranksafe.rehearsal.isolation.specification import (
    NOT_ENTERED,
    ROOT_FOLDER,
    Specification,
    read_specification,
)

if TYPE_CHECKING:
    from ranksafe.rehearsal.isolation.reader import Reader

_GRACE_SECONDS = 5.0
"""Between SIGTERM and SIGKILL when who started us is gone."""


def main(arguments: Sequence[str]) -> int:
    """Run the command; returns its exit status, or ends by its signal."""
    if len(arguments) < 3 or arguments[1] != "--":
        print("usage: enter.py SPECIFICATION -- COMMAND...", file=sys.stderr)
        return 2
    specification = read_specification(Path(arguments[0]))
    book = EventBook(specification.run_directory)
    be_ended_first()
    parent = os.getppid()
    template = warm.reach(specification.run_directory) if specification.namespaces else None
    reader = None
    try:
        if specification.reads_network:
            # HTTP takes a quarter of all that is imported here, and few rehearsals read.
            from ranksafe.rehearsal.isolation.reader import Reader

            reader = Reader(specification.run_directory, book)
        if specification.namespaces:
            _prepare_folders(specification)
            _enter_users_and_processes()
        # A new user namespace may clear what was asked for before.
        kernel.die_with_parent(signal.SIGTERM)
    except OSError as error:
        return _not_entered(book, error)
    outside = _Outside(parent)
    status_pipe, lease_pipe = os.pipe(), os.pipe()
    first = os.fork()
    if first == 0:
        os.close(status_pipe[0])
        os.close(lease_pipe[1])
        start = functools.partial(start_command, arguments[2:], template)
        _be_first(specification, book, start, reader, status_pipe[1], lease_pipe[0])
    if template is not None:
        template.close()
    os.close(status_pipe[1])
    os.close(lease_pipe[0])
    status = outside.wait(first, status_pipe[0])
    scratch.clear(specification.run_directory)
    return _end_like(status)


def _prepare_folders(specification: Specification) -> None:
    scratch.clear(specification.run_directory)
    Path(specification.run_directory, ROOT_FOLDER).mkdir(mode=0o700)


def _enter_users_and_processes() -> None:
    """The numbers of users can only be given from outside, so a helper that stays there writes them."""
    ready, done = os.pipe(), os.pipe()
    us = os.getpid()
    helper = os.fork()
    if helper == 0:
        number = 0
        try:
            os.close(ready[1])
            if os.read(ready[0], 1):
                kernel.map_users(us)
        except OSError as error:
            number = error.errno or 1
        finally:
            os.write(done[1], bytes([number % 256]))
            os._exit(0)
    try:
        kernel.unshare(kernel.NEW_USERS | kernel.NEW_PROCESSES)
        os.write(ready[1], b"y")
        number = os.read(done[0], 1)[0]
    finally:
        for descriptor in (*ready, *done):
            os.close(descriptor)
        os.waitpid(helper, 0)
    if number:
        raise OSError(number, os.strerror(number), "uid_map")


def _be_first(
    specification: Specification,
    book: EventBook,
    start: Callable[[], int],
    reader: Reader | None,
    status: int,
    lease: int,
) -> NoReturn:
    """The first process of the namespace; never returns."""
    try:
        tree = _enter_the_rest(specification, book) if specification.namespaces else None
        if not specification.namespaces:
            kernel.adopt_orphans()
            os.chdir(specification.working_directory)
        if reader is not None:
            reader.listen()
        bounds = Bounds(specification, book, tree)
        if specification.namespaces:
            _leave_old_root(specification)
            _write_texts(specification)
            kernel.give_up_power()
    except OSError as error:
        os.write(status, struct.pack("i", NOT_ENTERED << 8))
        os._exit(_not_entered(book, error))
    try:
        first = FirstProcess(bounds, book, lease, alone=specification.namespaces)
        os.write(status, struct.pack("i", first.run(start)))
    except Exception:
        traceback.print_exc()
    finally:
        os._exit(0)


_CANNOT_BE_WRITTEN = Translated(
    en="the file system of {folder} can carry no overlay: in this rehearsal it can be read, not written",
    zh_cn="{folder} 所在的文件系统不支持叠加（overlay）：在本次预演中只能读取，不能写入",
)


def _enter_the_rest(specification: Specification, book: EventBook) -> FileTree:
    """Files, network, host name."""
    kernel.die_with_parent(signal.SIGKILL)
    kernel.unshare(kernel.NEW_MOUNTS | kernel.NEW_NETWORK | kernel.NEW_HOST_NAME | kernel.NEW_IPC)
    kernel.mount("none", "/", None, kernel.RECURSIVE | kernel.PRIVATE)
    kernel.bring_up_loopback()
    tree = FileTree(specification)
    tree.build()
    for folder in specification.writable_folders:
        if any(folder == each or folder.startswith(each + "/") for each in tree.read_only):
            book.limit("file-system", folder, _CANNOT_BE_WRITTEN.filled(folder=folder))
    return tree


def _leave_old_root(specification: Specification) -> None:
    kernel.pivot_root(os.path.join(specification.run_directory, ROOT_FOLDER, "root"))
    os.chdir(specification.working_directory)


def _write_texts(specification: Specification) -> None:
    """Over the overlay's files: what lies below is not touched."""
    for path, text in specification.texts:
        # One that may not be written is replaced.
        Path(path).unlink()
        Path(path).write_bytes(text.encode())


class _Outside:
    """Waits for the first process; ends it by force only when who started us is gone."""

    def __init__(self, parent: int) -> None:
        self._parent = parent
        self._first = 0
        self._told: float | None = None
        for number in PASSED_ON:
            signal.signal(number, self._pass_on)

    def wait(self, first: int, status_pipe: int) -> int:
        """The command's wait status; SIGKILL's where the first process was killed."""
        self._first = first
        while os.waitpid(first, os.WNOHANG)[0] == 0:
            if self._told is None and os.getppid() != self._parent:
                self._pass_on(signal.SIGTERM, None)
            if self._told is not None and time.monotonic() - self._told > _GRACE_SECONDS:
                if os.getppid() != self._parent:
                    os.kill(first, signal.SIGKILL)
            time.sleep(0.02)
        answer = os.read(status_pipe, 4)
        return struct.unpack("i", answer)[0] if len(answer) == 4 else int(signal.SIGKILL)

    def _pass_on(self, number: int, _frame: object) -> None:
        if number == signal.SIGTERM and self._told is None:
            self._told = time.monotonic()
        if self._first:
            with contextlib.suppress(OSError):
                os.kill(self._first, number)


_SET_UP_FAILED = Translated(
    en="the isolation of the rehearsal could not be set up: {reason}",
    zh_cn="无法建立预演的隔离环境：{reason}",
)


def _not_entered(book: EventBook, error: OSError) -> int:
    step = getattr(error, "call", "") or str(error.filename or "set-up")
    text = f"{step}: {error.strerror}"
    book.limit("isolation", step, _SET_UP_FAILED.filled(reason=text))
    line = json.dumps({"step": step, "errno": error.errno, "text": text})
    os.write(2, line.encode() + b"\n")
    return NOT_ENTERED


def _end_like(status: int) -> int:
    """Exit as the command did: with its status, or by its signal."""
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return code
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if -code not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
    return 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
