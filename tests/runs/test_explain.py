"""Which rank is blamed: causality before clocks."""

from __future__ import annotations

from pathlib import Path

from ranksafe.runs.explain import explain
from ranksafe.runs.explain.evidence import Evidence, Raised, RankEvidence
from ranksafe.runs.explain.locate import UserCode
from ranksafe.runs.model import Failure, Frame

USER_CODE = UserCode([Path("/home/user")], Path("/home/user"))
LOST = "Connection closed by peer [127.0.0.1]:3000"


def _raised(text: str, line: int = 7, name: str = "/home/user/train.py") -> Raised:
    kind, _, message = text.partition(": ")
    return Raised(kind, message, (Frame(name, line, "train"),))


def _rank(
    number: int, *, raised: Raised | None = None, at: float = 0.0, beat_at: float | None = None
) -> RankEvidence:
    rank = RankEvidence(number, pid=100 + number, started=0.0)
    rank.raised, rank.raised_at, rank.beat_at = raised, at if raised else None, beat_at
    rank.beat = (Frame("/home/user/train.py", 3, "train"),) if beat_at is not None else ()
    return rank


def _failures(*ranks: RankEvidence, launcher: str = "", returncode: int = 1) -> list[Failure]:
    evidence = Evidence(
        {rank.rank: rank for rank in ranks}, launcher=launcher, returncode=returncode
    )
    return explain(evidence, USER_CODE)[0]


def _summary(*exits: tuple[int, int]) -> str:
    blocks = [
        f"  rank      : {rank} (local_rank: {rank})\n  exitcode  : {code} (pid: {100 + rank})"
        for rank, code in exits
    ]
    return "\n".join(blocks)


def test_a_killed_rank_is_blamed_though_its_peer_spoke_first() -> None:
    peer = _rank(0, raised=_raised(f"RuntimeError: {LOST}"), at=5.0)
    killed = _rank(1, beat_at=9.0)
    failures = _failures(peer, killed, launcher=_summary((0, 1), (1, -9)))
    assert [(each.rank, each.kind, each.root_cause) for each in failures] == [
        (1, "killed", True),
        (0, "peer-lost", False),
    ]
    assert failures[0].line == 3
    assert "last seen" in failures[0].explanation.en


def test_an_own_exception_is_blamed_though_lost_peers_have_earlier_clocks() -> None:
    failures = _failures(
        _rank(0, raised=_raised(f"RuntimeError: {LOST}"), at=1.0),
        _rank(1, raised=_raised("ValueError: here", line=9), at=2.0),
    )
    assert (failures[0].rank, failures[0].line) == (1, 9)


def test_of_two_own_exceptions_the_earlier_counts() -> None:
    failures = _failures(
        _rank(0, raised=_raised("ValueError: later", line=1), at=8.0),
        _rank(1, raised=_raised("KeyError: 'earlier'", line=2), at=2.0),
    )
    assert [(each.rank, each.root_cause) for each in failures] == [(1, True), (0, False)]


def test_the_same_exception_on_every_rank_is_one_failure() -> None:
    failures = _failures(
        *(_rank(number, raised=_raised("ValueError: all"), at=1.0 + number) for number in range(4))
    )
    assert len(failures) == 1
    assert "Every rank" in failures[0].explanation.en


def test_ranks_that_the_launcher_stopped_are_no_failures() -> None:
    stopped = _rank(0, beat_at=1.0)
    launcher = "Sending process 100 closing signal SIGTERM\n" + _summary((0, -9), (1, 1))
    evidence = Evidence(
        {0: stopped, 1: _rank(1, raised=_raised("ValueError: here"), at=2.0)},
        launcher=launcher,
        returncode=1,
    )
    failures, reports = explain(evidence, USER_CODE)
    assert [failure.rank for failure in failures] == [1]
    assert [report.outcome for report in reports] == ["stopped", "failed"]


def test_the_innermost_user_frame_is_not_in_a_library() -> None:
    frames = (
        Frame("/home/user/train.py", 4, "main"),
        Frame("/home/user/.venv/lib/python3.12/site-packages/torch/x.py", 9, "f"),
        Frame("/usr/lib/python3.12/json/decoder.py", 3, "decode"),
        Frame("<frozen importlib>", 1, "g"),
    )
    (failure,) = _failures(_rank(0, raised=Raised("ValueError", "v", frames), at=1.0))
    assert (failure.filename, failure.line) == ("/home/user/train.py", 4)
    assert [frame.in_user_code for frame in failure.frames] == [True, False, False, False]


