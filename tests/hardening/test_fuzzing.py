"""Promise: no damage to a file, a log or a record brings a reader down, and no client the server. `make harden HOURS=1`
looks for more of it."""

from __future__ import annotations

import random

import pytest
from ranksafe.runs.diagnosis.diagnose import diagnose

from tests.hardening.fuzzing import TARGETS, tried


@pytest.mark.parametrize("target", TARGETS)
def test_random_damage(target: str) -> None:
    # Of sessions, which take seconds, two that notice when a deletion is lost.
    for seed in (2, 7) if target == "session" else range(30):
        assert tried(target, seed) is None, f"{target} {seed}"


@pytest.mark.parametrize("seed", [402, 470, 1041])
def test_what_was_found_so(seed: int) -> None:
    """Hosts that are a number, ranks and outcomes that are lists."""
    assert tried("record", seed) is None


def test_a_log_may_name_what_cannot_be_a_file() -> None:
    name = f"/home/{'[' * 5_000}.py"
    text = f'Traceback (most recent call last):\n  File "{name}", line 1, in f\nValueError: x\n'
    assert diagnose(text)


def test_a_seed_makes_the_same_again() -> None:
    def made(target: str) -> str:
        return next(iter(TARGETS[target](random.Random("7"))))

    assert all(made(target) == made(target) for target in TARGETS)
