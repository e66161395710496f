"""What only reads works where Python's POSIX modules and signals are missing, and what cannot work says so.

No Windows: the modules and names that Windows lacks are taken from the Python of this machine. The workflow `gate` has a
job on Windows itself.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import DEVICE_MAP, ROOT

WITHOUT = """
import os, signal, sys

MISSING = ("fcntl", "grp", "pty", "pwd", "resource", "termios", "tty")

class AsOnWindows:
    def find_spec(self, name, path=None, target=None):
        if name in MISSING:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, AsOnWindows())
for name in MISSING:
    sys.modules.pop(name, None)
for name in ("fork", "getuid", "geteuid", "killpg", "mkfifo", "register_at_fork", "sched_getaffinity", "setsid"):
    if hasattr(os, name):
        delattr(os, name)
for name in ("SIGALRM", "SIGHUP", "SIGPIPE", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH", "pthread_sigmask"):
    delattr(signal, name)

if sys.argv[1:] == ["the server"]:
    from ranksafe.lsp.server import create_server
    create_server()
else:
    from ranksafe.__main__ import start
    sys.exit(start())
"""


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["check", "--no-cache", "train.py"], 1, "RS201"),
        (["fix", "--diff", "train.py"], 1, "RS201"),
        (["explain", "train.py:5"], 0, "no collective"),
        (["rules"], 0, "RS201"),
        (["completion", "bash"], 0, "complete "),
        (["stacks"], 2, "no run is going on"),
        (["rehearse", "train.py", "--python", "gone"], 2, "gone"),
        (["run", "train.py"], 2, "On Windows, work inside WSL"),
        (["the server"], 0, ""),
    ],
    ids=lambda words: words[0] if isinstance(words, list) else "",
)
def test_as_on_windows(tmp_path: Path, words: list[str], status: int, said: str) -> None:
    (tmp_path / "train.py").write_text(DEVICE_MAP, encoding="utf-8")
    paths = os.pathsep.join([str(ROOT / "server"), str(ROOT / "rules")])
    environment = {
        "HOME": str(tmp_path / "home"),
        "PATH": os.environ["PATH"],
        "PYTHONPATH": paths,
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, *words],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    assert (done.returncode, said in done.stdout + done.stderr) == (status, True), done