def test_a_launcher_that_fails_by_itself_has_no_rank() -> None:
    (failure,) = _failures(
        launcher="accelerate: error: argument --num_processes: invalid int value: 'x'", returncode=2
    )
    assert (failure.kind, failure.rank, failure.filename) == ("launcher-misused", None, None)


def test_nothing_is_blamed_when_all_is_well() -> None:
    rank = _rank(0)
    rank.ended = True
    assert _failures(rank, returncode=0) == []


def test_in_a_hang_the_rank_that_does_not_wait_is_the_cause() -> None:
    waiting, elsewhere = _rank(0, beat_at=9.0), _rank(1, beat_at=9.0)
    collective = "/opt/env/lib/python3.12/site-packages/torch/distributed/distributed_c10d.py"
    waiting.beat = (*waiting.beat, Frame(collective, 3252, "all_reduce"))
    evidence = Evidence({0: waiting, 1: elsewhere}, status="timed-out")
    failures, reports = explain(evidence, USER_CODE)
    assert [(each.rank, each.root_cause, each.line) for each in failures] == [
        (1, True, 3),
        (0, False, 3),
    ]
    assert [report.outcome for report in reports] == ["stopped", "stopped"]


def test_the_first_batch_is_no_last_partial_one() -> None:
    text = (
        "ValueError: Expected more than 1 value per channel when training, got input size [1, 16]"
    )
    first, later = _rank(0, raised=_raised(text), at=1.0), _rank(0, raised=_raised(text), at=1.0)
    later.steps = 12
    assert _failures(first)[0].code == "RS302"
    assert _failures(later)[0].code == "RS303"


def test_a_replicas_traceback_names_the_users_line_in_forward() -> None:
    message = (
        "Caught RuntimeError in replica 1 on device 1.\nOriginal Traceback (most recent call last):\n"
        '  File "/opt/env/lib/python3.11/site-packages/torch/nn/parallel/parallel_apply.py", line 97, in _worker\n'
        "    output = module(*input, **kwargs)\n"
        '  File "/home/user/model.py", line 22, in forward\n'
        "    return x + self.mask\n"
        "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:1 and cuda:0!\n"
    )
    (failure,) = _failures(_rank(0, raised=_raised(f"RuntimeError: {message}"), at=1.0))
    assert (failure.filename, failure.line, failure.kind) == (
        "/home/user/model.py",
        22,
        "device-mismatch",
    )
    assert failure.message.endswith("[replica 1 on device 1]")
    assert "cuda:1" in failure.explanation.zh_cn


def _of_a_worker(text: str, *more: str) -> Raised:
    kind, _, message = text.partition(": ")
    names = ["/home/user/train.py", "/venv/torch/utils/data/dataloader.py", *more]
    return Raised(kind, message, tuple(Frame(name, 5, "next") for name in names))


def test_a_connection_lost_to_a_worker_is_not_one_lost_to_a_rank() -> None:
    sharer = "/python/multiprocessing/resource_sharer.py"
    reset = "ConnectionResetError: [Errno 104] Connection reset by peer"
    worker = _rank(1, raised=_of_a_worker(reset, sharer), at=2.0)
    peer = _rank(0, raised=_raised(f"RuntimeError: {LOST}"), at=1.0)
    failures = _failures(peer, worker)
    assert [(each.rank, each.kind) for each in failures] == [(1, "worker-died"), (0, "peer-lost")]
    assert failures[0].line == 5
    elsewhere = _failures(peer, _rank(1, raised=_of_a_worker(reset), at=2.0))
    assert "worker-died" not in [each.kind for each in elsewhere]


def test_a_main_thread_that_starved_is_explained_by_its_threads_exception() -> None:
    starved = _rank(1, raised=_raised("Empty: ", line=9), at=2.0)
    starved.thread_errors = [_raised("KeyError: 'shard'", line=4)]
    failures = _failures(starved)
    assert (failures[0].message, failures[0].line) == ("KeyError: 'shard'", 4)
    own = _rank(1, raised=_raised("ValueError: own", line=9), at=2.0)
    own.thread_errors = [_raised("KeyError: 'shard'", line=4)]
    assert _failures(own)[0].line == 9
    library = _rank(1, raised=_raised("Empty: ", line=9), at=2.0)
    library.thread_errors = [_raised("OSError: late", name="/venv/wandb/sender.py")]
    assert _failures(library)[0].line == 9
