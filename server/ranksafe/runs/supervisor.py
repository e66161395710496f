"""The process between the server and a run: owns every process of the run, and ends them all.

Started as ``python -I supervisor.py``, standard library only. The first line on stdin is the specification (JSON:
``command``, ``directory``, ``environment``, ``working_directory``, ``grace_seconds``, ``in_background``, ``terminal``,
``keep_detached``, ``is_shown``: whether standard output is read, see `runs.drain`); it travels there because command
lines can be read by every user of a machine. After it, stdin is a lease: ``cancel`` ends the run, and so does the end
of the file, which comes however the server dies. Launchers give their ranks sessions of their own, so a process group
is not enough: on Linux orphans are adopted (PR_SET_CHILD_SUBREAPER) and descendants found in /proc; elsewhere through
``ps``.

On another host `on_host.supervise` starts it, detached from the connection; there the lease is a file (``lease_file``:
JSON, ``renewed``: anything that changes, and ``seconds``) that is renewed as long as somebody looks, and
``cancel_file`` ends the run by being there.

Writes ``<directory>/supervisor.json``: {"status": "running"|"exited"|"cancelled"|"failed-to-start", "returncode",
"pid", "leftovers", "error", "lease_over"}; and, while the command goes on, a line in ``<directory>/launcher.jsonl`` for
every rank whose end would be seen at once, and another at its end: {"event": "rank-watched"|"rank-ended", "pid",
"status", "time"}.
"""

# Started once per run: pathlib would only make it slower.
# ruff: noqa: PTH100, PTH105, PTH110, PTH112, PTH118, PTH123, PTH208

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
from typing import Any

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_POLL_SECONDS = 0.1
_REPORT_SIZE = 512
_TERMINAL_SIZE = (24, 80)
_MOST_READS = 256
"""Control-D: each ends one attempt to read."""
_FAREWELL_SECONDS = 2.0
"""What helpers of a finished run (loggers, uploaders) get before they are ended."""
_LOWEST_PRIORITY = 19


def main() -> int:
    """Run until the command has ended and none of its processes is left."""
    lease = sys.stdin.buffer.raw if hasattr(sys.stdin.buffer, "raw") else sys.stdin.buffer
    line = b""
    while not line.endswith(b"\n"):
        part = lease.read(1)
        if not part:
            return 1
        line += part
    specification = json.loads(line)
    return Supervisor(specification, lease.fileno()).run()


