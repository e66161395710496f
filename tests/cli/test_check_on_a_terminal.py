"""What `check` does for people at a terminal: counts, progress, and looking again."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.cli.conftest import DEVICE_MAP, FIXED, ROOT, Call

_PATIENCE = 60.0
"""Seconds."""


def test_statistics(project: Path, call: Call) -> None:
    for name in ("one.py", "two.py"):
        (project / name).write_text(DEVICE_MAP, encoding="utf-8")
    (project / "three.py").write_text(DEVICE_MAP + "values = (1,\n", encoding="utf-8")
    answer = call("check", "--statistics")
    assert answer.status == 1
    assert answer.out.splitlines()[:2] == [
        "3  warning[RS201] device-map-in-distributed-training (in 3 files)",
        "1  error[syntax-error] syntax-error (in 1 file)",
    ]
    assert "one.py:" not in answer.out
    assert "Found 4 in 3 of 3 files" in answer.out


def test_statistics_of_nothing(project: Path, call: Call) -> None:
    (project / "train.py").write_text(FIXED, encoding="utf-8")
    assert call("check", "--statistics").out == "Nothing found in 1 file.\n"


class Terminal:
    """A process whose standard streams are one terminal."""

    def __init__(self, words: list[str], folder: Path) -> None:
        ours, theirs = pty.openpty()
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT / "server"), str(ROOT / "rules")]),
            "HOME": str(folder.parent),
            "TERM": "xterm",
            "LANG": "C.UTF-8",
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "ranksafe", *words],
            cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs,
            start_new_session=True,
            # Whoever runs the tests in the background may have it ignored.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )  # fmt: skip
        os.close(theirs)
        self._ours = ours
        self.text = ""

    def read_until(self, done: Callable[[str], bool]) -> str:
        """Everything so far, once ``done`` says so."""
        end = time.monotonic() + _PATIENCE
        while not done(self.text):
            assert time.monotonic() < end, self.text
            if select.select([self._ours], [], [], 0.1)[0]:
                try:
                    self.text += os.read(self._ours, 65536).decode("utf-8", "replace")
                except OSError:  # Linux ends a terminal so
                    break
        return self.text

    def close(self) -> int:
        """Ctrl+C, and the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        status = self.process.wait(_PATIENCE)
        os.close(self._ours)
        return status


def test_watch(project: Path) -> None:
    file = project / "train.py"
    file.write_text(FIXED, encoding="utf-8")
    terminal = Terminal(["check", "--watch"], project)
    terminal.read_until(lambda text: "waiting for changes" in text)
    assert "Nothing found in 1 file." in terminal.text
    file.write_text(DEVICE_MAP, encoding="utf-8")
    terminal.read_until(lambda text: text.count("waiting for changes") == 2)
    assert "[RS201]" in terminal.text
    (project / "ranksafe.toml").write_text('ignore = ["RS2"]', encoding="utf-8")
    text = terminal.read_until(lambda text: text.count("waiting for changes") == 3)
    assert text.count("Nothing found") == 2
    assert terminal.close() == 130


def test_watch_needs_files(call: Call) -> None:
    answer = call("check", "--watch", "-")
    assert answer.status == 2
    assert "`--watch` is for files" in answer.error


def test_long_work_tells_how_far_it_is_and_leaves_nothing(project: Path) -> None:
    statement = "loader = DataLoader(dataset, sampler=DistributedSampler(dataset))\n"
    imports = "from torch.utils.data import DataLoader\nfrom torch.utils.data.distributed import DistributedSampler\n"
    for number in range(60):
        functions = (f"def f{n}(dataset):\n    {statement}" for n in range(150))
        (project / f"m{number}.py").write_text(imports + "".join(functions), encoding="utf-8")
    terminal = Terminal(["check", "--no-cache"], project)
    text = terminal.read_until(lambda text: " in 60 files" in text or "of 60 files (" in text)
    assert re.search(r"checked \d+ of 60 files", text)
    assert text.rindex("\x1b[2K") > text.rindex("checked ")
    terminal.close()


def test_no_progress_where_nobody_looks(project: Path, call: Call) -> None:
    for number in range(600):
        (project / f"m{number}.py").write_text("import torch\n", encoding="utf-8")
    assert call("check").error == ""
