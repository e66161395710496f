"""Failures of a rehearsal that come of what it refused or put in place, and what a second run decides about them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ranksafe.rehearsal.settings import Confirm, RehearsalOptions
from ranksafe.runs.model import Failure, Frame, Outcome, RunRequest, RunResult
from ranksafe.runs.rehearsals.confirmation import with_second_run
from ranksafe.runs.rehearsals.doubt import Doubt, standings
from ranksafe.runs.rehearsals.second_run import second_run
from ranksafe.runs.rehearsals.verdict import Verdict

from .test_rehearsed import RunFolder, _raised


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path, offline=True)


def _touch(kind: str, how: str = "line") -> dict[str, Any]:
    return {
        "number": 0,
        "kind": kind,
        "what": "x",
        "how": how,
        "message": {"en": f"the {kind} of ours", "zh_cn": f"我们的 {kind}"},
        "places": [{"file": "/home/user/train.py", "line": 3}],
    }


def _judged(
    folder: RunFolder, error: str, *touches: dict[str, Any], source: str = "f(x)"
) -> Verdict:
    kind, _, message = error.partition(": ")
    raised = _raised(kind, message)
    raised["exception"]["frames"][0]["source"] = source
    folder.rank(0, raised)
    folder.journal({"event": "uncaught", "type": kind, "rank": 0, "touches": touches, "time": 2.0})
    return folder.verdict()


@pytest.mark.parametrize(
    ("error", "touches", "outcome"),
    [
        ("KeyError: 'label'", ["dataset"], Outcome.SIMULATION_LIMIT),
        ("ValueError: too little data", ["dataset"], Outcome.SIMULATION_LIMIT),
        ("RuntimeError: mat1 and mat2 shapes cannot be multiplied", ["model"], Outcome.SIMULATION_LIMIT),
        ("ValueError: too little data", ["pictures"], Outcome.SIMULATION_LIMIT),
        ("RuntimeError: Given groups=1, weight of size [32, 3, 3, 3], expected input[64, 1, 28, 28] to have 3 channels, "
         "but got 1 channels instead", ["pictures"], Outcome.FAILED),
        ("RuntimeError: Given groups=1, weight of size [32, 3, 3, 3], expected input[64, 1, 28, 28] to have 3 channels, "
         "but got 1 channels instead", ["pictures", "dataset"], Outcome.SIMULATION_LIMIT),
        ("TypeError: 'NoneType' object is not iterable", ["network"], Outcome.SIMULATION_LIMIT),
        ("NameError: name 'data' is not defined", ["network"], Outcome.SIMULATION_LIMIT),
        ("AttributeError: 'Rows' object has no attribute 'classes'", ["dataset"], Outcome.SIMULATION_LIMIT),
        ("KeyError: 'label'", [], Outcome.FAILED),
        ("NameError: name 'lenght' is not defined", ["dataset", "model"], Outcome.FAILED),
        ("AttributeError: 'BertModel' object has no attribute 'bort'", ["model"], Outcome.FAILED),
        ("TypeError: forward() got an unexpected keyword argument 'y'", ["model", "dataset"], Outcome.FAILED),
        ("RuntimeError: Expected all tensors to be on the same device, but found", ["model"], Outcome.FAILED),
        ("RuntimeError: Expected to have finished reduction in the prior", ["model"], Outcome.FAILED),
        ("ValueError: Default process group has not been initialized", ["model"], Outcome.FAILED),
        ("ValueError: Tensor list input must have one tensor per rank", ["model"], Outcome.FAILED),
        ("OutOfMemoryError: CUDA out of memory. Tried to allocate", ["model"], Outcome.FAILED),
    ],
)  # fmt: skip
def test_a_failure_is_in_doubt_where_its_kind_can_come_of_what_it_touches(
    folder: RunFolder, error: str, touches: list[str], outcome: Outcome
) -> None:
    verdict = _judged(folder, error, *map(_touch, touches))
    assert verdict.outcome is outcome
    assert (verdict.doubt is not None) is (outcome is Outcome.SIMULATION_LIMIT)


def test_the_limit_names_what_it_comes_of_and_where_the_script_met_it(folder: RunFolder) -> None:
    limit = _judged(
        folder, "IndexError: list index out of range", _touch("dataset")
    ).simulation_limit
    assert limit is not None
    assert (limit.kind, limit.line, limit.message[:10]) == ("stand-in", 5, "IndexError")
    assert "(train.py:3): the dataset of ours" in limit.explanation.en


def test_a_line_that_computes_with_the_ranks_is_accused_until_a_second_run_says_otherwise(
    folder: RunFolder,
) -> None:
    source = "assert len(rows) % world_size == 0"
    verdict = _judged(folder, "AssertionError: ", _touch("dataset"), source=source)
    assert verdict.outcome is Outcome.FAILED
    assert verdict.doubt is not None


def test_a_rank_that_gave_up_over_a_refusal_is_a_limit(folder: RunFolder) -> None:
    asked = {"status": 1, "frames": [{"file": "/home/user/train.py", "line": 5, "function": "f"}]}
    folder.rank(0, {"event": "exit", "clean": False, "asked": asked, "time": 3.0})
    touches = [_touch("network", how="chain")]
    folder.journal({"event": "uncaught", "type": "SystemExit", "rank": 0, "touches": touches})
    verdict = folder.verdict()
    assert verdict.simulation_limit is not None
    assert (verdict.simulation_limit.kind, verdict.simulation_limit.line) == ("refused", 5)


def test_every_standing_says_why() -> None:
    assert all(each.reason for each in standings())
    assert standings()[-1].pattern.pattern == ""


def _verdict_in_doubt(folder: RunFolder) -> Verdict:
    return _judged(folder, "KeyError: 'label'", _touch("dataset"))


def _second(outcome: Outcome, *failures: Failure) -> RunResult:
    return RunResult(
        "second", outcome, "simulated:1", (), (), (), (), tuple(failures), 1.0, None, None
    )


def test_what_one_process_shows_too_is_a_limit_and_does_not_concern_several_gpus(
    folder: RunFolder,
) -> None:
    verdict = _verdict_in_doubt(folder)
    assert verdict.doubt is not None
    told = with_second_run(verdict, verdict.doubt, _second(Outcome.FAILED, verdict.doubt.failure))
    assert told.outcome is Outcome.SIMULATION_LIMIT
    assert told.simulation_limit is not None
    assert "does not concern several GPUs" in told.simulation_limit.explanation.en


def test_what_one_process_passes_is_the_scripts(folder: RunFolder) -> None:
    verdict = _verdict_in_doubt(folder)
    assert verdict.doubt is not None
    told = with_second_run(verdict, verdict.doubt, _second(Outcome.SUCCEEDED))
    assert (told.outcome, told.simulation_limit) == (Outcome.FAILED, None)
    assert (told.failures[0].line, told.failures[0].root_cause) == (5, True)
    assert "takes several GPUs" in told.failures[0].explanation.en


_ELSEWHERE = Frame("/env/site-packages/transformers/trainer_seq2seq.py", 300, "_pad")


@pytest.mark.parametrize(
    "change",
    [
        {"line": 9},
        {"message": "ValueError: other"},
        {"message": "KeyError: 'of another check'", "frames": (_ELSEWHERE,)},
    ],
)
def test_another_failure_of_one_process_decides_nothing(
    folder: RunFolder, change: dict[str, Any]
) -> None:
    verdict = _verdict_in_doubt(folder)
    assert verdict.doubt is not None
    other = replace(verdict.doubt.failure, **change)
    told = with_second_run(verdict, verdict.doubt, _second(Outcome.FAILED, other))
    assert (told.outcome, told.failures) == (verdict.outcome, verdict.failures)
    assert told.simulation_limit is not None
    assert "is not known" in told.simulation_limit.explanation.en
    assert with_second_run(verdict, verdict.doubt, None) == verdict


@pytest.mark.parametrize(
    "change", [{"message": "KeyError: 'of 1 rank'"}, {"frames": (_ELSEWHERE,)}]
)
def test_the_same_failure_may_have_other_numbers_or_come_through_another_layer(
    folder: RunFolder, change: dict[str, Any]
) -> None:
    verdict = _verdict_in_doubt(folder)
    assert verdict.doubt is not None
    same = replace(verdict.doubt.failure, **change)
    told = with_second_run(verdict, verdict.doubt, _second(Outcome.FAILED, same))
    assert told.simulation_limit is not None
    assert "does not concern several GPUs" in told.simulation_limit.explanation.en


def test_the_same_on_the_cpu_is_told_of_a_failure_that_touches_nothing(folder: RunFolder) -> None:
    verdict = _judged(folder, "KeyError: 'label'")
    doubt = Doubt(tuple(verdict.failures), (), is_certain=False)
    told = with_second_run(verdict, doubt, _second(Outcome.FAILED, verdict.failures[0]))
    assert told.outcome is Outcome.FAILED
    assert "on the CPU without simulated GPUs" in told.failures[0].explanation.en


def _request(confirm: Confirm, timeout: float | None = None) -> RunRequest:
    options = RehearsalOptions(nodes=2, confirm=confirm)
    return RunRequest(Path("train.py"), "simulated:4", timeout_seconds=timeout, rehearsal=options)


def test_the_second_run_is_one_process_and_takes_no_longer_than_twice_the_first(
    folder: RunFolder,
) -> None:
    verdict = _verdict_in_doubt(folder)
    wanted = second_run(_request(Confirm.AUTO, timeout=100.0), verdict, 30.0)
    assert wanted is not None
    assert (wanted.request.target, wanted.request.rehearsal.nodes) == ("simulated:1", 1)
    assert wanted.request.rehearsal.confirm is Confirm.OFF
    assert wanted.request.timeout_seconds == 60.0
    assert "CUDA_VISIBLE_DEVICES" not in wanted.request.environment
    late = second_run(_request(Confirm.AUTO, timeout=100.0), verdict, 80.0)
    assert late is not None
    assert late.request.timeout_seconds == 20.0
    assert second_run(_request(Confirm.AUTO, timeout=100.0), verdict, 101.0) is None
    assert second_run(_request(Confirm.OFF), verdict, 30.0) is None


def test_what_follows_from_a_refusal_is_not_run_again(folder: RunFolder) -> None:
    error = "TypeError: 'NoneType' object is not iterable"
    assert (
        second_run(_request(Confirm.ALWAYS), _judged(folder, error, _touch("network")), 9.0) is None
    )


def test_a_failure_without_doubt_runs_again_only_if_that_is_always_wanted(
    folder: RunFolder,
) -> None:
    verdict = _judged(folder, "KeyError: 'label'")
    assert second_run(_request(Confirm.AUTO), verdict, 30.0) is None
    wanted = second_run(_request(Confirm.ALWAYS), verdict, 30.0)
    assert wanted is not None
    assert wanted.request.environment["CUDA_VISIBLE_DEVICES"] == ""


def test_a_caught_error_that_a_rank_printed_last_is_not_the_verdict(folder: RunFolder) -> None:
    folder.rank(0, {"event": "exit", "clean": True, "asked": None, "time": 1.5})
    caught = 'Traceback (most recent call last):\n  File "/home/user/train.py", line 2, in f\nOSError: no news\n'
    (folder.path / "rank0.stderr").write_text(caught)
    folder.rank(1, _raised("KeyError", "'label'"))
    failures = folder.verdict().failures
    assert [(each.rank, each.message) for each in failures] == [(1, "KeyError: 'label'")]
