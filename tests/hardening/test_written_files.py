"""Promise: what ``fix`` writes is there as a whole or not at all, and never over what somebody else has written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ranksafe.cli.reading import read_source
from ranksafe.cli.replacing import ChangedMeanwhile

from tests.hardening.measured import environment

ONE, OTHER = ("x = 1\n" * 500_000, "y = 2\n" * 700_000)
WRITES_FOR_EVER = """
import sys
from pathlib import Path
from ranksafe.cli.reading import read_source
path = Path(sys.argv[1])
one = path.read_text()
other = Path(sys.argv[2]).read_text()
print("begun", flush=True)
while True:
    read_source(path).write(other)
    read_source(path).write(one)
"""


def test_a_kill_tears_no_file(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(ONE)
    (tmp_path / "other.py").write_text(OTHER)
    for attempt in range(12):
        (tmp_path / "train.py").write_text(ONE)
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITES_FOR_EVER, "train.py", "other.py"],
            cwd=tmp_path,
            env=environment(tmp_path),
            stdout=subprocess.PIPE,
        )
        assert writer.stdout is not None
        writer.stdout.readline()
        time.sleep(0.003 * attempt)
        writer.kill()
        writer.communicate()
        assert (tmp_path / "train.py").read_text() in (ONE, OTHER)


def test_what_was_saved_meanwhile_stays(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text("x = 1\n")
    source = read_source(path)
    path.write_text("x = 2  # by its author\n")
    with pytest.raises(ChangedMeanwhile):
        source.write("x = 3\n")
    assert path.read_text() == "x = 2  # by its author\n"
    assert os.listdir(tmp_path) == ["train.py"]


def test_of_a_file_with_two_names_both_change(tmp_path: Path) -> None:
    path, other = tmp_path / "train.py", tmp_path / "same.py"
    path.write_text("x = 1\n")
    other.hardlink_to(path)
    source = read_source(path)
    source.write("x = 2\n")
    assert other.read_text() == "x = 2\n"
    path.write_text("x = 4\n")
    with pytest.raises(ChangedMeanwhile):
        source.write("x = 3\n")
    assert path.read_text() == "x = 4\n"


def test_mode_links_and_a_new_time(tmp_path: Path) -> None:
    real, link = tmp_path / "real.py", tmp_path / "link.py"
    real.write_text("x = 1\n")
    real.chmod(0o751)
    os.utime(real, (1, 1))
    link.symlink_to(real)
    read_source(link).write("x = 2\n")
    assert link.is_symlink()
    assert real.read_text() == "x = 2\n"
    assert real.stat().st_mode & 0o7777 == 0o751
    assert real.stat().st_mtime > 1, "build tools would take it for unchanged"


@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="only root may give files away")
def test_the_owner_stays(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text("x = 1\n")
    os.chown(path, 12345, 54321)
    read_source(path).write("x = 2\n")
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 54321)


def test_fix_says_which_file_was_changed(tmp_path: Path) -> None:
    """Stopped between reading and writing: the file that is to be written is one that it reads from a pipe."""
    program = (
        "import os, signal, sys\n"
        "import ranksafe.cli.fix as fix\n"
        "from ranksafe.cli.main import run_command_line\n"
        "apply = fix.fix_text\n"
        "def stopped(*given, **named):\n"
        "    fixed = apply(*given, **named)\n"
        "    os.kill(os.getpid(), signal.SIGSTOP)\n"
        "    return fixed\n"
        "fix.fix_text = stopped\n"
        "sys.argv[1:] = ['fix', '--unsafe', 'train.py']\n"
        "run_command_line()\n"
    )
    from tests.hardening.test_hostile_messages import WARNED

    path = tmp_path / "train.py"
    path.write_text(WARNED)
    fixing = subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=environment(tmp_path),
        stderr=subprocess.PIPE,
    )
    os.waitid(os.P_PID, fixing.pid, os.WSTOPPED)
    path.write_text("# by its author\n")
    fixing.send_signal(signal.SIGCONT)
    _, error = fixing.communicate()
    assert path.read_text() == "# by its author\n"
    assert b"changed by somebody else meanwhile" in error
    assert fixing.returncode == 2
