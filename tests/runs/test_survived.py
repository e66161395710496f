"""Messages and tracebacks that a log goes on after, although a launcher says in the end that a rank failed."""

from __future__ import annotations

import pytest
from ranksafe.runs.diagnosis.diagnose import diagnose

_STEPS = "".join(f"step {number} loss 0.5\n" for number in range(4, 10))
_MANY_STEPS = "".join(f"step {number} loss 0.5\n" for number in range(4, 20))
_TRACEBACK = """\
Traceback (most recent call last):
  File "/home/a/train.py", line {}, in <module>
    main()
{}
"""
_SURVIVED = _TRACEBACK.format(9, "KeyError: 'text'")
_LAST = _TRACEBACK.format(12, "ValueError: cannot write")
_LOST_PEER = _TRACEBACK.format(
    14,
    "RuntimeError: [../gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:4520",
)
_EXITED = (
    "E0423 03:10:00.1 381 api.py:869] failed (exitcode: {}) local_rank: 0 (pid: 77) of binary: p\n"
)


def _told(log: str, exit_status: int) -> tuple[str, int | None]:
    """The kind of the first failure, and its line."""
    first = diagnose(log + _EXITED.format(exit_status))[0]
    return first.kind, first.line


def test_a_warning_that_steps_follow_is_not_why_a_rank_failed() -> None:
    warning = "Warning: CUDA out of memory. Tried to allocate 2.00 GiB\n"
    assert _told(warning, 85) == ("cuda-out-of-memory", None)
    assert _told(warning + _STEPS, 85) == ("exit-status", None)
    assert _told(_STEPS + warning, 85) == ("cuda-out-of-memory", None)


@pytest.mark.parametrize(
    ("log", "exit_status", "told"),
    [
        # A rank that an exception ended leaves with 1: another one may count on for a moment.
        (_SURVIVED + _STEPS, 1, ("exception", 9)),
        (_SURVIVED + _STEPS, 85, ("exit-status", None)),
        (f"retrying after\n{_SURVIVED}{_STEPS}", 1, ("exit-status", None)),
        (f"ERROR:root:no text\n{_SURVIVED}{_STEPS}", 1, ("exit-status", None)),
        (_SURVIVED + _MANY_STEPS, 1, ("exit-status", None)),
    ],
)
def test_a_traceback_that_steps_follow(
    log: str, exit_status: int, told: tuple[str, int | None]
) -> None:
    assert _told(log, exit_status) == told


def test_of_two_tracebacks_with_steps_between_the_second_is_why() -> None:
    assert _told(_SURVIVED + _LAST, 1) == ("exception", 9)
    assert _told(_SURVIVED + _STEPS + _LAST, 1) == ("exception", 12)


def test_a_traceback_that_is_said_to_be_handled_is_not_why() -> None:
    assert _told(f"attempt 1 failed:\n{_SURVIVED}{_LAST}", 1) == ("exception", 12)


def test_what_only_follows_does_not_make_what_was_before_it_survived() -> None:
    assert _told(_SURVIVED + _STEPS + _LOST_PEER, 1) == ("exception", 9)


def test_a_rank_that_its_watchdog_aborted_raised_no_traceback_without_a_number() -> None:
    watchdog = (
        "[rank0]: [E123] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3, OpType=ALLREDUCE, "
        "NumelIn=4, NumelOut=4, Timeout(ms)=600000) ran for 600100 milliseconds before timing out.\n"
    )
    assert diagnose(watchdog + _LAST + _EXITED.format(-6))[0].rank is None
    assert diagnose(watchdog + _LAST + _EXITED.format(1))[0].rank == 0
