"""Whatever ends a run ends every process of it, and no other."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from ranksafe.runs.directory import cache_directory
from ranksafe.runs.errors import RunNotPossible
from ranksafe.runs.model import Outcome, RunEvent, RunRequest
from ranksafe.runs.start import Run, start_run

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
        for _ in range(event.text.count("met")):
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


@pytest.mark.parametrize(
    "victim",
    [
        "caller",
        *(pytest.param(each, marks=pytest.mark.long) for each in ("launcher", "supervisor")),
    ],
)
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


_OWN_RANKS = """
import multiprocessing, signal, sys, time

def rank(number):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print("met", flush=True)
    time.sleep(600)

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    ranks = [context.Process(target=rank, args=(number,)) for number in range(2)]
    for each in ranks:
        each.start()
    for each in ranks:
        each.join()
"""


@pytest.mark.parametrize("victim", ["guard", "supervisor"])
def test_ranks_that_the_script_started_itself_are_no_orphans_either(
    tmp_path: Path, torch_python: Path, victim: str
) -> None:
    """Their parent dies of a signal without ending them, and they do not listen to any themselves."""
    run, met = _run_of_own_ranks(tmp_path, torch_python)
    try:
        assert met.acquire(timeout=_PATIENCE_SECONDS)
        assert met.acquire(timeout=_PATIENCE_SECONDS)
        supervisor = json.loads((_directory_of(run) / "supervisor.json").read_text())["supervisor"]
        stat = Path(f"/proc/{supervisor}/stat").read_text()
        guard = int(stat.rpartition(")")[2].split()[1])
        assert guard != os.getpid()
        os.kill(guard if victim == "guard" else supervisor, signal.SIGKILL)
        _wait_until(lambda: _processes_of(run.run_id) == [])
        result = run.wait(_PATIENCE_SECONDS)
        assert result is not None
        assert result.outcome is Outcome.FAILED
    finally:
        run.cancel()


def test_a_run_whose_folder_is_deleted_can_be_ended(tmp_path: Path, torch_python: Path) -> None:
    run, met = _run_of_own_ranks(tmp_path, torch_python)
    try:
        assert met.acquire(timeout=_PATIENCE_SECONDS)
        assert met.acquire(timeout=_PATIENCE_SECONDS)
        shutil.rmtree(_directory_of(run))
        # It may go on, as what is open can still be written to, or be ended, as it cannot be watched any more.
        time.sleep(1.5)
        run.cancel()
        with contextlib.suppress(RunNotPossible):
            assert run.wait(_PATIENCE_SECONDS) is not None
        _wait_until(lambda: _processes_of(run.run_id) == [])
    finally:
        run.cancel()


@pytest.mark.long
def test_a_run_whose_folder_is_gone_goes_on_and_can_be_ended(
    tmp_path: Path, torch_python: Path
) -> None:
    run, met = _run_of_own_ranks(tmp_path, torch_python)
    directory = _directory_of(run)
    try:
        assert met.acquire(timeout=_PATIENCE_SECONDS)
        directory.rename(directory.with_suffix(".old"))
        directory.touch()
        assert run.wait(3.0) is None
        assert _processes_of(run.run_id)
        run.cancel()
        result = run.wait(_PATIENCE_SECONDS)
        assert result is not None
        assert result.outcome is Outcome.CANCELLED
        assert _processes_of(run.run_id) == []
    finally:
        run.cancel()


def _run_of_own_ranks(folder: Path, python: Path) -> tuple[Run, threading.Semaphore]:
    """A run whose script starts two ranks itself, and what each of them releases once it is there."""
    (folder / "train.py").write_text(_OWN_RANKS)
    met = threading.Semaphore(0)

    def on_event(event: RunEvent) -> None:
        for _ in range(event.text.count("met")):
            met.release()

    return start_run(_started_by_python(folder, python), on_event), met


def _started_by_python(folder: Path, python: Path) -> RunRequest:
    script = folder / "train.py"
    return RunRequest(script, cpu_ranks=True, launcher="python", interpreter=python)


def _directory_of(run: Run) -> Path:
    return cache_directory() / "runs" / run.run_id


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
