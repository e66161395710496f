"""What ``ranksafe rehearse`` understands, and what it tells GitHub."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest
from ranksafe.cli import rehearse, run
from ranksafe.cli.argument_types import size
from ranksafe.cli.output import run_as_github
from ranksafe.cli.run_options import request_of
from ranksafe.localization import Translated
from ranksafe.rehearsal.settings import Isolation, Shrink
from ranksafe.runs.model import Failure, Outcome, RunRequest, RunResult

from .conftest import Call


def _request(*words: str) -> RunRequest:
    parser = argparse.ArgumentParser()
    rehearse.add_arguments(parser, "en")
    arguments = parser.parse_args(words)
    return request_of(arguments, "en", target=f"simulated:{arguments.gpus}", gpus=None)


def test_a_rehearsal_runs_to_the_end_over_short_epochs_on_two_devices_unless_more_is_said() -> None:
    request = _request("train.py")
    assert (request.target, request.steps, request.launcher) == ("simulated:2", None, None)
    assert request.rehearsal.short_epochs
    assert request.rehearsal.shrink is Shrink.AUTO
    assert request.rehearsal.isolation is Isolation.AUTO


def test_everything_can_be_chosen() -> None:
    request = _request(
        "train.py", "--gpus", "4", "--nodes", "2", "--device-model", "rtx4090", "--gpu-memory", "24GiB",
        "--steps", "0", "--shrink", "on", "--isolation", "required", "--launcher", "python",
        "--timeout", "60", "--", "--gpus", "9",
    )  # fmt: skip
    options = request.rehearsal
    assert not options.short_epochs
    assert (request.target, request.steps, request.launcher) == ("simulated:4", None, "python")
    assert (options.nodes, options.device_model, options.memory_bytes) == (2, "rtx4090", 24 * 2**30)
    assert (options.shrink, options.isolation) == (Shrink.ON, Isolation.REQUIRED)
    assert request.arguments == ("--gpus", "9")


def test_a_number_of_steps_cuts_no_epoch() -> None:
    request = _request("train.py", "--steps", "3")
    assert (request.steps, request.rehearsal.short_epochs) == (3, False)


def test_run_takes_the_same_choices() -> None:
    parser = argparse.ArgumentParser()
    run.add_arguments(parser, "en")
    words = ["t.py", "--target", "simulated:3", "--shrink", "off", "--launcher", "torchrun"]
    arguments = parser.parse_args(words)
    request = request_of(arguments, "en", target=arguments.target, gpus=arguments.gpus)
    assert (request.target, request.steps, request.launcher) == ("simulated:3", None, "torchrun")
    assert request.rehearsal.shrink is Shrink.OFF


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("24GiB", 24 * 2**30),
        ("512 MiB", 2**29),
        ("1.5g", 3 * 2**29),
        ("80GB", 80 * 2**30),
        ("7", 7),
    ],
)
def test_sizes_are_those_of_gpus(text: str, expected: int) -> None:
    assert size(text) == expected


@pytest.mark.parametrize("text", ["", "much", "-1GiB", "0", "12QiB"])
def test_other_sizes_are_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        size(text)


def test_words_it_does_not_know_are_used_wrongly(call: Call) -> None:
    for words in (["--shrink", "much"], ["--gpus", "0"], ["--launcher", "slurm"]):
        assert call("rehearse", "train.py", *words).status == 2


def test_a_rehearsal_that_cannot_start_is_an_annotation_too(call: Call, project: Path) -> None:
    answer = call("rehearse", "train.py", "--python", "gone/python", "--output-format", "github")
    assert answer.status == 2
    assert answer.out.startswith("::error title=ranksafe%3A not started::")
    assert "gone/python" in answer.out


def test_the_help_is_in_both_languages(call: Call) -> None:
    assert "simulated GPU" in call("rehearse", "--help").out
    assert "模拟 GPU" in call("rehearse", "--help", "--lang", "zh-cn").out


def _failure(root: Path, **more: object) -> Failure:
    fields: dict[str, object] = {
        "kind": "data-parallel-zero-dim-scatter",
        "code": "RS501",
        "rank": 0,
        "message": "RuntimeError: 100 %\nsecond line",
        "filename": str(root / "src" / "train, me.py"),
        "line": 12,
        "column": 5,
        "end_line": 12,
        "end_column": 20,
        "frames": (),
        "explanation": Translated("It means this.", "含义如下。"),
    }
    return Failure(**{**fields, **more})  # type: ignore[arg-type]


def _result(outcome: Outcome, *failures: Failure, limit: Failure | None = None) -> RunResult:
    return RunResult(
        run_id="r", outcome=outcome, target="simulated:2", command=(), modified=("2 simulated GPUs", "shrunk"),
        limits=("no speed",), ranks=(), failures=failures, seconds=1.0, log=None, run_directory=None,
        simulation_limit=limit,
    )  # fmt: skip


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    return tmp_path


def test_failures_become_annotations_of_the_changed_files(checkout: Path) -> None:
    second = _failure(checkout, code=None, rank=None, root_cause=False, filename=None, line=None)
    told = run_as_github.render(_result(Outcome.FAILED, _failure(checkout), second), "en")
    error, warning, devices, missing = told.splitlines()
    assert error == (
        "::error title=ranksafe (RS501),file=src/train%2C me.py,line=12,col=5,endLine=12,endColumn=20"
        "::rank 0: RuntimeError: 100 %25%0Asecond line%0AIt means this."
    )
    assert warning.startswith("::warning title=ranksafe::RuntimeError")
    assert devices.endswith("::2 simulated GPUs%0Ashrunk")
    assert devices.startswith("::notice ")
    assert missing.endswith("::no speed")


def test_a_limit_is_a_notice_and_no_error(checkout: Path) -> None:
    limit = _failure(checkout, kind="missing-kernel", code=None)
    told = run_as_github.render(_result(Outcome.SIMULATION_LIMIT, limit=limit), "zh-cn")
    assert "::error" not in told
    assert told.startswith("::notice title=ranksafe%3A 模拟的限制,file=src/train%2C me.py,line=12")
