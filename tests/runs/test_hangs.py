"""Ranks that wait for each other in vain are found, explained and ended long before any time limit of the libraries."""

from __future__ import annotations

from pathlib import Path

import pytest
from ranksafe.runs.model import Failure, Outcome
from ranksafe.runs.watch import standing

from .conftest import Finished, StartRun

pytestmark = pytest.mark.torch

PROGRAMS = Path(__file__).parent / "hang_programs"
LONGEST_SECONDS = 120.0
KINDS = [
    "all_reduce", "all_reduce async", "broadcast", "reduce", "all_gather", "all_gather_into_tensor",
    "all_gather_object", "gather", "gather_object", "scatter", "scatter_object_list", "broadcast_object_list",
    "reduce_scatter_tensor", "all_to_all_single", "barrier", "monitored_barrier", "new_group", "recv",
    "recv from anybody", "irecv", "recv_object_list", "batch_isend_irecv", "backward",
]  # fmt: skip
SHORT = {"backward"}


def _hung(run: StartRun, script: str, *arguments: str, **fields: object) -> Finished:
    finished = run(str(PROGRAMS / script), *arguments, timeout_seconds=LONGEST_SECONDS, **fields)
    assert finished.result.outcome is Outcome.FAILED
    assert finished.result.failures, [e.text for e in finished.events if e.kind != "output"]
    assert finished.result.seconds < LONGEST_SECONDS - 20
    assert {rank.outcome for rank in finished.result.ranks} <= {"stopped", "succeeded", "failed"}
    return finished


def _of(finished: Finished, rank: int) -> Failure:
    return next(each for each in finished.result.failures if each.rank == rank)


def _line(failure: Failure) -> str:
    assert failure.filename is not None
    assert failure.line is not None
    lines = Path(failure.filename).read_text(encoding="utf-8").splitlines()
    return lines[failure.line - 1].strip()


def test_ranks_in_different_branches_are_shown_with_the_branch(run: StartRun) -> None:
    finished = _hung(run, "different_branches.py")
    assert [each.kind for each in finished.result.failures] == ["hang", "hang"]
    assert all(each.root_cause for each in finished.result.failures), "nobody is singled out"
    assert _line(_of(finished, 0)) == "dist.all_reduce(value)"
    assert _line(_of(finished, 1)) == "dist.barrier()"
    message = _of(finished, 0).message
    assert "rank 0 waits in all_reduce at different_branches.py:9 since" in message
    assert "rank 1 waits in barrier at different_branches.py:11 since" in message
    assert message.endswith(": they took different branches at line 8")
    assert _of(finished, 0).code == _of(finished, 1).code == "RS401"
    told = [event for event in finished.events if event.kind == "hang"]
    assert len(told) == 1
    assert "--on-hang report" in told[0].text
    assert len(told[0].failures) == 2


@pytest.mark.long
def test_a_rank_that_stands_still_is_the_cause_not_the_one_in_backward(run: StartRun) -> None:
    finished = _hung(run, "stands_still.py", language="zh-cn")
    root, other = finished.result.failures
    assert (root.rank, root.root_cause, _line(root)) == (1, True, "lock.acquire()")
    assert (other.rank, other.root_cause) == (0, False)
    assert _line(other) == "model(torch.randn(2, 4)).sum().backward()"
    assert "rank 0 在 stands_still.py" in root.message
    assert "backward(all_reduce)" in root.message
    states = [event for event in finished.events if event.kind == "ranks"]
    assert any(state.steps >= 3 for event in states for state in event.states)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux tells of processes")
@pytest.mark.long
@pytest.mark.parametrize("how", ["locked", "stopped"])
def test_a_rank_that_is_not_heard_any_more(
    run: StartRun, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(standing, "LONG_SECONDS", 12.0)
    finished = _hung(run, "not_heard.py", how)
    root, other = finished.result.failures
    assert (root.rank, root.root_cause, other.rank, other.root_cause) == (1, True, 0, False)
    assert "rank 1 has given no sign of life for" in root.message
    assert root.frames[-1].filename.endswith("not_heard.py")
    assert root.line is not None
    assert root.line >= 13, "seen last in the loop"
    assert _line(other) == "dist.all_reduce(torch.ones(4))"


@pytest.mark.parametrize(
    "kind",
    [each if each in SHORT else pytest.param(each, marks=pytest.mark.long) for each in KINDS],
)
def test_each_kind_of_collective(run: StartRun, kind: str) -> None:
    finished = _hung(run, "each_kind.py", kind)
    waits, receives = _of(finished, 0), _of(finished, 1)
    assert (waits.kind, receives.kind) == ("hang", "hang")
    name = "irecv" if kind == "batch_isend_irecv" else kind.split()[0]
    assert f"rank 0 waits in {name}" in waits.message
    assert "rank 1 waits in recv" in waits.message
    assert _line(receives) == "dist.recv(x, src=0)"


@pytest.mark.long
def test_a_collective_only_one_rank_calls(run: StartRun) -> None:
    finished = _hung(run, "guarded_barrier.py")
    assert _line(_of(finished, 0)) == "dist.barrier()"
    assert _line(_of(finished, 1)) == "dist.all_reduce(torch.ones(4))"
    assert "they took different branches at line 8" in _of(finished, 1).message
    assert _of(finished, 0).code == "RS401"


@pytest.mark.long
def test_the_same_calls_in_another_order(run: StartRun) -> None:
    finished = _hung(run, "different_order.py")
    assert {each.rank for each in finished.result.failures} == {0, 1}
    assert "all_reduce of group" in finished.root.message


@pytest.mark.long
def test_a_rank_that_has_ended(run: StartRun) -> None:
    finished = _hung(run, "ended_early.py")
    assert finished.root.rank == 0
    assert finished.blamed_line == 'dist.init_process_group("gloo")'
    assert "rank 1 ended" in finished.root.message


@pytest.mark.long
def test_a_rank_that_made_another_call_and_went_on(run: StartRun) -> None:
    finished = _hung(run, "passed_by.py")
    assert finished.root.rank == 1
    assert "rank 1 made another call in its place" in finished.root.message
    assert _of(finished, 0).root_cause is False


@pytest.mark.long
def test_a_rank_that_failed_and_does_not_end_is_explained_by_its_failure(run: StartRun) -> None:
    finished = _hung(run, "fails_and_stays.py")
    assert (finished.root.rank, finished.root.kind) == (1, "exception")
    assert finished.root.message == "ValueError: this rank cannot go on"


@pytest.mark.long
def test_a_hang_can_be_reported_and_kept(run: StartRun) -> None:
    finished = run(str(PROGRAMS / "different_branches.py"), timeout_seconds=35.0, on_hang="report")
    told = [event for event in finished.events if event.kind == "hang"]
    assert len(told) == 1
    assert "kept" in told[0].text
    assert len(told[0].failures) == 2
    assert finished.result.seconds > 34, "it went on until its own limit"
    assert finished.root.kind == "hang"
