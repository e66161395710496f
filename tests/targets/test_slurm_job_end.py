"""How Slurm says that a job ended, joined with what its ranks left, without a cluster."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ranksafe.localization import Translated
from ranksafe.runs.explain.deaths import deaths_of
from ranksafe.runs.explain.evidence import Evidence, RankEvidence
from ranksafe.runs.explain.job_end import FILE, load_job_end, with_job_end
from ranksafe.runs.explain.launcher_report import read_launcher
from ranksafe.runs.model import Failure, Frame

_OWN = ("NODE_FAIL", "PREEMPTED", "UNKNOWN")
_TEXT = Translated("a peer is lost", "失去对端")


def _ended(folder: Path, state: str, batch: str = "", log: str = "", **more: Any) -> list[Failure]:
    end = {"job": "12", "state": state, "nodes": ["gpu1", "gpu2"], **more}
    (folder / FILE).write_text(json.dumps(end))
    (folder / "batch.log").write_text(batch)
    (folder / "node.1.log").write_text(log)
    lost = replace(Failure.without_place("peer-lost", _TEXT, _TEXT, "en"), rank=0)
    vague = Failure.without_place("launcher", _TEXT, _TEXT, "en")
    return with_job_end(
        [lost] if state not in _OWN else [lost, vague], Evidence({}), load_job_end(folder), "en"
    )


@pytest.mark.parametrize(
    ("state", "batch", "log", "kind", "message"),
    [
        (
            "NODE_FAIL",
            "srun: error: Node failure on gpu2\nsrun: Job step aborted\n",
            "",
            "node-failure",
            "node gpu2 failed (job 12)",
        ),
        ("NODE_FAIL", "", "", "node-failure", "node gpu1, gpu2 failed (job 12)"),
        ("PREEMPTED", "", "", "preempted", "job 12 was preempted"),
        ("UNKNOWN", "", "", "run-lost", "Slurm does not know any more how job 12 ended"),
        (
            "FAILED",
            "/var/spool/slurmd/job12/slurm_script: 2: exec: /env/bin/python: not found\n",
            "",
            "not-on-the-node",
            "node gpu1 cannot use /env/bin/python: not found",
        ),
        (
            "FAILED",
            "/var/spool/slurmd/job12/slurm_script: line 2: /env/bin/python: No such file or directory\n",
            "",
            "not-on-the-node",
            "node gpu1 cannot use /env/bin/python: No such file or directory",
        ),
        (
            "FAILED",
            "",
            "ranksafe: node gpu2 cannot use /home/me/a: b: Permission denied\n",
            "not-on-the-node",
            "node gpu2 cannot use /home/me/a: b: Permission denied",
        ),
    ],
)
def test_what_slurm_did_comes_before_what_the_ranks_felt_of_it(
    tmp_path: Path, state: str, batch: str, log: str, kind: str, message: str
) -> None:
    own, lost = _ended(tmp_path, state, batch, log)
    assert (own.kind, own.message, own.root_cause) == (kind, message, True)
    assert not lost.root_cause


@pytest.mark.parametrize(
    ("kind", "rank", "blamed"),
    [
        ("peer-lost", 0, "node-failure"),
        ("killed", 1, "node-failure"),
        ("killed", 0, "killed"),
        ("exception", 0, "exception"),
    ],
)
def test_a_job_that_ended_before_its_node_was_missed_is_the_nodes_fault_unless_a_rank_has_its_own(
    tmp_path: Path, kind: str, rank: int, blamed: str
) -> None:
    end = {"job": "12", "state": "FAILED", "nodes": ["gpu1", "gpu2"], "down": ["gpu2"]}
    (tmp_path / FILE).write_text(json.dumps(end))
    frame = Frame("/p/train.py", 7, "work", "work()", in_user_code=True)
    ranks = {
        0: RankEvidence(0, host="gpu1", ended=True),
        1: RankEvidence(1, host="gpu2", beat=(frame,)),
    }
    felt = replace(Failure.without_place(kind, _TEXT, _TEXT, "en"), rank=rank)
    root, *others = with_job_end([felt], Evidence(ranks), load_job_end(tmp_path), "en")
    assert root.kind == blamed
    if blamed == "node-failure":
        assert (root.rank, root.line) == (1, 7)
        assert root.message == "node gpu2 failed (job 12), and with it rank 1"
        assert [each.rank for each in others] == ([0] if rank == 0 else [])
        assert not any(each.root_cause for each in others)


def test_a_rank_is_not_taken_for_the_first_one_of_another_node() -> None:
    report = read_launcher(
        "Root Cause (first observed failure):\n[0]:\n  time      : 2026-01-03_14:20:00\n"
        "  host      : gpu1\n  rank      : 0 (local_rank: 0)\n  exitcode  : 1 (pid: 4711)\n"
    )
    ranks = {0: RankEvidence(0, pid=4711), 1: RankEvidence(1, pid=4712, ended=True)}
    deaths = deaths_of(Evidence(ranks, returncode=1), report)
    assert [(death.exit, death.ending.value) for death in deaths] == [
        (1, "silent"),
        (0, "finished"),
    ]


def test_a_runs_folder_that_the_nodes_do_not_see_is_named(tmp_path: Path) -> None:
    own, _ = _ended(tmp_path, "FAILED", began=False, directory="/tmp/runs/1")
    assert own.message == "node gpu1 cannot use /tmp/runs/1: it is not there"


def test_a_time_limit_is_told_where_the_ranks_were(tmp_path: Path) -> None:
    (told,) = _ended(tmp_path, "TIMEOUT")
    assert told.root_cause
    assert told.explanation.en.startswith("Slurm ended the job at its time limit")


@pytest.mark.parametrize("state", ["FAILED", "COMPLETED", "OUT_OF_MEMORY"])
def test_other_ends_are_the_ranks_to_explain(tmp_path: Path, state: str) -> None:
    (told,) = _ended(tmp_path, state)
    assert (told.kind, told.root_cause) == ("peer-lost", True)