class Supervisor:
    """One run; ``lease``: the descriptor of standard input, None where files are the lease."""

    def __init__(self, specification: dict[str, Any], lease: int | None) -> None:
        self.directory: str = specification["directory"]
        self.specification = specification
        self.lease = lease
        self.lease_over = False
        self.lease_looked_at = 0.0
        self.lease_seen: Any = None
        self.lease_until = 0.0
        self.cancelled_at: float | None = None
        self.seen: dict[int, str] = {}
        self.child: subprocess.Popen[bytes] | None = None
        self.ends = RankEnds(self.directory)
        self.hangup = signal.getsignal(signal.SIGHUP)
        self.drain: Any = None
        self.last_word: dict[str, Any] = {}

    def run(self) -> int:
        """Start the command and return when none of its processes is left; 0, or 1 where it did not start."""
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)
        return self._guarded() if sys.platform.startswith("linux") else self._run()

    def _guarded(self) -> int:
        """Supervise in a child process: should that be killed, its orphans come to this one, which ends them.

        Who guards is told nothing but signals; the death of the guard ends the run as a wish to cancel does.
        """
        guard = os.getpid()
        supervisor = os.fork()
        if supervisor == 0:
            os.setsid()
            _prctl(_PR_SET_CHILD_SUBREAPER, 1)
            _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
            status = 1
            try:
                if os.getppid() == guard:
                    status = self._run()
            except BaseException:
                sys.excepthook(*sys.exc_info())
            finally:
                sys.stderr.flush()
                os._exit(status)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: _send(supervisor, signal.SIGTERM))
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        # Stopped, it would not read what the ranks print, and they would stand still once a pipe is full.
        while os.WIFSTOPPED(status := os.waitpid(supervisor, os.WUNTRACED)[1]):
            _send(supervisor, signal.SIGCONT)
        if os.WIFSIGNALED(status) or not self.specification.get("keep_detached"):
            self._end_all(float(self.specification["grace_seconds"]))
        return os.WEXITSTATUS(status) if os.WIFEXITED(status) else 1

    def _run(self) -> int:
        if self.specification.get("in_background"):
            os.nice(_LOWEST_PRIORITY)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._cancel())
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        self.drain = _drain(self.directory, 1 if self.specification.get("is_shown") else None)
        problem = ""
        try:
            self.child = self._start()
        except OSError as error:
            problem = str(error)
        self.drain.start()  # not before: a process is best started while there is one thread
        child = self.child
        if child is None:
            self._report("failed-to-start", error=problem)
            self._finish()
            return 1
        self._report("running", pid=child.pid)
        while child.poll() is None and self.cancelled_at is None:
            self._wait()
        if self.cancelled_at is not None:
            self._end_all(float(self.specification["grace_seconds"]))
        leftovers = self._end_leftovers() if self.cancelled_at is None else 0
        child.poll()
        status = "exited" if self.cancelled_at is None else "cancelled"
        self._report(
            status, returncode=child.returncode, leftovers=leftovers, lease_over=self.lease_over
        )
        self._finish()
        return 0

    def _finish(self) -> None:
        """Nothing is left of the run but processes that are to be kept, which may go on writing."""
        descriptors = self.drain.finish(json.dumps(self.last_word))
        if descriptors and os.fork() == 0:
            _stay_behind(descriptors)
            os._exit(0)

    def _start(self) -> subprocess.Popen[bytes]:
        parent = os.getpid()

        def tie_to_parent() -> None:
            # As a shell would: a process group of its own, and the signals that we were started with.
            os.setpgid(0, 0)
            signal.signal(signal.SIGHUP, self.hangup)
            _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
            if os.getppid() != parent:
                os._exit(1)

        environment = dict(self.specification["environment"])
        if self.drain.address is not None:
            environment[self.drain.VARIABLE] = self.drain.address
        stdin = _terminal() if self.specification.get("terminal") else open(os.devnull, "rb")  # noqa: SIM115
        output, errors = self.drain.pipes()
        try:
            return subprocess.Popen(
                self.specification["command"],
                cwd=self.specification["working_directory"],
                env=environment,
                stdin=stdin,
                stdout=output,
                stderr=errors,
                preexec_fn=tie_to_parent,  # this process has one thread
            )
        finally:
            stdin.close()
            os.close(output)
            os.close(errors)

    def _wait(self) -> None:
        """One turn: listen on the lease, note ranks that ended, collect adopted processes that did."""
        self.ends.find()
        lease = [] if self.lease is None else [self.lease]
        readable, _, _ = select.select([*lease, *self.ends.watched], [], [], _POLL_SECONDS)
        # Before they are collected: after that nobody knows their status any more.
        self.ends.note(readable, self.child)
        self._reap()
        if self.lease is None:
            self._look_at_files()
        elif self.lease in readable:
            data = os.read(self.lease, 4096)
            if not data:
                self.lease = None
            if not data or b"cancel" in data:
                self._cancel()

    def _look_at_files(self) -> None:
        """A lease that cannot be read (a full disk) is not over. Counted by a clock that nobody sets: a host whose time
        is put right ends no run."""
        if os.path.exists(self.specification.get("cancel_file") or ""):
            self._cancel()
        path, now = self.specification.get("lease_file"), time.monotonic()
        if path is None or now - self.lease_looked_at < 1.0:
            return
        self.lease_looked_at = now
        with contextlib.suppress(OSError, ValueError, KeyError):
            with open(path, encoding="ascii") as file:
                lease = json.load(file)
            if lease != self.lease_seen:
                self.lease_until = now + float(lease["seconds"])
                self.lease_seen = lease
            self.lease_over = now > self.lease_until
            if self.lease_over:
                self._cancel()

    def _cancel(self) -> None:
        if self.cancelled_at is None:
            self.cancelled_at = time.monotonic()

    def _end_all(self, grace_seconds: float) -> None:
        """SIGTERM, time to leave, then SIGKILL until no descendant is left."""
        told: set[int] = set()
        end = time.monotonic() + grace_seconds
        while True:
            self._reap()
            alive = self._descendants()
            if not alive:
                return
            over = time.monotonic() > end
            for pid in alive:
                if over or pid not in told:
                    told.add(pid)
                    _send(pid, signal.SIGKILL if over else signal.SIGTERM)
            time.sleep(_POLL_SECONDS)

    def _end_leftovers(self) -> int:
        """After the command has ended by itself: processes it left behind. Returns how many had to be ended."""
        if self.specification.get("keep_detached"):
            return 0
        end = time.monotonic() + _FAREWELL_SECONDS
        while self._descendants():
            self._reap()
            if time.monotonic() > end:
                count = len(self._descendants())
                self._end_all(1.0)
                return count
            time.sleep(_POLL_SECONDS)
        return 0

    def _descendants(self) -> list[int]:
        """Living processes below this one, and, where orphans are not adopted, those seen below it earlier."""
        table = _processes()
        children: dict[int, list[int]] = {}
        for pid, (parent, _) in table.items():
            children.setdefault(parent, []).append(pid)
        found: list[int] = []
        todo = [os.getpid()]
        while todo:
            below = children.get(todo.pop(), [])
            found.extend(below)
            todo.extend(below)
        for pid, started in list(self.seen.items()):
            if pid not in found and pid in table and table[pid][1] == started:
                found.append(pid)
        self.seen = {pid: table[pid][1] for pid in found}
        return found

    def _reap(self) -> None:
        """Collect adopted processes that ended, leaving the command's status to its Popen object."""
        if not hasattr(os, "waitid"):
            return
        try:
            while True:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
                if ended is None:
                    return
                if self.child is not None and ended.si_pid == self.child.pid:
                    self.child.poll()
                else:
                    os.waitpid(ended.si_pid, 0)
        except ChildProcessError:
            pass

    def _report(self, status: str, **fields: Any) -> None:
        self.last_word = dict(fields, status=status)
        report(self.directory, status, **fields)


