"""What is told of a failure before the run has ended: soon, and never anything that the end takes back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from ranksafe.runs import supervisor
from ranksafe.runs.explain import explain
from ranksafe.runs.explain.evidence import Evidence, Raised, RankEvidence
from ranksafe.runs.explain.going_on import without_the_living
from ranksafe.runs.explain.locate import UserCode
from ranksafe.runs.model import Failure, Frame

from .conftest import StartRun

SCRIPT = "rank_one_fails.py"
USER_CODE = UserCode([Path("/home/user")], Path("/home/user"))
LOST = "Connection closed by peer [127.0.0.1]:3000"

can_watch = pytest.mark.skipif(
    not hasattr(os, "pidfd_open"), reason="needs Linux 5.3 and Python 3.9"
)


@pytest.mark.torch
@can_watch
@pytest.mark.parametrize(
    "mode",
    [
        "raise",
        *(
            pytest.param(each, marks=pytest.mark.long)
            for each in ("kill", "os-exit", "exit", "chained", "worker")
        ),
    ],
)
def test_the_cause_is_told_before_the_end_and_stays_the_cause(run: StartRun, mode: str) -> None:
    finished = run(SCRIPT, mode)
    (event,) = [each for each in finished.events if each.kind == "first-failure"]
    (told,) = event.failures
    root = finished.root
    assert (told.rank, told.kind, told.code) == (root.rank, root.kind, root.code)
    assert (told.filename, told.line, told.message) == (root.filename, root.line, root.message)
    assert event.seconds < finished.result.seconds
    # Rank 0 might have met the same yet.
    assert "Only this one" not in told.explanation.en


@pytest.mark.torch
@pytest.mark.long
def test_of_a_rank_that_only_left_early_nothing_is_told_before_the_end(run: StartRun) -> None:
    finished = run(SCRIPT, "leave")
    assert [each for each in finished.events if each.kind == "first-failure"] == []
    assert finished.root.kind == "rank-left-early"


def _rank(number: int, text: str = "", at: float = 1.0, *, gone: bool = False) -> RankEvidence:
    rank = RankEvidence(number, pid=100 + number, started=0.0, watched=True, gone=gone)
    if text:
        kind, _, message = text.partition(": ")
        frame = Frame("/home/user/train.py", 7 + number, "train")
        rank.raised, rank.raised_at = Raised(kind, message, (frame,)), at
    return rank


def _told(*ranks: RankEvidence, expected: int = 2) -> list[Failure]:
    evidence = Evidence({rank.rank: rank for rank in ranks}, expected_ranks=expected)
    without_the_living(evidence)
    return explain(evidence, USER_CODE)[0]


def test_an_exception_that_ended_its_rank_is_told_while_the_others_live() -> None:
    (failure,) = _told(_rank(0), _rank(1, "ValueError: here", gone=True))
    assert (failure.rank, failure.line) == (1, 8)
    assert "Only this one" not in failure.explanation.en
    # After the exit handlers only Python's teardown is left, which may take seconds.
    leaving = _rank(1, "ValueError: here")
    leaving.ended = True
    assert [each.rank for each in _told(_rank(0), leaving)] == [1]


def test_a_lost_connection_alone_is_told_by_nobody() -> None:
    assert _told(_rank(0, f"RuntimeError: {LOST}", gone=True), _rank(1)) == []


def test_a_killed_rank_is_told_though_its_peer_spoke_first() -> None:
    peer = _rank(0, f"RuntimeError: {LOST}", at=0.5, gone=True)
    killed = _rank(1, gone=True)
    killed.exit = -9
    assert [(each.rank, each.kind) for each in _told(peer, killed)] == [
        (1, "killed"),
        (0, "peer-lost"),
    ]


def test_nothing_is_told_while_a_rank_may_be_the_cause_that_is_not_known() -> None:
    raised = _rank(0, "ValueError: maybe because of the other", gone=True)
    # Its launcher collected it first and keeps its status until the report.
    assert _told(raised, _rank(1, gone=True)) == []
    assert _told(raised) == []
    unwatched = _rank(1)
    unwatched.watched = False
    assert _told(raised, unwatched) == []
    # It raised earlier and has not gone yet.
    assert _told(raised, _rank(1, "KeyError: 'first'", at=0.5)) == []


def test_what_a_living_rank_handled_or_may_catch_is_not_told() -> None:
    handled, leaving = _rank(0), _rank(1)
    handled.errors = 'Traceback (most recent call last):\n  File "t.py", line 1, in f\nKeyError: 1'
    handled.thread_errors = [Raised("KeyError", "1", ())]
    leaving.asked_exit = 3
    assert _told(handled, leaving) == []
    # Nor does it keep another from being told of.
    assert [each.rank for each in _told(handled, _rank(1, "ValueError: here", 2.0, gone=True))] == [
        1
    ]
    caught = _rank(1, gone=True)
    caught.asked_exit, caught.exit, caught.ended = 3, 0, True
    assert _told(_rank(0), caught) == []


_CHILDREN = """
import json, os, pathlib, signal, subprocess, sys, time
folder = pathlib.Path(sys.argv[1])
ends = {
    0: "sys.exit(0)", 1: "os._exit(3)", 2: "os.kill(os.getpid(), 9)", 3: "raise ValueError", 4: "time.sleep(600)",
}
go = folder / "go"
wait = f"import os, pathlib, sys, time\\nwhile not pathlib.Path({str(go)!r}).exists(): time.sleep(0.01)\\n"
ranks = [subprocess.Popen([sys.executable, "-c", wait + end], stderr=-3) for end in ends.values()]
for number, rank in enumerate(ranks):
    (folder / f"rank{number}.jsonl").write_text(json.dumps({"event": "start", "pid": rank.pid}) + "\\n")
# Somebody who is not below the supervisor, as seen from another namespace of processes.
(folder / "rank5.jsonl").write_text(json.dumps({"event": "start", "pid": 1}) + "\\n")
while (folder / "launcher.jsonl").read_text().count("watched") < 5 if (folder / "launcher.jsonl").exists() else True:
    time.sleep(0.01)
go.touch()
while (folder / "launcher.jsonl").read_text().count("ended") < 4:
    time.sleep(0.01)
"""


@can_watch
def test_the_supervisor_notes_how_a_rank_ended_before_anybody_collects_it(tmp_path: Path) -> None:
    specification = {
        "command": [sys.executable, "-c", _CHILDREN, str(tmp_path)],
        "directory": str(tmp_path),
        "environment": {},
        "working_directory": str(tmp_path),
        "grace_seconds": 1.0,
    }
    with subprocess.Popen(
        [sys.executable, "-I", supervisor.__file__], stdin=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        process.stdin.write(json.dumps(specification).encode() + b"\n")
        process.stdin.flush()
        assert process.wait(60) == 0
    pids = {
        json.loads(path.read_text())["pid"]: int(path.stem.removeprefix("rank"))
        for path in tmp_path.glob("rank*.jsonl")
    }
    lines = [json.loads(line) for line in (tmp_path / "launcher.jsonl").read_text().splitlines()]
    assert {pids[each["pid"]] for each in lines} == {0, 1, 2, 3, 4}
    # The one that slept was ended by the supervisor: no end of its own.
    ends = {pids[each["pid"]]: each["status"] for each in lines if each["event"] == "rank-ended"}
    assert ends == {0: 0, 1: 3, 2: -9, 3: 1}
