"""A conversation with a program through the pipes of a process of ours: the program itself, or ssh."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any, Final

from ranksafe.localization import Translated
from ranksafe.runs.errors import RunCancelled
from ranksafe.runs.hosts.boot import GREETING
from ranksafe.runs.hosts.errors import HostLost, ProgramFailed
from ranksafe.runs.hosts.protocol import Host

CONNECTION_LOST: Final = 255
"""OpenSSH's exit status for a connection that broke or was never made (ssh(1), EXIT STATUS)."""
_COMPLAINTS_LIMIT = 16 * 1024
_CHUNK = 1024 * 1024
_MOST_BEFORE_GREETING = 4 * 1024 * 1024
_MOST_UNREAD = 16 * 1024 * 1024
_LONGEST_ANSWER = 256 * 1024 * 1024
_POLL_SECONDS = 0.02
_GREETING_POLL_SECONDS = 0.01
_LEAVING_SECONDS = 5.0
_END_OF_OUTPUT_SECONDS = 2.0


class Babble(Exception):
    """More came before the program's own words than login scripts print."""


class PipedConversation:
    """Reads both output streams on threads of its own, so that neither side ever waits for the other to be read.

    ``command`` gets a session of its own: Ctrl+C in a terminal is for ranksafe, which then ends runs in order. Raises
    OSError when the program cannot be started.
    """

    def __init__(self, command: Sequence[str], opening: bytes) -> None:
        self._process = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._input: IO[bytes] = self._process.stdin
        self._lock = threading.Condition()
        self._output = bytearray()
        self._errors = bytearray()
        self._greeted = False
        self._before_greeting = 0
        self._readers = [
            self._reader(self._process.stdout, self._heard),
            self._reader(self._process.stderr, self._complained),
        ]
        # ssh reads nothing before it is connected, and then a long program fills the pipe.
        self._opener = threading.Thread(target=self._open, args=(opening,), daemon=True)
        self._opener.start()

    def wait_for_greeting(self, seconds: float, should_stop: Callable[[], bool]) -> int | None:
        """Until the program has begun: None; or until it has ended without: its status.

        Raises TimeoutError, Babble where something else speaks without an end, and, when ``should_stop`` says so,
        RunCancelled; the process is then killed.
        """
        end = time.monotonic() + seconds
        while not self.greeted:
            status = self.returncode
            if status is not None and not self.greeted:
                self.close()
                return status
            if self._before_greeting > _MOST_BEFORE_GREETING and not self.greeted:
                self.kill()
                raise Babble
            stopped = should_stop()
            if stopped or time.monotonic() > end:
                self.kill()
                raise RunCancelled if stopped else TimeoutError
            time.sleep(_GREETING_POLL_SECONDS)
        return None

    def send(self, data: bytes) -> None:
        """Write to the program's standard input. Raises HostLost when nobody reads it any more."""
        self._opener.join()
        try:
            self._input.write(data)
            self._input.flush()
        except (OSError, ValueError) as error:
            raise HostLost(_NOBODY_READS.filled(reason=self.last_words or error)) from error

    def receive(self) -> bytes:
        """What the program has written since the last call."""
        with self._lock:
            if not self._greeted:
                return b""
            data = bytes(self._output)
            self._output.clear()
            self._lock.notify_all()
            return data

    @property
    def greeted(self) -> bool:
        """Whether the program has begun."""
        with self._lock:
            return self._greeted

    @property
    def returncode(self) -> int | None:
        """None while it runs, or while there is still something to read."""
        code = self._process.poll()
        if code is None:
            return None
        # A master connection that stays behind may hold standard error open, so only the output is waited for.
        self._readers[0].join(_END_OF_OUTPUT_SECONDS)
        with self._lock:
            return None if len(self._output) >= _MOST_UNREAD else code

    @property
    def complaints(self) -> str:
        """The end of standard error."""
        if self._process.poll() is not None:
            self._readers[1].join(0.1)
        with self._lock:
            return self._errors.decode("utf-8", "replace")

    @property
    def last_words(self) -> str:
        """The last line of the complaints."""
        return next(reversed([line for line in self.complaints.splitlines() if line.strip()]), "")

    def close(self) -> None:
        """End standard input, then the process if it does not leave by itself."""
        self._opener.join(_LEAVING_SECONDS)
        with contextlib.suppress(OSError, ValueError):
            self._input.close()
        try:
            self._process.wait(_LEAVING_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """End the process now, with what it connects through (a ProxyCommand), which is in its group."""
        if hasattr(os, "killpg") and self._process.poll() is None:
            with contextlib.suppress(OSError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()
        self._process.wait()

    def _open(self, opening: bytes) -> None:
        with contextlib.suppress(
            OSError, ValueError
        ):  # the end of the process tells more than the broken pipe
            self._input.write(opening)
            self._input.flush()

    def _reader(self, stream: IO[bytes], take: Callable[[bytes], None]) -> threading.Thread:
        def read() -> None:
            with contextlib.suppress(OSError, ValueError):
                while data := stream.raw.read(_CHUNK):  # type: ignore[attr-defined]
                    take(data)

        thread = threading.Thread(target=read, name="host conversation", daemon=True)
        thread.start()
        return thread

    def _heard(self, data: bytes) -> None:
        with self._lock:
            # The other side waits then: what is said there is only a view of what goes on.
            self._lock.wait_for(lambda: len(self._output) < _MOST_UNREAD)
            self._output += data
            if not self._greeted:
                self._before_greeting += len(data)
                before, found, after = self._output.partition(GREETING)
                if found:
                    self._greeted = True
                    self._output = after
                else:
                    self._output = before[-_COMPLAINTS_LIMIT:]

    def _complained(self, data: bytes) -> None:
        with self._lock:
            self._errors += data
            del self._errors[:-_COMPLAINTS_LIMIT]


class AskedHost(Host):
    """`Host.ask` in terms of `Host.start`."""

    def ask(
        self,
        program: str,
        request: Mapping[str, Any],
        *,
        interpreter: str = "python3",
        timeout_seconds: float = 60.0,
    ) -> Any:
        """Run ``program`` there to its end and return the JSON it answers."""
        end = time.monotonic() + timeout_seconds
        conversation = self.start(program, request, interpreter=interpreter)
        answer = bytearray()
        try:
            while conversation.returncode is None:
                answer += conversation.receive()
                if len(answer) > _LONGEST_ANSWER:
                    raise ProgramFailed(_ENDLESS.filled(host=self.name))
                if time.monotonic() > end:
                    seconds = f"{timeout_seconds:g}"
                    raise HostLost(_NO_ANSWER.filled(host=self.name, seconds=seconds))
                time.sleep(_POLL_SECONDS)
            answer += conversation.receive()
            status, complaints = conversation.returncode, conversation.complaints.strip()
        finally:
            conversation.close()
        if status == CONNECTION_LOST:
            raise HostLost(_BROKE_OFF.filled(host=self.name, reason=complaints or "?"))
        try:
            if status != 0:
                raise ValueError(status)
            return json.loads(bytes(answer))
        except ValueError as error:
            reason = complaints[-2000:] or f"exit status {status}"
            raise ProgramFailed(_FAILED.filled(host=self.name, reason=reason)) from error


_NOBODY_READS = Translated(
    en="The program on the host has ended: {reason}", zh_cn="主机上的程序已结束：{reason}"
)
_NO_ANSWER = Translated(
    en="{host} did not answer within {seconds} s.", zh_cn="{host} 在 {seconds} 秒内没有应答。"
)
_ENDLESS = Translated(
    en="The answer of {host} has no end, so it is not read.",
    zh_cn="{host} 的应答没有尽头，已放弃读取。",
)
_BROKE_OFF = Translated(
    en="The connection to {host} was lost: {reason}", zh_cn="与 {host} 的连接已断开：{reason}"
)
_FAILED = Translated(
    en="A program of ranksafe failed on {host}: {reason}",
    zh_cn="ranksafe 的程序在 {host} 上失败：{reason}",
)
