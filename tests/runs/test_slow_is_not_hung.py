"""Programs in which one rank keeps the others waiting, for longer than any hang goes unnoticed, and that end well.

Each asks for the ranks' stacks while it goes on.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from ranksafe.runs.model import Outcome, RunEvent, RunRequest
from ranksafe.runs.start import start_run
from ranksafe.runs.watch.stacks import Look, look_at, runs_going_on

pytestmark = pytest.mark.torch

PROGRAMS = Path(__file__).parent / "slow_programs"
SECONDS = 30
WAYS = [
    "compute", "long_calls_in_cpp", "write_a_large_checkpoint", "wait_for_a_thread", "wait_for_the_first_batch",
    "download", "wait_for_a_download_to_begin", "look_for_a_file_again_and_again",
]  # fmt: skip


def _ends_well(python: Path, script: str, *arguments: str) -> tuple[list[RunEvent], list[Look]]:
    events: list[RunEvent] = []
    request = RunRequest(
        script=PROGRAMS / script,
        arguments=arguments,
        interpreter=python,
        working_directory=PROGRAMS,
        cpu_ranks=True,
        timeout_seconds=240.0,
    )
    waited = threading.Event()

    def hear(event: RunEvent) -> None:
        events.append(event)
        if any(state.kind == "waits" for state in event.states):
            waited.set()

    started = time.monotonic()
    run = start_run(request, hear)
    looks: list[Look] = []
    if waited.wait(60):
        [directory] = runs_going_on()
        assert directory.name == run.run_id
        looks = look_at(directory)
    result = run.wait()
    assert result is not None
    said = [event.text for event in events if event.kind in ("hang", "status")]
    assert result.outcome is Outcome.SUCCEEDED, (said, result.failures)
    assert not [event for event in events if event.kind == "hang"]
    assert time.monotonic() - started > SECONDS, "slow enough to show anything"
    assert runs_going_on() == []
    return events, looks


@pytest.mark.long
def test_tokenisation_under_main_process_first(torch_python: Path) -> None:
    events, looks = _ends_well(torch_python, "tokenisation.py", str(SECONDS))
    assert [look.rank for look in looks] == [0, 1]
    assert all(look.answered for look in looks)
    [wait] = looks[1].waits
    assert wait.name == "barrier"
    lines = (PROGRAMS / "tokenisation.py").read_text(encoding="utf-8").splitlines()
    own = [f for f in looks[0].threads[0].frames if f.filename == str(PROGRAMS / "tokenisation.py")]
    assert lines[own[-1].line - 1].strip() == "pool.map(tokenise, [end, end])"
    assert len(looks[0].threads) > 1, "the pool's threads"
    last = [event.states for event in events if event.kind == "ranks"][-1]
    assert [state.rank for state in last] == [0, 1]


@pytest.mark.long
def test_a_child_process_that_works(torch_python: Path) -> None:
    _ends_well(torch_python, "one_rank_is_slow.py", "wait_for_a_compiler", str(SECONDS))


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
def test_other_slow_ways(torch_python: Path, way: str) -> None:
    _ends_well(torch_python, "one_rank_is_slow.py", way, str(SECONDS))
