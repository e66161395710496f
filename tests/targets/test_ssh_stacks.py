"""``ranksafe stacks`` for runs on a host behind ssh: its ranks answer, with files and lines of here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ranksafe.cli.main import main
from ranksafe.runs.attach import attach, waiting_runs
from ranksafe.runs.model import Outcome
from ranksafe.runs.remote.record import write_record
from ranksafe.runs.start import Run

from .far_host import Far, until
from .test_remote_record import RUN

_SLEEPS = """\
import pathlib, time

def wait():
    while not pathlib.Path("go").exists():
        time.sleep(0.1)

print("started", flush=True)
wait()
raise ValueError("in the end")
"""


def _started(far: Far) -> Run:
    run = far.start(far.write("train.py", _SLEEPS))
    until(lambda: "started" in far.said("output"))
    until(lambda: list((far.cache / "runs" / run.run_id).glob("rank0.beat")) != [])
    return run


def _stacks(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any, str]:
    capsys.readouterr()
    status = main(["stacks", "--output-format", "json", *arguments])
    told = capsys.readouterr()
    return status, json.loads(told.out) if told.out else None, told.err


def _places(answer: Any) -> set[tuple[str, int]]:
    frames = [frame for rank in answer["ranks"] for frame in rank["threads"][0]["frames"]]
    return {(frame["filename"], frame["line"]) for frame in frames}


def _let_go(far: Far) -> None:
    folder = next((far.base / "projects").glob("*/my project"))
    (folder / "go").touch()


@pytest.mark.long
def test_ranks_of_a_run_that_is_followed(far: Far, capsys: pytest.CaptureFixture[str]) -> None:
    run = _started(far)
    script = str(far.project / "train.py")
    left_long_ago = far.cache / "runs" / "20000101-000000-aaaaaa"
    left_long_ago.mkdir()
    write_record(RUN, left_long_ago)
    status, answer, _ = _stacks(capsys)
    assert status == 0
    assert answer["ranks"][0]["answered"]
    assert (script, 8) in _places(answer), answer
    Path(script).write_text("# edited\n\n" + _SLEEPS)
    status, answer, said = _stacks(capsys, run.run_id)
    assert (script, 10) in _places(answer), answer
    assert "train.py was edited" in said
    far.cut_off()
    until(lambda: any("is lost" in each for each in far.said("status")))
    status, answer, said = _stacks(capsys)
    assert status == 0
    assert "host is not reached since" in said
    assert not answer["ranks"][0]["answered"]
    assert (script, 10) in _places(answer), answer
    far.connect()
    _let_go(far)
    result = run.wait(60)
    assert result is not None
    assert (result.failures[0].message, result.failures[0].line) == ("ValueError: in the end", 11)


def test_ranks_of_a_run_that_nobody_follows(far: Far, capsys: pytest.CaptureFixture[str]) -> None:
    far.settle("patience-minutes = 0.02")
    run = _started(far)
    far.cut_off()
    assert run.wait(60) is not None
    status, _, said = _stacks(capsys)
    assert status == 2
    assert "No connection to gpu-box" in said
    far.connect()
    status, answer, _ = _stacks(capsys)
    assert status == 0
    assert answer["ranks"][0]["answered"]
    assert (str(far.project / "train.py"), 8) in _places(answer), answer
    assert waiting_runs() == [run.run_id]
    _let_go(far)
    until(lambda: far.report(run.run_id).get("status") == "exited")
    status, _, said = _stacks(capsys)
    assert status == 2
    assert f"has ended: `ranksafe attach {run.run_id}`" in said
    result = attach(None, [].append).wait(60)
    assert result is not None
    assert result.outcome is Outcome.FAILED
    assert result.failures[0].message == "ValueError: in the end"
