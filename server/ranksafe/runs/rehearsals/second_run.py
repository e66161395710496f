"""In doubt, a rehearsal's script runs once more, on one process, before it is accused."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from ranksafe.localization import Translated
from ranksafe.rehearsal.settings import Confirm
from ranksafe.runs.errors import RunNotPossible
from ranksafe.runs.model import Outcome, RunRequest, RunResult
from ranksafe.runs.rehearsals.confirmation import with_second_run
from ranksafe.runs.rehearsals.doubt import Doubt
from ranksafe.runs.rehearsals.verdict import Verdict

_TIMES = 2.0
"""The longest that the second run may take, in terms of what the first took until it failed."""
_WITHOUT_DEVICES = {"CUDA_VISIBLE_DEVICES": "", "ACCELERATE_USE_CPU": "true"}


class Started(Protocol):
    """A run that goes on."""

    def wait(self, timeout: float | None = None) -> RunResult | None:
        """Its result."""
        ...


@dataclass(frozen=True, slots=True)
class SecondRun:
    """What is to be started, about which failure, and what is said of it."""

    request: RunRequest
    doubt: Doubt
    announcement: Translated


def second_run(request: RunRequest, verdict: Verdict, seconds: float) -> SecondRun | None:
    """The run that could tell more of a failure; None where none is wanted, or none could. ``seconds``: how long the
    first one took."""
    choice = request.rehearsal.confirm
    doubt = verdict.doubt
    if choice is Confirm.ALWAYS and doubt is None and verdict.outcome is Outcome.FAILED:
        doubt = Doubt(tuple(verdict.failures), (), is_certain=False)
    if choice is Confirm.OFF or doubt is None or doubt.is_certain or not doubt.failures:
        return None
    if doubt.failure.filename is None:
        return None
    longest = _TIMES * seconds
    if request.timeout_seconds is not None:
        longest = min(longest, request.timeout_seconds - seconds)
    if longest <= 0:
        return None
    # Many scripts refuse to start without a GPU; whether it takes several is seen on one.
    environment = {**request.environment, **({} if doubt.touches else _WITHOUT_DEVICES)}
    once_more = replace(
        request,
        target="simulated:1",
        gpus=None,
        config_file=None,
        launcher="accelerate" if request.config_file else request.launcher,
        environment=environment,
        timeout_seconds=longest,
        rehearsal=replace(request.rehearsal, nodes=1, confirm=Confirm.OFF),
    )
    return SecondRun(once_more, doubt, _ON_ONE if doubt.touches else _ON_THE_CPU)


def carried_out(
    wanted: SecondRun, verdict: Verdict, start: Callable[[RunRequest], Started]
) -> Verdict:
    """The verdict after the second run, of which nothing is kept."""
    try:
        result = start(wanted.request).wait()
    except RunNotPossible:
        return verdict
    if result is not None and result.run_directory is not None:
        shutil.rmtree(result.run_directory, ignore_errors=True)
    return with_second_run(verdict, wanted.doubt, result)


_ON_ONE = Translated(
    en="in doubt whether this is the script's failure: the same once more on one simulated GPU, to be sure",
    zh_cn="尚不确定这是否是脚本的故障：在一个模拟 GPU 上再运行一次以确认",
)
_ON_THE_CPU = Translated(
    en="the same once more on the CPU, to be sure", zh_cn="在 CPU 上再运行一次以确认"
)
