"""Comparisons whose occasions are hard to bring about with real ranks: who was late, and who was lost."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from ranksafe.runs.compared_ranks.comparisons import compare_ranks
from ranksafe.runs.explain.collective_order import RECORD
from ranksafe.runs.explain.evidence import Evidence, load_evidence

START: dict[str, Any] = {
    "event": "start",
    "local_rank": 0,
    "world_size": 2,
    "host": "one",
    "pid": 1,
    "time": 1000.0,
}
PLACE = [{"file": "train.py", "line": 3, "function": "main", "source": ""}]


def left_behind(
    folder: Path,
    rank: int,
    calls: Sequence[tuple[str, float]] = (),
    events: Sequence[Mapping[str, Any]] = (),
    host: str = "one",
) -> None:
    """Write what a rank leaves: a journal, and a ring with its calls (name and time) in the group of two."""
    names = sorted({name for name, _ in calls})
    tables: list[dict[str, Any]] = [
        {"table": "group", "number": 1, "value": {"name": "0", "ranks": [0, 1]}},
        {"table": "place", "number": 1, "value": PLACE},
        *({"table": "call", "number": n, "value": name} for n, name in enumerate(names, 1)),
    ]
    journal = [
        {**START, "host": host},
        *({"event": "collective-name", **t} for t in tables),
        *events,
    ]
    (folder / f"rank{rank}.jsonl").write_text("".join(json.dumps(each) + "\n" for each in journal))
    (folder / f"rank{rank}.beat").write_text(json.dumps({"time": 1100.0, "frames": PLACE}))
    ring = b"".join(
        RECORD.pack(number, number, 1, names.index(name) + 1, 1, time)
        for number, (name, time) in enumerate(calls, 1)
    )
    (folder / f"rank{rank}.collectives").write_bytes(ring + bytes(RECORD.size))


def compared(folder: Path, status: str = "exited", returncode: int = 0) -> Evidence:
    evidence = load_evidence(folder, 2)
    evidence.status, evidence.returncode = status, returncode
    compare_ranks(folder, evidence)
    return evidence


def kinds(evidence: Evidence) -> list[str]:
    return [each.kind for rank in evidence.ranks.values() for each in rank.suspicions]


@pytest.mark.parametrize(("made_at", "found"), [(1050.0, ["collective-mismatch"]), (1095.0, [])])
def test_a_call_counts_as_missing_only_after_a_while_when_time_is_over(
    tmp_path: Path, made_at: float, found: list[str]
) -> None:
    left_behind(tmp_path, 0, [("barrier", 1001.0), ("barrier", made_at)])
    left_behind(tmp_path, 1, [("barrier", 1001.0)])
    assert kinds(compared(tmp_path, "timed-out", -15)) == found


def test_a_rank_that_died_of_something_else_is_not_blamed_for_its_missing_calls(
    tmp_path: Path,
) -> None:
    exception = {"type": "ValueError", "message": "no", "frames": PLACE}
    left_behind(tmp_path, 0, [("barrier", 1001.0), ("barrier", 1002.0)])
    died = {"event": "exception", "exception": exception, "time": 1003.0}
    left_behind(tmp_path, 1, [("barrier", 1001.0)], [died])
    assert kinds(compared(tmp_path, "exited", 1)) == []


def test_another_call_counts_even_where_a_rank_died(tmp_path: Path) -> None:
    exception = {"type": "ValueError", "message": "no", "frames": PLACE}
    died = {"event": "exception", "exception": exception, "time": 1003.0}
    left_behind(tmp_path, 0, [("barrier", 1001.0), ("all_reduce float32[4]", 1002.0)])
    left_behind(tmp_path, 1, [("barrier", 1001.0), ("barrier", 1002.0)], [died])
    evidence = compared(tmp_path, "exited", 1)
    assert kinds(evidence) == ["collective-mismatch"]
    assert (
        evidence.ranks[0].suspicions[0].message.en.startswith("collective 2: rank 0 calls all_red")
    )


@pytest.mark.parametrize(("host", "found"), [("one", ["same-file-written"]), ("two", [])])
def test_files_of_one_name_on_two_hosts_are_two_files(
    tmp_path: Path, host: str, found: list[str]
) -> None:
    written = {"event": "file-written", "path": "/data/model.pt", "frames": PLACE}
    left_behind(tmp_path, 0, events=[written])
    left_behind(tmp_path, 1, events=[written], host=host)
    assert kinds(compared(tmp_path)) == found


@pytest.mark.parametrize(
    ("rows", "length", "found"),
    [
        ([[1, 2, 3, 4], [5, 6, 7, 8]], 64, ["same-samples"]),
        ([[1, 1, 1, 1], [1, 1, 1, 1]], 64, []),
        ([[1, 2, 3, 4], [1, 2, 3, 4]], 64, []),
        ([[1, 2, 3, 4], [5, 6, 7, 8]], 4, []),
        ([[1, 2, 3, 4]], 64, []),
    ],
    ids=["same", "constant", "repeating", "too-few", "one-batch"],
)
def test_toy_data_that_repeats_itself_is_not_the_same_samples(
    tmp_path: Path, rows: list[list[int]], length: int, found: list[str]
) -> None:
    events = [
        {
            "event": "samples",
            "model": "ddp 0",
            "ranks": [0, 1],
            "call": call,
            "inputs": batch,
            "batch": batch,
            "batches": call,
            "indices": ["[0, 1, 2, 3]"] * call,
            "length": length,
            "frames": PLACE,
        }
        for call, batch in enumerate(rows, 1)
    ]
    for rank in (0, 1):
        left_behind(tmp_path, rank, events=events)
    assert kinds(compared(tmp_path)) == found


def test_damaged_and_empty_journals_are_passed_over(tmp_path: Path) -> None:
    left_behind(tmp_path, 0, [("barrier", 1001.0)])
    (tmp_path / "rank1.jsonl").write_text(json.dumps(START) + '\n{"event": "weights", "ra')
    (tmp_path / "rank0.collectives").write_bytes(b"cut")
    assert kinds(compared(tmp_path)) == []


def test_groups_of_different_members_are_told_though_the_run_ended_well(tmp_path: Path) -> None:
    for rank, members in enumerate(([0, 1], [0])):
        made = [
            {"event": "group-made", "number": 1, "members": [0], "frames": PLACE},
            {"event": "group-made", "number": 2, "members": members, "frames": PLACE},
        ]
        left_behind(tmp_path, rank, events=made)
    evidence = compared(tmp_path)
    assert kinds(evidence) == ["different-groups"]
    assert (
        "a group of 0, 1 here where rank 1 makes one of 0:"
        in evidence.ranks[0].suspicions[0].message.en
    )
