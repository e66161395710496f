"""A rank that waits for a debugger: real launches, a real debugpy, a client of ours."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from queue import Queue

import pytest
from ranksafe.runs.errors import RunNotPossible
from ranksafe.runs.model import Debugging, Outcome, RunEvent, RunRequest
from ranksafe.runs.start import Run, start_run

from .conftest import LONGEST_RUN_SECONDS
from .debug_adapter_client import Debugger

DEADLOCK = """\
import os

import torch
import torch.distributed as dist
from accelerate import Accelerator

accelerator = Accelerator()
rank = accelerator.process_index
dist.all_reduce(torch.ones(1))
if rank == 0:
    dist.all_reduce(torch.ones(1))
else:
    dist.barrier()
"""
STOP = DEADLOCK.splitlines().index("dist.all_reduce(torch.ones(1))") + 1
ALONE = """\
import sys

import torch.multiprocessing as mp


def main():
    print("last on the path:", sys.path[-1])


if len(sys.argv) > 1:
    mp.spawn(main)
main()
"""
"""It starts its ranks itself, as far as can be seen: one process, whatever Python has."""


@pytest.mark.torch
@pytest.mark.long
def test_a_rank_waits_and_whoever_is_waited_for_is_not_said_to_hang(
    torch_python: Path, tmp_path: Path
) -> None:
    script = _script(tmp_path, DEADLOCK)
    events: list[RunEvent] = []
    run, address = _start(script, torch_python, Debugging(1), events)
    with Debugger(address) as debugger:
        debugger.attach(script, STOP, {"justMyCode": True})
        thread = debugger.stopped()
        assert debugger.place(thread) == ("<module>", STOP)
        assert debugger.value(thread, "accelerator.process_index") == "1"
        assert debugger.value(thread, "os.environ['RANK']") == "'1'"
        assert debugger.value(thread, "[n for n in os.environ if 'RANKSAFE_RUN' in n]") == "[]"
        names = [each["name"] for each in debugger.ask("threads")["threads"]]
        assert not any("Dummy" in name for name in names), "no thread of ours is shown"
        debugger.ask("continue", threadId=thread)
        _until(lambda: _both_wait(events, seconds=15))
    assert run.wait(0.0) is None
    run.cancel()
    result = run.wait()
    assert result is not None
    assert result.outcome is Outcome.CANCELLED
    assert not result.failures
    assert "rank 1 waits for a debugger" in result.modified[0]
    assert not [event for event in events if event.kind == "hang"]


@pytest.mark.torch
def test_a_python_without_debugpy_takes_the_one_that_is_named_as_the_last_of_its_path(
    torch_python: Path, tmp_path: Path
) -> None:
    command = [str(torch_python), "-c", "import debugpy; print(debugpy.__file__)"]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    libraries = tmp_path / "libraries"
    libraries.mkdir()
    (libraries / "debugpy").symlink_to(Path(found).parent)
    script = _script(tmp_path, ALONE.replace("import torch.multiprocessing as mp", "mp = None"))
    events: list[RunEvent] = []
    run, address = _start(script, Path(sys.executable), Debugging(0, libraries), events)
    with Debugger(address) as debugger:
        line = ALONE.splitlines().index("    mp.spawn(main)") + 2
        debugger.attach(script, line, {"justMyCode": True})
        debugger.stopped()
        # Whoever leaves lets the run go on.
        debugger.ask("disconnect", terminateDebuggee=False)
    result = run.wait()
    assert result is not None
    assert result.outcome is Outcome.SUCCEEDED
    output = [line for event in events if event.kind == "output" for line in event.lines]
    assert output == [f"last on the path: {libraries}"]


@pytest.mark.parametrize(
    ("debugging", "reason"),
    [
        (Debugging(1), "no rank 1"),
        (Debugging(0), "python -m pip install debugpy"),
        (Debugging(0, Path("libraries")), "python -m pip install debugpy"),
    ],
)
def test_what_cannot_be_debugged_is_said_before_anything_starts(
    tmp_path: Path, debugging: Debugging, reason: str
) -> None:
    script = _script(tmp_path, ALONE)
    request = RunRequest(script, interpreter=Path(sys.executable), debugging=debugging)
    with pytest.raises(RunNotPossible, match=reason):
        start_run(request, lambda _: None)


def _script(folder: Path, text: str) -> Path:
    path = folder / "train.py"
    path.write_text(text)
    return path


def _start(
    script: Path, python: Path, debugging: Debugging, events: list[RunEvent]
) -> tuple[Run, tuple[str, int]]:
    """The run and where its rank waits."""
    addresses: Queue[tuple[str, int] | None] = Queue()

    def on_event(event: RunEvent) -> None:
        events.append(event)
        if event.kind == "debugger":
            addresses.put(event.address)

    request = RunRequest(
        script,
        cpu_ranks=True,
        interpreter=python,
        timeout_seconds=LONGEST_RUN_SECONDS,
        debugging=debugging,
    )
    run = start_run(request, on_event)
    address = addresses.get(timeout=LONGEST_RUN_SECONDS)
    assert address is not None, [event.text for event in events]
    return run, address


def _both_wait(events: list[RunEvent], seconds: float) -> bool:
    """Whether the ranks were last said to wait for so long: three times what is otherwise called a hang."""
    told = [event.states for event in events if event.kind == "ranks"]
    return bool(told) and [
        state.kind == "waits" and (state.seconds or 0.0) >= seconds for state in told[-1]
    ] == [True, True]


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LONGEST_RUN_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