def _terminal() -> Any:
    """A terminal of the usual size where nobody types: whoever asks for its size is told, who reads is at the end.

    Its other side stays open as long as this process lives. Where the system has no terminals it is the null device.
    """
    try:
        import fcntl
        import pty
        import struct
        import termios

        typing, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", *_TERMINAL_SIZE, 0, 0))
        os.write(typing, b"\x04" * _MOST_READS)
        return os.fdopen(terminal, "rb", buffering=0)
    except (ImportError, AttributeError, OSError):
        return open(os.devnull, "rb")


class RankEnds:
    """Notes that a rank ended, and how, as it happens: a launcher ends the others before it says so.

    The agent's journals tell which processes are ranks. Linux tells of their ends through process descriptors (5.3,
    CPython 3.9), and of the status of a process that its parent has not collected yet in ``/proc/PID/stat``, field 52;
    launchers look ten times a second (torch 2.13.0, ``monitor_interval``). Elsewhere nothing is noted.
    """

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.watched: dict[int, int] = {}
        """Process ids by descriptor."""
        self.known: set[str] = set()
        self.possible = hasattr(os, "pidfd_open") and os.path.isdir("/proc/self")

    def find(self) -> None:
        """Look for ranks that have started since the last time."""
        if not self.possible:
            return
        try:
            names = os.listdir(self.directory)
        except OSError:
            return  # deleted, or on a file system that is gone: the run itself may not mind
        for name in names:
            if name in self.known or not (name.startswith("rank") and name.endswith(".jsonl")):
                continue
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                with open(os.path.join(self.directory, name), "rb") as file:
                    pid = int(json.loads(file.readline())["pid"])
                self.known.add(name)
                # A rank in a namespace of its own knows itself by another number, which may be anybody's here.
                if _is_below(pid, os.getpid()):
                    self.watched[os.pidfd_open(pid)] = pid
                    self._write({"event": "rank-watched", "pid": pid, "time": time.time()})

    def note(self, readable: list[int], child: subprocess.Popen[bytes] | None) -> None:
        """Write down those that have ended; ``child``: who is collected through this object alone."""
        for descriptor in readable:
            pid = self.watched.pop(descriptor, None)
            if pid is None:
                continue
            os.close(descriptor)
            status = child.poll() if child is not None and child.pid == pid else _status_of(pid)
            self._write({"event": "rank-ended", "pid": pid, "status": status, "time": time.time()})

    def _write(self, entry: dict[str, Any]) -> None:
        path = os.path.join(self.directory, "launcher.jsonl")
        with contextlib.suppress(OSError), open(path, "ab") as file:
            file.write(json.dumps(entry).encode() + b"\n")


