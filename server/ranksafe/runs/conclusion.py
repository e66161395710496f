"""What is said of a run that has ended: from the evidence it left and from what was seen while it went on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ranksafe.localization import Translated
from ranksafe.runs.compared_ranks.comparisons import compare_ranks
from ranksafe.runs.compared_ranks.ways_parted import with_parting
from ranksafe.runs.explain import explain, lost_node
from ranksafe.runs.explain.evidence import Evidence, load_evidence
from ranksafe.runs.explain.job_end import load_job_end, with_job_end
from ranksafe.runs.explain.locate import UserCode
from ranksafe.runs.explain.out_of_sight import STATUSES as OUT_OF_SIGHT
from ranksafe.runs.explain.out_of_sight import last_words, out_of_sight
from ranksafe.runs.explain.remote_paths import with_local_files
from ranksafe.runs.explain.silent import with_silent_failures
from ranksafe.runs.launch_plan import Plan
from ranksafe.runs.model import (
    Failure,
    MemoryPeak,
    Outcome,
    RankReport,
    RunRequest,
    Unreached,
)
from ranksafe.runs.predicted import led_by_its_rule, with_predicted_rule
from ranksafe.runs.rehearsals.memory import memory_peaks
from ranksafe.runs.rehearsals.verdict import Verdict, judged, load_rehearsal
from ranksafe.runs.unreached import unreached, unreached_in_words


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run ended, as it was seen while it went on."""

    status: str
    """As the process says (`ranksafe.runs.targets.protocol.Process.status`), or "hung" or "timed-out"."""
    was_ended: bool
    """ranksafe ended it: its ranks hung, one that had failed stayed, or its time was over."""
    hang: tuple[Failure, ...]
    """What was seen of a hang."""
    returncode: int | None = None
    """The launcher's exit status, where it is known without the run's files."""


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What is said in the end."""

    verdict: Verdict
    ranks: tuple[RankReport, ...]
    limits: tuple[Translated, ...]
    """What the verdict does not cover, besides the plan's own limits."""
    unreached: tuple[Unreached, ...] = ()
    memory: tuple[MemoryPeak, ...] = ()


def conclude(
    request: RunRequest,
    plan: Plan,
    directory: Path,
    run_id: str,
    ending: Ending,
    user_code: UserCode,
) -> Conclusion:
    """Read what the run left in ``directory`` and judge it. Raises OSError when it cannot be read."""
    evidence = load_evidence(directory, plan.ranks)
    edited = with_local_files(evidence, directory)
    evidence.status = ending.status
    if ending.returncode is not None:
        evidence.returncode = ending.returncode
    language = request.language
    failures, ranks = explain(evidence, user_code, language)
    if ending.status == "hung":
        failures = [*ending.hang, *failures]
    failures = with_job_end(failures, evidence, load_job_end(directory), language)
    if ending.status in OUT_OF_SIGHT:
        known = last_words(directory, evidence, user_code)
        failures = [out_of_sight(ending.status, request.target, run_id, known, language)]
    elif ending.status not in ("cancelled", "hung"):
        # Of ranks that are gone with their node the last records are missing.
        if not any(failure.kind == lost_node.KIND for failure in failures):
            compare_ranks(directory, evidence)
        edited += with_local_files(evidence, directory)
        failures = with_silent_failures(failures, evidence, user_code, language)
        failures = led_by_its_rule(failures, plan.ranks)
        failures = with_parting(failures, directory, evidence.mismatch, user_code, language)
    failures = [with_predicted_rule(each, plan.ranks, request.launcher) for each in failures]
    outcome = _outcome(ending, evidence.returncode, failures)
    rehearsal = load_rehearsal(directory)
    if rehearsal is None:
        verdict = Verdict(outcome, failures)
    else:
        verdict = judged(rehearsal, evidence, outcome, failures, language)
    missed = _missed(request, evidence, verdict.outcome)
    limits = [*verdict.limits, *missed, *edited]
    left_out: tuple[Unreached, ...] = ()
    memory = () if rehearsal is None else memory_peaks(rehearsal, evidence, user_code)
    if rehearsal is not None and verdict.outcome is Outcome.SUCCEEDED:
        limits += _stopped_early(request, evidence)
        is_whole = not (request.steps or rehearsal.has_short_epochs or _ended_early(evidence))
        script = request.script.absolute()
        left_out = unreached(directory, script, plan.ranks, is_whole=is_whole)
        limits += unreached_in_words(left_out, request.steps, is_whole=is_whole)
    return Conclusion(verdict, tuple(ranks), tuple(limits), left_out, memory)


def _outcome(ending: Ending, returncode: int | None, failures: Sequence[Failure]) -> Outcome:
    if ending.was_ended:
        return Outcome.FAILED
    if ending.status == "cancelled":
        return Outcome.CANCELLED
    if ending.status == "failed-to-start":
        return Outcome.NOT_STARTED
    if ending.status == "exited" and returncode == 0:
        return Outcome.SILENT_FAILURE if failures else Outcome.SUCCEEDED
    return Outcome.FAILED


def _missed(request: RunRequest, evidence: Evidence, outcome: Outcome) -> list[Translated]:
    """A smoke run of a script whose steps are not torch's optimizer steps is an ordinary run."""
    stopped = any(rank.stopped for rank in evidence.ranks.values())
    if request.steps is None or stopped or outcome is not Outcome.SUCCEEDED:
        return []
    if any(rank.steps for rank in evidence.ranks.values()):
        return []
    return [_NO_STEPS.filled(steps=request.steps)]


def _ended_early(evidence: Evidence) -> bool:
    ranks = evidence.ranks.values()
    return any(rank.stopped or rank.trained_enough is not None for rank in ranks)


def _stopped_early(request: RunRequest, evidence: Evidence) -> list[Translated]:
    """A rehearsal of a long training does not come to its end; that of a Trainer comes to the script's."""
    if request.steps is not None:
        return []
    ranks = list(evidence.ranks.values())
    stopped = [rank.steps for rank in ranks if rank.stopped]
    trained = [rank.trained_enough for rank in ranks if rank.trained_enough is not None]
    if stopped:
        return [_STOPPED.filled(steps=max(stopped))]
    return [_TRAINED.filled(steps=max(trained))] if trained else []


_STOPPED = Translated(
    en="the run was stopped after {steps} optimizer steps, which was not its end; --steps 0 rehearses all of it",
    zh_cn="运行在 {steps} 个优化器步之后被停止，并未到达结尾；使用 --steps 0 可完整预演",
)
_TRAINED = Translated(
    en="the training was ended after {steps} optimizer steps, and the script went on; --steps 0 trains to the end",
    zh_cn="训练在 {steps} 个优化器步之后结束，脚本继续运行；使用 --steps 0 可训练到结束",
)
_NO_STEPS = Translated(
    en="no optimizer step was seen: the script ran to its end, not {steps} steps",
    zh_cn="没有观察到优化器步：脚本一直运行到结束，而不是在 {steps} 步后停止",
)
