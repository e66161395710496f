"""What a second run of a rehearsal's script, on one process, decides about the failure of the first.

| the second run | the failure comes through ours | it does not |
|---|---|---|
| fails alike, at the same line | a limit: it needs no second GPU | the script's, on one process too |
| passes | the script's, and it needs several processes | the same |
| anything else, or no time | as if there had been no second run | the same |
"""

from __future__ import annotations

from dataclasses import replace

from ranksafe.localization import Translated, both
from ranksafe.runs.explain import limits
from ranksafe.runs.model import Failure, Outcome, RunResult
from ranksafe.runs.rehearsals.doubt import Doubt, cause
from ranksafe.runs.rehearsals.verdict import Verdict, limit_of


def with_second_run(verdict: Verdict, doubt: Doubt, second: RunResult | None) -> Verdict:
    """The verdict, with what the second run showed; ``second``: None where there was none."""
    if second is None or second.outcome is Outcome.CANCELLED:
        return verdict
    ran_through = second.outcome in (Outcome.SUCCEEDED, Outcome.SILENT_FAILURE)
    if ran_through and second.simulation_limit is None:
        return _accused(verdict, doubt, _NEEDS_SEVERAL)
    if not _is_same(doubt.failure, second):
        return _undecided(verdict)
    if not doubt.touches:
        return _accused(verdict, doubt, _ON_THE_CPU)
    said = both(both(_ON_ONE, cause(doubt)), limits.EXPLANATION)
    limit = replace(limit_of(doubt), explanation=said)
    if verdict.simulation_limit is not None:
        return replace(verdict, simulation_limit=limit)
    return replace(verdict, outcome=Outcome.SIMULATION_LIMIT, failures=[], simulation_limit=limit)


def _undecided(verdict: Verdict) -> Verdict:
    """As before, and a limit says that there was no telling."""
    limit = verdict.simulation_limit
    if limit is None:
        return verdict
    told = replace(limit, explanation=both(limit.explanation, _NOT_SEEN))
    return replace(verdict, simulation_limit=told)


def _accused(verdict: Verdict, doubt: Doubt, said: Translated) -> Verdict:
    """The failure is the script's after all."""
    failure = replace(doubt.failure, explanation=both(doubt.failure.explanation, said))
    failures = [failure, *doubt.failures[1:]]
    return replace(verdict, outcome=Outcome.FAILED, failures=failures, simulation_limit=None)


def _is_same(failure: Failure, second: RunResult) -> bool:
    """Whether the second run has a failure of its type at its line of the script, with its text or raised at its place.

    A library may refuse two different things under one line of the script.
    """
    others = [*second.failures, *filter(None, [second.simulation_limit])]
    return any(
        _what_and_where(each) == _what_and_where(failure)
        and (each.message == failure.message or _raised_at(each) == _raised_at(failure))
        for each in others
    )


def _what_and_where(failure: Failure) -> tuple[str, str | None, int | None]:
    return failure.message.partition(":")[0], failure.filename, failure.line


def _raised_at(failure: Failure) -> tuple[str | None, int | None]:
    innermost = failure.frames[-1] if failure.frames else failure
    return innermost.filename, innermost.line


_ON_ONE = Translated(
    en="The same happens on one process without several GPUs: it does not concern several GPUs.",
    zh_cn="在没有多个 GPU 的单个进程上同样如此：这与多 GPU 无关。",
)
_ON_THE_CPU = Translated(
    en="The same happens on the CPU without simulated GPUs, in one process: it has nothing to do with several GPUs.",
    zh_cn="在没有模拟 GPU 的 CPU 单进程上同样如此：这与多 GPU 无关。",
)
_NOT_SEEN = Translated(
    en="One process did not come to this line in the time, or failed elsewhere before, so whether it takes several "
    "GPUs is not known.",
    zh_cn="单个进程未在限定时间内运行到此行，或在此之前于别处失败，因此不知道是否只有在多个 GPU 上才会出现。",
)
_NEEDS_SEVERAL = Translated(
    en="On one process the same script passed: it takes several GPUs to see this.",
    zh_cn="同一脚本在单个进程上通过了：只有在多个 GPU 上才会出现。",
)
