"""Logs explained while they come, and logs too large to be held in memory."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from ranksafe.runs.diagnosis.follow_log import FollowedLog

_UNCAUGHT = """\
[rank1]: Traceback (most recent call last):
[rank1]:   File "/home/user/train.py", line 9, in <module>
[rank1]:     check(batch)
[rank1]: KeyError: 'label'
"""
_PEER = """\
[rank0]: Traceback (most recent call last):
[rank0]:   File "/home/user/train.py", line 31, in <module>
[rank0]:     loss.backward()
[rank0]: RuntimeError: Connection closed by peer [127.0.0.1]:12695
"""
_HANDLED = """\
Traceback (most recent call last):
  File "/home/user/data.py", line 4, in read
    open(name)
FileNotFoundError: [Errno 2] No such file or directory: 'a'
"""
_LAUNCHER = "E1120 21:18:43.2 1 torch/x/api.py:1002] failed (exitcode: 1) local_rank: 0 (pid: 7) of binary: python\n"


class _Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> _Clock:
    return _Clock()


@pytest.fixture
def log(clock: _Clock) -> FollowedLog:
    return FollowedLog(clock=clock)


def _later(log: FollowedLog, clock: _Clock) -> str | None:
    clock.now += 1
    found = log.certain()
    return found.message if found else None


def test_an_uncaught_exception_is_certain_after_a_moment(log: FollowedLog, clock: _Clock) -> None:
    log.feed(_UNCAUGHT[:120].encode())
    assert log.certain() is None
    log.feed(_UNCAUGHT[120:].encode())
    assert log.certain() is None
    assert _later(log, clock) == "KeyError: 'label'"
    assert _later(log, clock) is None


def test_a_stream_that_never_rests_is_looked_at_all_the_same(
    log: FollowedLog, clock: _Clock
) -> None:
    log.feed(_UNCAUGHT.encode())
    for _ in range(30):
        clock.now += 0.1
        log.feed(b"[rank0]: UserWarning: error rate is high\n")
        if log.certain():
            break
    assert log.announced is not None


def test_a_handled_exception_is_not_certain(log: FollowedLog, clock: _Clock) -> None:
    log.feed((_HANDLED + "step 1 loss 0.5\n").encode())
    assert _later(log, clock) is None
    log.feed(_LAUNCHER.encode())
    assert (_later(log, clock) or "").startswith("FileNotFoundError")


def test_a_lost_peer_is_not_certain(log: FollowedLog, clock: _Clock) -> None:
    log.feed(_PEER.encode())
    assert _later(log, clock) is None
    log.feed(_UNCAUGHT.encode())
    assert _later(log, clock) == "KeyError: 'label'"
    first, second = log.finish()
    assert (first.rank, first.root_cause) == (1, True)
    assert (second.rank, second.root_cause) == (0, False)


def test_a_log_without_trouble_has_none(log: FollowedLog, clock: _Clock) -> None:
    log.feed(b"step 1 loss 0.5\nstep 2 loss 0.4\n")
    assert _later(log, clock) is None
    assert log.finish() == []
    assert log.reader.last_lines(1) == ["step 2 loss 0.4"]


def _environment() -> dict[str, str]:
    """With this process's own search path: the package need not be installed."""
    return {**os.environ, "PYTHONUTF8": "1", "PYTHONPATH": os.pathsep.join(sys.path)}


def _start(*arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "ranksafe", "diagnose", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=_environment(),
    )


@pytest.mark.skipif(sys.platform == "win32", reason="select waits for sockets only")
def test_the_command_speaks_before_the_stream_ends() -> None:
    process = _start("-")
    assert process.stdin
    assert process.stdout
    process.stdin.write(b"step 1\n" + _UNCAUGHT.encode())
    process.stdin.flush()
    ready, _, _ = select.select([process.stdout], [], [], 60)
    assert ready
    early = os.read(process.stdout.fileno(), 65_536).decode()
    assert "/home/user/train.py:9" in early
    assert "KeyError: 'label'" in early
    rest, _ = process.communicate(_PEER.encode(), timeout=60)
    assert process.returncode == 1
    assert "KeyError" not in rest.decode()
    assert "train.py:31" in rest.decode()


def test_what_was_said_early_is_refined_at_the_end() -> None:
    process = _start("-")
    assert process.stdin
    process.stdin.write((_UNCAUGHT.replace("KeyError: 'label'", "ValueError: bad:")).encode())
    process.stdin.flush()
    assert process.stdout
    early = process.stdout.readline().decode()
    rest, _ = process.communicate(b"[rank1]: sample 7\n", timeout=60)
    assert "ValueError: bad:" in early
    assert "At the end of the log:" in rest.decode()
    assert "sample 7" in rest.decode()


@pytest.mark.parametrize(
    ("text", "status"), [(_UNCAUGHT, 1), ("step 1\n", 0), (_LAUNCHER, 1), ("", 0)]
)
def test_json_is_one_list_and_the_status_says_whether_anything_failed(
    text: str, status: int, tmp_path: Path
) -> None:
    path = tmp_path / "train.log"
    path.write_text(text, encoding="utf-8")
    for name, given in ((str(path), b""), ("-", text.encode())):
        process = _start(name, "--output-format", "json")
        printed, _ = process.communicate(given, timeout=60)
        assert process.returncode == status
        assert len(json.loads(printed)) == status


def test_a_log_that_cannot_be_read_is_an_error_of_use(tmp_path: Path) -> None:
    process = _start(str(tmp_path / "none.log"))
    process.communicate(timeout=60)
    assert process.returncode == 2


@pytest.mark.skipif(sys.platform == "win32", reason="needs resource")
@pytest.mark.long
def test_sixty_megabytes_take_no_more_memory_than_one() -> None:
    program = textwrap.dedent(
        """
        import resource, sys
        from ranksafe.runs.diagnosis.follow_log import FollowedLog

        def pieces(megabytes):
            step = size = 0
            while size < megabytes << 20:
                lines = []
                for _ in range(1000):
                    step += 1
                    lines += [f"[rank{r}]: step {step} loss {1 / step:.6f}" for r in range(8)]
                lines.append(f"[rank{step // 1000 % 8}]: UserWarning: error in shard {step}, skipped")
                lines.append(f"  7%|...| {step}/9999999 [00:01<10:00,  8.6it/s]" * 200)
                data = "\\n".join(lines).encode() + b"\\n"
                size += len(data)
                yield data

        def peak_after(megabytes):
            log = FollowedLog()
            for data in pieces(megabytes):
                log.feed(data)
            log.feed(b'''[rank5]: Traceback (most recent call last):\\n'''
                     b'''[rank5]:   File "/home/user/train.py", line 9, in f\\n'''
                     b'''[rank5]:     g()\\n[rank5]: KeyError: 7\\n''')
            (found,) = log.finish()
            assert (found.rank, found.line) == (5, 9)
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

        one = peak_after(1)
        print((peak_after(60) - one) // 1024)
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=_environment(),
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert int(done.stdout) < 30
