"""Reads what the ranks and their launcher print as fast as they print it, so that nothing of ours holds them up.

Part of the supervisor: standard library only, CPython 3.8+. Each stream is a pipe. The launcher is started with its
two; a rank brings its own through the socket `SOCKET` in the run's folder (`ranksafe_agent.process`), and prints into
the launcher's where that fails. What comes is kept in files, within bounds, and passed on through the channel, where
somebody looks: ``output NAME SIZE`` and as many bytes; ``left-out NAME SIZE`` for what its reader did not take in time,
of which only the end follows; ``trouble TEXT`` when the files cannot be written; last ``report JSON``, the supervisor's
last word.
"""

# ruff: noqa: PTH108, PTH118

from __future__ import annotations

import array
import contextlib
import os
import re
import select
import socket
import sys
import threading
import time
from collections import deque

from ranksafe.runs.kept_output import KeptOutput

SOCKET = "output.sock"
_NAME = re.compile(rb"rank\d{1,6}\Z")
_STREAMS = ("stdout", "stderr")
_CHUNK = 1 << 16
_MOST_WAITING = 1 << 23
"""Bytes that wait for the channel's reader."""
_PATIENCE_SECONDS = 5.0
"""A reader that takes nothing for so long is not waited for: as long as it takes some, the ranks wait for it, as they
would for a terminal."""
_LOOK_SECONDS = 0.05
_LAST_READS = 16
"""Of a stream, once the run is over: what is in the pipe, and not all that a process which stays behind writes."""
_LISTEN = 1024


