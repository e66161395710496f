"""Promise: of a launcher that was killed it is said that it was, not what it had printed before."""

from __future__ import annotations

from pathlib import Path

from ranksafe.runs.explain.evidence import Evidence
from ranksafe.runs.explain.failures import launcher_failure
from ranksafe.runs.explain.locate import UserCode

STARS = "*" * 41
PRINTED = (
    f"{STARS}\nSetting OMP_NUM_THREADS environment variable for each process to be 1\n{STARS}\n"
)


def said(status: int, launcher: str) -> str:
    failure = launcher_failure(
        Evidence({}, launcher=launcher, returncode=status), UserCode([Path("/x")], Path("/x")), "en"
    )
    assert failure is not None
    return failure.message


def test_the_signal_is_named() -> None:
    assert said(-9, PRINTED) == "killed by SIGKILL"
    assert said(-15, "") == "killed by SIGTERM"


def test_a_line_of_stars_is_no_word() -> None:
    assert said(1, f"no such option: --x\n{STARS}\n") == "no such option: --x"
    assert said(3, f"{STARS}\n") == "exit status 3"