def report(directory: str, status: str, **fields: Any) -> None:
    """Write ``supervisor.json``. On a full disk the old text is written over: its place is there already."""
    path = os.path.join(directory, "supervisor.json")
    text = json.dumps(dict(fields, status=status, supervisor=os.getpid())).ljust(_REPORT_SIZE)
    try:
        with open(path + ".new", "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(path + ".new", path)
    except OSError:
        with contextlib.suppress(OSError), open(path, "r+", encoding="utf-8") as file:
            file.write(text)


def _drain(directory: str, channel: int | None) -> Any:
    """What reads the output; not imported above, as the folder of this file is all that Python knows of it then."""
    from ranksafe.runs import drain

    return drain.Drain(directory, channel)


def _stay_behind(descriptors: list[int]) -> None:
    """Read on for processes that are kept, until the last of them has ended; nobody waits for it."""
    from ranksafe.runs import drain

    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    first = 3
    for kept in (*sorted(descriptors), os.sysconf("SC_OPEN_MAX")):
        os.closerange(first, kept)
        first = kept + 1
    drain.swallow(descriptors)


def _processes() -> dict[int, tuple[int, str]]:
    """Every process that is not a zombie: its parent and its start time."""
    if os.path.isdir("/proc/self"):
        return _processes_of_proc()
    table: dict[int, tuple[int, str]] = {}
    command = ["/bin/ps", "-axo", "pid=,ppid=,stat=,lstart="]
    output = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    for line in output.splitlines():
        pid, parent, state, *started = line.split()
        if not state.startswith("Z"):
            table[int(pid)] = (int(parent), " ".join(started))
    return table


def _processes_of_proc() -> dict[int, tuple[int, str]]:
    table: dict[int, tuple[int, str]] = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        fields = _stat(int(entry))
        if fields is not None and fields[0] != b"Z":
            table[int(entry)] = (int(fields[1]), fields[19].decode())
    return table


def _is_below(pid: int, ancestor: int) -> bool:
    while pid > 1 and pid != ancestor:
        pid = int((_stat(pid) or [b"", b"0"])[1])
    return pid == ancestor


def _status_of(pid: int) -> int | None:
    """The exit status of a process that nobody has collected yet, negative: the signal; None when somebody has."""
    fields = _stat(pid)
    if fields is None or fields[0] != b"Z":
        return None
    return os.waitstatus_to_exitcode(int(fields[49]))


def _stat(pid: int) -> list[bytes] | None:
    """The fields of ``/proc/PID/stat`` from the third, the state, on; None: there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rsplit(b")", 1)[1].split()
    except (OSError, IndexError):
        return None


def _send(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(OSError):
        os.kill(pid, number)


def _prctl(option: int, value: int) -> None:
    if not sys.platform.startswith("linux"):
        return
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    sys.path.insert(0, os.path.abspath(os.path.join(__file__, *[os.pardir] * 3)))
    sys.exit(main())
