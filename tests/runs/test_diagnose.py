"""Logs of real runs, explained by their text alone. Paths were replaced; nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from ranksafe.runs.diagnose import diagnose

LOGS = Path(__file__).parent / "logs"


def _read(name: str) -> str:
    return (LOGS / name).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "rank", "kind", "message", "place"),
    [
        (
            "chained.log",
            1,
            "exception",
            "RuntimeError: cannot load sample 3 (caused by KeyError: 'label')",
            ("chained.py", 8),
        ),
        ("killed.log", 1, "killed", "killed by SIGKILL", None),
        (
            "two_workers_without_prefix.log",
            0,
            "exception",
            "KeyError: 'label' [DataLoader worker process 0]",
            ("plain.py", 10),
        ),
        (
            "spawned.log",
            1,
            "exception",
            "ValueError: replica one is unhappy [process 1]",
            ("spawned.py", 7),
        ),
    ],
)
def test_the_root_cause_of_a_saved_log(
    name: str, rank: int, kind: str, message: str, place: tuple[str, int] | None
) -> None:
    first = diagnose(_read(name))[0]
    assert (first.rank, first.kind, first.message) == (rank, kind, message)
    found = (Path(first.filename).name, first.line) if first.filename else None
    assert found == place
    assert first.root_cause


def test_lost_peers_follow_the_cause() -> None:
    failures = diagnose(_read("chained.log"))
    assert [(failure.rank, failure.kind) for failure in failures[1:]] == [(0, "peer-lost")]
    assert not failures[1].root_cause


def test_timeouts_of_several_ranks_are_compared() -> None:
    failure = diagnose(_read("nccl_timeout.log"))[0]
    assert failure.kind == "collective-timeout"
    assert "rank 0: ALLREDUCE #1580, rank 1: BROADCAST #1580" in failure.explanation.en
    assert "different" in failure.explanation.en


@pytest.mark.parametrize(
    "prefix",
    ["[default1]:", "[default1]:[rank1]: ", "1: ", "[rank1]: ", "(TrainWorker rank=1, pid=7) "],
)
def test_prefixes_of_every_launcher_are_understood(prefix: str) -> None:
    lines = [
        "Traceback (most recent call last):",
        '  File "/home/user/train.py", line 12, in <module>',
        "    main()",
        "ValueError: on this rank",
    ]
    failure = diagnose("\n".join(prefix + line for line in lines))[0]
    assert (failure.rank, failure.line, failure.message) == (1, 12, "ValueError: on this rank")


def test_two_ranks_that_interleave_line_by_line_are_told_apart() -> None:
    first = [
        "Traceback (most recent call last):",
        '  File "/home/user/train.py", line 5, in <module>',
        "    one()",
        "RuntimeError: Connection closed by peer",
    ]
    second = [
        "Traceback (most recent call last):",
        '  File "/home/user/train.py", line 9, in <module>',
        "    two()",
        "IndexError: too far",
    ]
    mixed = [
        line
        for pair in zip(first, second, strict=True)
        for line in ("[rank0]: " + pair[0], "[rank1]: " + pair[1])
    ]
    failures = diagnose("\n".join(mixed))
    assert [(failure.rank, failure.line, failure.root_cause) for failure in failures] == [
        (1, 9, True),
        (0, 5, False),
    ]


def test_two_ranks_that_print_the_same_into_one_stream_are_one_traceback() -> None:
    lines = [
        "Traceback (most recent call last):",
        '  File "/home/user/train.py", line 5, in <module>',
        "    one()",
        '  File "/home/user/train.py", line 2, in one',
        "    two()",
        "IndexError: too far",
    ]
    (failure,) = diagnose("\n".join(line for line in lines for _ in (0, 1)))
    assert failure.message == "IndexError: too far"
    assert [frame.line for frame in failure.frames] == [5, 2]


@pytest.mark.parametrize(
    "text", ["", "epoch 1 loss 0.3\nepoch 2 loss 0.2\n", "\x00\xff garbage \n\n]["]
)
def test_a_log_without_a_failure_has_none(text: str) -> None:
    assert diagnose(text) == []


def test_only_the_launchers_summary_is_said_to_be_that() -> None:
    text = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
    assert [failure.kind for failure in diagnose(text)] == ["launcher"]
