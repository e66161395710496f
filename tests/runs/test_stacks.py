"""``ranksafe run`` on a terminal, and ``ranksafe stacks`` beside it, as programs."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "slow_programs"
SCRIPT = PROGRAMS / "one_rank_is_slow.py"
SLOW_SECONDS = 10
LONGEST_SECONDS = 90.0


def _command(*words: str) -> list[str]:
    return [sys.executable, "-m", "ranksafe", *words]


def _environment() -> dict[str, str]:
    path = os.pathsep.join(entry for entry in sys.path if entry)
    return {**os.environ, "PYTHONPATH": path, "LANG": "C.UTF-8", "LC_ALL": "", "TERM": "xterm"}


def _stacks(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        _command("stacks", *words),
        env=_environment(),
        capture_output=True,
        text=True,
        check=False,
    )


@contextmanager
def _on_a_terminal(*words: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A process whose three streams are a terminal, and our end of it."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        words, env=_environment(), stdin=theirs, stdout=theirs, stderr=theirs, cwd=PROGRAMS
    )
    os.close(theirs)
    try:
        yield process, ours
    finally:
        process.terminate()
        process.wait()
        os.close(ours)


def _read(terminal: int, seconds: float) -> str:
    """What comes within that time."""
    text, end = b"", time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if not select.select([terminal], [], [], left)[0]:
            break
        try:
            text += os.read(terminal, 65536)
        except OSError:  # the other end is closed
            break
    return text.decode("utf-8", "replace")


@pytest.mark.torch
@pytest.mark.long
def test_a_run_on_a_terminal_and_its_stacks_from_another(torch_python: Path) -> None:
    words = _command(
        "run", str(SCRIPT), "--python", str(torch_python), "--cpu-ranks", "--gpus", "2",
        "--", "compute", str(SLOW_SECONDS),
    )  # fmt: skip
    with _on_a_terminal(*words) as (process, terminal):
        shown, answer = "", None
        end = time.monotonic() + LONGEST_SECONDS
        while process.poll() is None and time.monotonic() < end:
            shown += _read(terminal, 0.5)
            if answer is None and "waits in barrier" in shown:
                answer = _stacks("--output-format", "json", "--all-threads")
        shown += _read(terminal, 1.0)
        assert process.returncode == 0, shown

    assert answer is not None, shown
    assert answer.returncode == 0, answer.stderr
    told = json.loads(answer.stdout)
    assert [rank["rank"] for rank in told["ranks"]] == [0, 1]
    assert all(rank["answered"] for rank in told["ranks"])
    computes, waits = told["ranks"]
    assert [wait["call"] for wait in waits["waits"]] == ["barrier"]
    assert computes["waits"] == []
    own = [frame for frame in computes["threads"][0]["frames"] if frame["in_user_code"]]
    assert [frame["function"] for frame in own] == ["<module>", "compute"]

    # The live lines were erased before anything else was printed, and in the end.
    drawn = re.findall(r"rank 1: waits in barrier \(one_rank_is_slow\.py:\d+\) since \d+ s", shown)
    assert len(drawn) > 2
    assert shown.count("\x1b[J") >= len(drawn)
    rest = shown.rpartition("\x1b[J")[2]
    assert "waits in barrier" not in rest
    assert "succeeded" in rest


def test_without_a_run_there_is_nothing_to_show() -> None:
    answer = _stacks()
    assert (answer.returncode, answer.stdout) == (2, "")
    assert "no run is going on" in answer.stderr


@pytest.mark.parametrize("name", ["nothing-of-that-name", "../runs", "", "/etc", "a b\n$(id)"])
def test_a_name_that_is_no_run_is_refused(name: str) -> None:
    answer = _stacks("--lang=zh-cn", name)
    assert (answer.returncode, answer.stdout) == (2, "")
    assert "没有名为" in answer.stderr
