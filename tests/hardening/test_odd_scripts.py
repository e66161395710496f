"""``ranksafe run`` changes nothing about a script: the same exit status and the same output as without it.

Compared are the statuses of the command that both start, what it prints on standard output, byte by byte, and on standard
error unless there is a traceback, which ranksafe folds. Each line has its rank's mark; of a line that was overwritten
(``\\r``) the last state is shown, as on a terminal.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.hardening.measured import environment, sampled
from tests.hardening.odd_scripts import ODD_SCRIPTS

_SAMPLE = ("exit_7", "killed", "all_bytes", "huge_line", "writes_to_3", "both_streams")
_MARK = re.compile(rb"^\[rank (\d+)\] ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class _Ended:
    status: int | None
    out: bytes
    error: bytes


def _in_group_of_its_own() -> None:
    """With SIGINT as on a terminal, even where these tests run in the background: ranksafe lets its ranks have it."""
    os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def bare(folder: Path, script: Path) -> _Ended:
    """As a shell starts it: in a process group of its own."""
    done = subprocess.run(
        [sys.executable, "-u", str(script)],
        cwd=folder,
        env=environment(folder.parent / "home"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        preexec_fn=_in_group_of_its_own,
    )
    return _Ended(done.returncode, done.stdout, done.stderr)


def through_ranksafe(folder: Path, script: Path, *options: str) -> tuple[int, _Ended]:
    """The status of ``ranksafe`` itself, and how the command that it started ended."""
    words = ["run", script.name, "--launcher", "python", "--python", sys.executable]
    done = subprocess.run(
        [sys.executable, "-m", "ranksafe", *words, "--cpu-ranks", "--gpus", "1", *options],
        cwd=folder,
        env=environment(folder.parent / "home"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        preexec_fn=_in_group_of_its_own,
    )
    (report,) = (folder.parent / "home" / ".cache" / "ranksafe" / "runs").glob("*/supervisor.json")
    status = json.loads(report.read_text(encoding="utf-8"))["returncode"]
    marked = [
        line for line in done.stderr.split(b"\n") if line.startswith((b"[rank ", b"[launcher]"))
    ]
    return done.returncode, _Ended(
        status, _MARK.sub(b"", done.stdout), _MARK.sub(b"", b"\n".join(marked))
    )


def as_shown(output: bytes) -> bytes:
    """A line that does not end gets its end."""
    lines = [line.rstrip(b"\r").rsplit(b"\r", 1)[-1] for line in output.split(b"\n")]
    text = b"\n".join(lines)
    return text if text.endswith(b"\n") or not text else text + b"\n"


@pytest.mark.skipif(sys.platform != "linux", reason="the scripts look into /proc")
@pytest.mark.parametrize("name", sampled(ODD_SCRIPTS, _SAMPLE))
def test_a_script_goes_as_it_goes_without(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    script = folder / "script.py"
    script.write_text(ODD_SCRIPTS[name] + "\n", encoding="utf-8")
    expected = bare(folder, script)
    status, found = through_ranksafe(folder, script)
    assert found.status == expected.status
    assert status == (1 if expected.status else 0)
    assert found.out == as_shown(expected.out)
    if b"Traceback" not in expected.error and b"SyntaxError" not in expected.error:
        assert as_shown(found.error) == as_shown(expected.error)
