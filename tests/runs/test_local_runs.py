"""Runs of two CPU ranks, started through accelerate or torchrun as for a user."""

from __future__ import annotations

from pathlib import Path

import pytest
from ranksafe.runs.model import Outcome
from ranksafe.runs.serialize import to_json

from .conftest import StartRun

pytestmark = pytest.mark.torch

SCRIPT = "rank_one_fails.py"


def test_an_exception_on_one_rank_is_the_cause_and_the_lost_peer_is_not(run: StartRun) -> None:
    finished = run(SCRIPT, "raise")
    assert finished.result.outcome is Outcome.FAILED
    assert (finished.root.rank, finished.root.root_cause) == (1, True)
    assert finished.root.message == "ValueError: this rank cannot go on"
    assert finished.blamed_line == 'raise ValueError("this rank cannot go on")'
    assert [frame.function for frame in finished.root.frames] == [
        "<module>",
        "main",
        "end_in_the_way",
    ]
    assert all(frame.in_user_code for frame in finished.root.frames)
    assert all(not failure.root_cause for failure in finished.result.failures[1:])
    assert {rank.rank: rank.exit for rank in finished.result.ranks}[1] == 1


def test_output_is_kept_apart_by_rank(run: StartRun) -> None:
    finished = run(SCRIPT, "raise")
    assert finished.output_of(0)[0] == "met"
    assert finished.output_of(1)[0] == "met"
    assert any("this rank cannot go on" in line for line in finished.output_of(1))
    assert not any("this rank cannot go on" in line for line in finished.output_of(0))
    assert finished.result.log is not None
    log = finished.result.log.read_text(encoding="utf-8").splitlines()
    assert "[rank 0] met" in log
    assert all(line.startswith(("[rank 0] ", "[rank 1] ", "[launcher] ")) for line in log)
    assert finished.result.log.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("mode", "kind", "message", "line"),
    [
        pytest.param(
            *("os-exit", "exit-status", "ended with exit status 7 (os._exit)", "os._exit(7)"),
            marks=pytest.mark.long,
        ),
        pytest.param(
            *("exit", "exit-status", "ended with exit status 3 (sys.exit)", "sys.exit(3)"),
            marks=pytest.mark.long,
        ),
        ("kill", "killed", "killed by SIGKILL", "time.sleep(3)  # time for a heartbeat"),
    ],
)
def test_a_rank_that_dies_without_a_word_outranks_its_peers(
    run: StartRun, mode: str, kind: str, message: str, line: str
) -> None:
    finished = run(SCRIPT, mode)
    assert finished.result.outcome is Outcome.FAILED
    assert (finished.root.rank, finished.root.kind, finished.root.message) == (1, kind, message)
    assert finished.blamed_line == line


@pytest.mark.long
def test_a_chained_exception_is_drawn_where_it_began(run: StartRun) -> None:
    finished = run(SCRIPT, "chained")
    assert (
        finished.root.message == "RuntimeError: cannot load sample 3 (caused by KeyError: 'label')"
    )
    assert finished.blamed_line == 'return {"text": index}["label"]'
    assert [frame.function for frame in finished.root.frames] == [
        "<module>",
        "main",
        "end_in_the_way",
        "load",
    ]


def test_a_dataloader_workers_traceback_is_unfolded(run: StartRun) -> None:
    finished = run(SCRIPT, "worker")
    assert finished.root.message == "KeyError: 'label' [DataLoader worker process 0]"
    assert finished.blamed_line == 'return {"text": index}["label"]'
    assert finished.root.frames[-1].function == "__getitem__"


def test_a_rank_that_leaves_early_is_the_cause(run: StartRun) -> None:
    finished = run(SCRIPT, "leave")
    assert (finished.root.kind, finished.root.rank) == ("rank-left-early", 1)
    assert finished.blamed_line == "dist.all_reduce(torch.ones(4))"


@pytest.mark.long
def test_a_crash_of_a_process_whose_script_had_ended_is_not_the_cause(run: StartRun) -> None:
    finished = run(SCRIPT, "leave-crashing")
    assert (finished.root.kind, finished.root.rank) == ("rank-left-early", 1)
    assert finished.blamed_line == "dist.all_reduce(torch.ones(4))"
    assert "compiled code crashed in its process (SIGABRT)" in finished.root.explanation.en
    assert finished.result.ranks[1].outcome == "failed"


@pytest.mark.long
def test_a_rank_that_is_stopped_in_its_teardown_had_left_early(run: StartRun) -> None:
    finished = run(SCRIPT, "leave-slowly")
    assert (finished.root.kind, finished.root.rank) == ("rank-left-early", 1)
    assert "crashed" not in finished.root.explanation.en
    assert finished.result.ranks[1].outcome == "stopped"


def test_a_time_limit_ends_a_hang(run: StartRun) -> None:
    finished = run(SCRIPT, "hang", timeout_seconds=15.0)
    assert finished.result.outcome is Outcome.FAILED
    assert finished.root.kind == "time-limit"


@pytest.mark.long
def test_what_a_rank_had_raised_is_the_reason_though_the_time_is_over(run: StartRun) -> None:
    finished = run("raises_and_stays.py", timeout_seconds=15.0, on_hang="report")
    assert finished.result.outcome is Outcome.FAILED
    assert (finished.root.rank, finished.root.message) == (1, "ValueError: the reason")


def test_a_smoke_run_of_a_plain_loop_stops_on_every_rank_after_the_same_step(
    run: StartRun, tmp_path: Path
) -> None:
    left_behind = tmp_path / "after-training"
    finished = run("ddp_loop.py", str(left_behind), steps=2)
    assert finished.result.outcome is Outcome.SUCCEEDED
    for rank in (0, 1):
        steps = [line for line in finished.output_of(rank) if line.startswith("step")]
        assert steps == ["step 1", "step 2"]
    assert [rank.outcome for rank in finished.result.ranks] == ["succeeded", "succeeded"]
    assert not left_behind.exists()
    assert "2" in finished.result.modified[0]
    assert [event.text for event in finished.events if event.kind == "step"] == [
        "optimizer step 1 of 2",
        "optimizer step 2 of 2",
    ]


@pytest.mark.long
def test_a_smoke_run_of_the_trainer_ends_through_its_own_control(
    run: StartRun, tmp_path: Path
) -> None:
    finished = run("tiny_trainer.py", str(tmp_path / "output"), steps=2)
    assert finished.result.outcome is Outcome.SUCCEEDED, finished.result.failures
    assert any("train_runtime" in line for line in finished.output_of(0))
    assert not (tmp_path / "output" / "after-training").exists()
    assert not list((tmp_path / "output").glob("checkpoint-*"))


def test_ranks_that_train_alone_are_a_silent_failure(run: StartRun) -> None:
    finished = run("alone.py")
    assert finished.result.outcome is Outcome.SILENT_FAILURE
    assert finished.root.kind == "unconnected-ranks"
    assert to_json(finished.result, "zh-cn")["failures"][0]["explanation"].endswith("包装模型。")


@pytest.mark.long
def test_parameters_without_a_part_in_the_loss_are_named(run: StartRun) -> None:
    root = run("nameless_parameters.py").root
    assert root.kind == "unused-parameters"
    assert "Parameter indices which did not receive grad" in root.message
    names = "head.weight, head.bias"
    assert f"Parameters which did not receive grad for rank {root.rank}: {names}" in root.message
    assert root.explanation.en.startswith(f"On rank {root.rank} {names} had no part in the loss")
