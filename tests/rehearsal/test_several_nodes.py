"""One launcher per simulated node: ranks and devices, signals, and how a failure ends all nodes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ranksafe.rehearsal import several_nodes

PROGRAM = Path(several_nodes.__file__)


def _command(text: str) -> list[str]:
    return [sys.executable, "-c", text]


def _start(commands: list[list[str]], **environment: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, str(PROGRAM), "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    process.stdin.write(several_nodes.settings_as_text(commands, environment))
    process.stdin.close()
    process.stdin = None
    return process


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def test_nodes_know_their_number_and_the_environment() -> None:
    # In one write: with PYTHONUNBUFFERED, print writes word by word, and the nodes share the pipe.
    tell = (
        "import os\n"
        "text = os.environ['RANKSAFE_REHEARSAL_NODE'] + ' ' + os.environ['EXTRA'] + '\\n'\n"
        "os.write(1, text.encode())"
    )
    process = _start([_command(tell), _command(tell)], EXTRA="x")
    stdout, stderr = process.communicate(timeout=20)
    assert sorted(stdout.splitlines()) == ["0 x", "1 x"]
    assert stderr == ""
    assert process.returncode == 0


def test_one_failure_ends_the_others_with_its_status(tmp_path: Path) -> None:
    started = tmp_path / "started"
    waiting = (
        f"import os, time; open({str(started)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    )
    failing = (
        f"import os, sys, time\nwhile not os.path.exists({str(started)!r}): time.sleep(0.02)\n"
        "time.sleep(0.2)\nsys.exit(7)"
    )
    process = _start([_command(waiting), _command(failing)])
    process.communicate(timeout=30)
    assert process.returncode == 7
    assert not _alive(int(started.read_text()))


def test_a_node_killed_by_a_signal_is_told_as_shells_do() -> None:
    process = _start([_command("import os; os.kill(os.getpid(), 9)"), _command("pass")])
    process.communicate(timeout=20)
    assert process.returncode == 128 + signal.SIGKILL


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_are_passed_on_once(tmp_path: Path, number: signal.Signals) -> None:
    log = tmp_path / "log"
    note = (
        "import os, signal, sys, time\n"
        "def note(number, frame):\n"
        f"    open({str(log)!r}, 'a').write(str(number) + ' ')\n"
        "    time.sleep(0.3)\n"
        "    sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, note)\n"
        "signal.signal(signal.SIGINT, note)\n"
        f"open({str(tmp_path)!r} + '/ready-' + os.environ['RANKSAFE_REHEARSAL_NODE'], 'w').close()\n"
        "time.sleep(60)"
    )
    process = _start([_command(note), _command(note)])
    deadline = time.monotonic() + 20
    while len(list(tmp_path.glob("ready-*"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(number)
    process.communicate(timeout=30)
    assert log.read_text().split() == [str(int(number))] * 2
    assert process.returncode == 128 + number


def test_the_launchers_options() -> None:
    assert several_nodes.torchrun_options(1, 2, 29400) == [
        "--nnodes=2", "--node_rank=1", "--master_addr=127.0.0.1", "--master_port=29400",
    ]  # fmt: skip
    assert several_nodes.accelerate_options(1, 2, 29400) == [
        "--num_machines=2", "--machine_rank=1", "--main_process_ip=127.0.0.1", "--main_process_port=29400",
    ]  # fmt: skip
    assert json.loads(several_nodes.settings_as_text([["a"]])) == {
        "commands": [["a"]],
        "environment": {},
    }


def test_it_is_started_wrongly() -> None:
    wrong = subprocess.run([sys.executable, str(PROGRAM)], env=dict(os.environ), check=False)
    assert wrong.returncode == 2