class Drain:
    """Of one run. All but `start` and `finish` happens on a thread of its own."""

    VARIABLE = "RANKSAFE_RUN_OUTPUT"
    """Environment variable of the run: where the ranks bring their pipes."""

    def __init__(self, directory: str, channel: int | None) -> None:
        """``channel``: a descriptor that is read by whoever shows the run; None: nobody."""
        self._directory = directory
        self._channel = channel
        self._kept: dict[str, KeptOutput] = {}
        self._sources: dict[int, str] = {}
        """Names of streams by descriptor."""
        self._waiting: deque[memoryview] = deque()
        self._waiting_bytes = 0
        self._left_out: dict[str, tuple[int, bytes]] = {}
        """How much of a stream was not passed on, and the end of it."""
        self._is_left_out = False
        self._taken_at = time.monotonic()
        self._told_trouble = False
        self._last_reads: dict[int, int] = {}
        self._ending = threading.Event()
        self._last_word = ""
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._socket = _listener(directory)
        if channel is not None:
            os.set_blocking(channel, False)

    @property
    def address(self) -> str | None:
        """Where ranks bring their pipes; None where there can be no such place."""
        return None if self._socket is None else os.path.join(self._directory, SOCKET)

    def pipes(self) -> list[int]:
        """The launcher's standard output and error, to be closed here once it is started."""
        ends = [os.pipe() for _ in _STREAMS]
        for (reading, _), stream in zip(ends, _STREAMS):  # noqa: B905 (3.10)
            self._add(reading, "launcher." + stream)
        return [writing for _, writing in ends]

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def finish(self, last_word: str) -> list[int]:
        """Read and pass on what is there still, then the last word.

        Returns the descriptors of streams that somebody may still write to.
        """
        self._last_word = last_word
        self._ending.set()
        self._thread.join()
        return list(self._sources)

    def _work(self) -> None:
        try:
            self._serve()
        except BaseException:
            # Whatever is wrong with us, the ranks go on.
            sys.excepthook(*sys.exc_info())
            self._channel = None
            swallow(list(self._sources))

    def _serve(self) -> None:
        while not self._ending.is_set() or self._turn(0.0):
            self._turn(_LOOK_SECONDS)
        self._close_socket()
        self._tell_of_left_out()
        self._put(f"report {self._last_word}\n".encode())
        # The ranks are gone, so nobody is held up: whoever shows the run takes it, or goes away.
        while self._waiting and self._channel is not None:
            select.select([], [self._channel], [])
            self._pass_on()
        for kept in self._kept.values():
            kept.close()

    def _close_socket(self) -> None:
        """No rank comes any more, and who copies or packs the folder wants files."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(self._directory, SOCKET))

    def _turn(self, seconds: float) -> bool:
        """Listen for so long; whether a rank or the launcher had something to say."""
        waits = self._reader_is_waited_for()
        reading = (
            [] if waits else [each for each in self._sources if self._last_reads.get(each) != 0]
        )
        if self._socket is not None:
            reading.append(self._socket.fileno())
        writing = [self._channel] if self._waiting and self._channel is not None else []
        readable, writable, _ = select.select(reading, writing, [], seconds)
        for descriptor in readable:
            if descriptor in self._sources:
                self._read(descriptor)
            else:
                self._receive()
        if writable:
            self._pass_on()
        return bool(readable) or waits

    def _reader_is_waited_for(self) -> bool:
        if self._waiting_bytes < _MOST_WAITING or self._is_left_out:
            return False
        self._is_left_out = time.monotonic() - self._taken_at > _PATIENCE_SECONDS
        return not self._is_left_out

    def _add(self, descriptor: int, name: str) -> None:
        self._sources[descriptor] = name
        if name not in self._kept:
            self._kept[name] = KeptOutput(os.path.join(self._directory, name))

    def _receive(self) -> None:
        """A rank brings its pipes: its name and two descriptors; it waits for a byte."""
        assert self._socket is not None
        with contextlib.suppress(OSError):
            rank, _ = self._socket.accept()
            with rank:
                rank.settimeout(1.0)
                found = array.array("i")
                size = socket.CMSG_SPACE(len(_STREAMS) * found.itemsize)
                name, ancillary, _, _ = rank.recvmsg(64, size)
                for _, _, data in ancillary:
                    found.frombytes(data[: len(data) - len(data) % found.itemsize])
                if not _NAME.match(name) or len(found) != len(_STREAMS):
                    for descriptor in found:
                        os.close(descriptor)
                    return
                for descriptor, stream in zip(found, _STREAMS):  # noqa: B905 (3.10)
                    self._add(descriptor, f"{name.decode()}.{stream}")
                rank.sendall(b"+")

    def _read(self, descriptor: int) -> None:
        name = self._sources[descriptor]
        data = os.read(descriptor, _CHUNK)
        if self._ending.is_set():
            self._last_reads[descriptor] = self._last_reads.get(descriptor, _LAST_READS) - 1
        if not data:
            del self._sources[descriptor]
            os.close(descriptor)
            return
        kept = self._kept[name]
        kept.write(data)
        if kept.trouble is not None and not self._told_trouble:
            self._told_trouble = True
            self._put(f"trouble {kept.trouble.strerror}\n".encode())
        if self._channel is None:
            return
        if self._is_left_out:
            size, end = self._left_out.get(name, (0, b""))
            self._left_out[name] = size + len(data), (end + data)[-_CHUNK:]
        else:
            self._put(f"output {name} {len(data)}\n".encode() + data)

    def _put(self, message: bytes) -> None:
        if self._channel is None:
            return
        if not self._waiting:
            self._taken_at = time.monotonic()
        self._waiting.append(memoryview(message))
        self._waiting_bytes += len(message)
        self._pass_on()

    def _pass_on(self) -> None:
        """As much as the reader takes now."""
        while self._waiting and self._channel is not None:
            try:
                taken = os.write(self._channel, self._waiting[0])
            except BlockingIOError:
                return
            except OSError:  # nobody looks any more
                self._channel = None
                self._waiting.clear()
                return
            self._taken_at = time.monotonic()
            self._waiting_bytes -= taken
            rest = self._waiting.popleft()[taken:]
            if rest:
                self._waiting.appendleft(rest)
        if self._is_left_out:
            self._is_left_out = False
            self._tell_of_left_out()

    def _tell_of_left_out(self) -> None:
        left_out, self._left_out = self._left_out, {}
        for name, (size, end) in left_out.items():
            # From the beginning of a line on, where there is one.
            end = end[end.find(b"\n") + 1 :]
            self._put(f"left-out {name} {size - len(end)}\n".encode())
            self._put(f"output {name} {len(end)}\n".encode() + end)


def _listener(directory: str) -> socket.socket | None:
    """None where there can be none (a full disk): the ranks then print into the launcher's streams."""
    listener = socket.socket(socket.AF_UNIX)
    try:
        # The name of a socket must be short, that of a folder need not be.
        before = os.open(".", os.O_RDONLY)
        try:
            os.chdir(directory)
            listener.bind(SOCKET)
        finally:
            os.fchdir(before)
            os.close(before)
        listener.listen(_LISTEN)
        listener.setblocking(False)
    except OSError:
        listener.close()
        return None
    return listener


def swallow(descriptors: list[int]) -> None:
    """Stay behind, as a process of its own, for those who go on writing after the run: they would wait, or be ended."""
    while descriptors:
        readable, _, _ = select.select(descriptors, [], [])
        for descriptor in readable:
            if not os.read(descriptor, _CHUNK):
                os.close(descriptor)
                descriptors.remove(descriptor)
