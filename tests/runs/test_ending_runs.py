"""Whatever ends a run ends every process of it, and no other."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from ranksafe.runs.model import Outcome, RunEvent, RunRequest
from ranksafe.runs.start import start_run

from .conftest import SCRIPTS

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks for processes in /proc"),
]
_PATIENCE_SECONDS = 60.0

_CALLER = """
import sys
from pathlib import Path
from ranksafe.runs.model import RunRequest
from ranksafe.runs.start import start_run

script, python = map(Path, sys.argv[1:])
request = RunRequest(script, cpu_ranks=True, arguments=("hang",), interpreter=python)
run = start_run(request, lambda event: sys.stdout.write(event.text + "\\n"))
sys.stdout.write(f"RUN {run.run_id}\\n")
run.wait()
"""


def _processes_of(run_id: str) -> list[int]:
    """Processes that mention the run in their environment or on their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                told = (entry / "environ").read_bytes() + (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if run_id.encode() in told:
                found.append(int(entry.name))
    return found


def _wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + _PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < end, "nothing happened in time"
        time.sleep(0.1)


def test_cancelling_a_hang_leaves_no_process(torch_python: Path) -> None:
    met = threading.Semaphore(0)

    def on_event(event: RunEvent) -> None:
        if event.text == "met":
            met.release()

    bystander = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(120)"])
    request = RunRequest(
        SCRIPTS / "rank_one_fails.py", cpu_ranks=True, arguments=("hang",), interpreter=torch_python
    )
    run = start_run(request, on_event)
    try:
        assert met.acquire(timeout=_PATIENCE_SECONDS)
        assert met.acquire(timeout=_PATIENCE_SECONDS)
        assert len(_processes_of(run.run_id)) >= 3
        run.cancel()
        result = run.wait(_PATIENCE_SECONDS)
        assert result is not None
        assert result.outcome is Outcome.CANCELLED
        assert result.failures == ()
        assert [rank.outcome for rank in result.ranks] == ["stopped", "stopped"]
        assert _processes_of(run.run_id) == []
        assert bystander.poll() is None
    finally:
        run.cancel()
        bystander.kill()
        bystander.wait()


@pytest.mark.parametrize("victim", ["caller", "launcher", "supervisor"])
def test_killing_any_of_the_programs_above_the_ranks_leaves_no_orphan(
    torch_python: Path, victim: str
) -> None:
    script = SCRIPTS / "rank_one_fails.py"
    caller = subprocess.Popen(
        [sys.executable, "-u", "-c", _CALLER, str(script), str(torch_python)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)},
    )
    assert caller.stdout is not None
    run_id, met = "", 0
    for line in caller.stdout:
        if line.startswith("RUN "):
            run_id = line.split()[1]
        met += line == "met\n"
        if met == 2:
            break
    assert run_id
    assert len(_processes_of(run_id)) >= 3
    if victim == "caller":
        os.kill(caller.pid, signal.SIGKILL)
    elif victim == "launcher":
        os.kill(_launcher_of(run_id), signal.SIGKILL)
    else:
        os.kill(_supervisor_of(caller.pid), signal.SIGKILL)
    _wait_until(lambda: _processes_of(run_id) == [])
    caller.wait(_PATIENCE_SECONDS)
    caller.stdout.close()


def _launcher_of(run_id: str) -> int:
    return next(
        pid
        for pid in _processes_of(run_id)
        if b"torch.distributed.run" in (Path("/proc") / str(pid) / "cmdline").read_bytes()
    )


def _supervisor_of(caller: int) -> int:
    children = Path(f"/proc/{caller}/task/{caller}/children")
    threads = Path(f"/proc/{caller}/task").glob("*/children")
    found = [int(pid) for path in (children, *threads) for pid in path.read_text().split()]
    return found[0]


def test_a_listener_that_fails_ends_the_run(torch_python: Path) -> None:
    def on_event(event: RunEvent) -> None:
        if event.kind == "output":
            raise BrokenPipeError

    request = RunRequest(
        SCRIPTS / "rank_one_fails.py", cpu_ranks=True, arguments=("hang",), interpreter=torch_python
    )
    run = start_run(request, on_event)
    with pytest.raises(BrokenPipeError):
        run.wait(_PATIENCE_SECONDS)
    assert _processes_of(run.run_id) == []
