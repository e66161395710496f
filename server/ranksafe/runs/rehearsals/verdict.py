"""What a rehearsal means: its own journals, and whether its end is the script's or the simulation's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ranksafe.localization import Language, Translated, both
from ranksafe.rehearsal.settings import SETTINGS_FILE
from ranksafe.runs.explain import limits
from ranksafe.runs.explain.collective_order import KIND as PARTED
from ranksafe.runs.explain.evidence import (
    Evidence,
    entries_of,
    parse_entry,
    read_tail,
    translated_from,
)
from ranksafe.runs.explain.hangs import are_side_by_side, waiting_ranks
from ranksafe.runs.model import Failure, Outcome
from ranksafe.runs.rehearsals.doubt import Doubt, Uncaught, cause, doubt_about, uncaught_from


@dataclass(frozen=True, slots=True)
class LimitSeen:
    """Something the simulation could not do, written down where it happened; the script may have gone on."""

    kind: str
    message: Translated
    rank: int | None


@dataclass(slots=True)
class Rehearsal:
    """The rehearsal's own journals, each sentence once."""

    offline: bool
    limits: list[LimitSeen] = field(default_factory=list)
    modified: list[Translated] = field(default_factory=list)
    unavailable: list[Translated] = field(default_factory=list)
    uncaught: list[Uncaught] = field(default_factory=list)
    has_short_epochs: bool = False
    is_forecast: bool = False
    memory: dict[tuple[int, int], Mapping[str, Any]] = field(default_factory=dict)
    """Of a forecast: the last that each process (its number) said of each of its devices."""
    timelines: dict[tuple[int, int], Mapping[str, Any]] = field(default_factory=dict)
    """By the same."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a run ended after all."""

    outcome: Outcome
    failures: list[Failure]
    simulation_limit: Failure | None = None
    modified: tuple[Translated, ...] = ()
    limits: tuple[Translated, ...] = ()
    doubt: Doubt | None = None
    """A failure that may come of the rehearsal, or of which it is to be known whether it needs several GPUs."""


def load_rehearsal(directory: Path) -> Rehearsal | None:
    """Read the journals of a run directory; None where the run was no rehearsal."""
    settings = parse_entry(read_tail(directory / SETTINGS_FILE))
    if not settings:
        return None
    found = Rehearsal(bool(settings.get("offline")), is_forecast=bool(settings.get("forecast")))
    for event in _events(directory):
        message = translated_from(event.get("message"))
        match event["event"]:
            case "limit":
                kind, rank = str(event.get("kind", "")), event.get("rank")
                found.limits.append(LimitSeen(kind, message, rank))
            case "modified":
                found.has_short_epochs |= event.get("kind") == "short-epoch"
                if message not in found.modified:
                    found.modified.append(message)
            case "unavailable" if message not in found.unavailable:
                found.unavailable.append(message)
            case "uncaught":
                found.uncaught.append(uncaught_from(event))
            case "memory-peak":
                found.memory[event["pid"], event["device"]] = event
            case "memory-timeline":
                found.timelines[event["pid"], event["device"]] = event
    return found


def judged(
    rehearsal: Rehearsal,
    evidence: Evidence,
    outcome: Outcome,
    failures: Sequence[Failure],
    language: Language,
) -> Verdict:
    """The outcome, with a limit of the simulation told apart from the script's failures.

    A silent failure that was seen before the limit remains one: it is true whatever comes after.
    """
    modified = tuple(rehearsal.modified)
    missing = tuple(rehearsal.unavailable)
    kinds = {each.kind for rank in evidence.ranks.values() for each in rank.suspicions}
    silent = [each for each in failures if not each.root_cause and each.kind in kinds]
    doubt = None
    if outcome is Outcome.FAILED:
        limit = _limit(rehearsal, evidence, failures, language)
        if limit is None and failures and evidence.status == "exited":
            doubt = doubt_about(failures, rehearsal.uncaught)
            # One process has no other ranks: the number of ranks would be another.
            if doubt is not None and (doubt.is_certain or not doubt.names_ranks):
                limit = limit_of(doubt)
        if limit is not None:
            found = [replace(each, root_cause=True) for each in silent]
            ended = Outcome.SILENT_FAILURE if found else Outcome.SIMULATION_LIMIT
            return Verdict(ended, found, limit, modified, missing, doubt)
    passed = outcome in (Outcome.SUCCEEDED, Outcome.SILENT_FAILURE)
    missed = {each.message.en: each.message for each in rehearsal.limits if passed}
    survived = (_WENT_ON.filled(limit=message) for message in missed.values())
    said = (FORECAST if rehearsal.is_forecast else NOT_SIMULATED,) if passed else ()
    return Verdict(outcome, list(failures), None, modified, (*said, *missing, *survived), doubt)


def limit_of(doubt: Doubt) -> Failure:
    """A failure that comes of the rehearsal, as a limit that says of what."""
    kind = "refused" if any(each.is_refusal for each in doubt.touches) else "stand-in"
    explanation = both(cause(doubt), limits.EXPLANATION)
    return replace(doubt.failure, kind=kind, code=None, explanation=explanation, root_cause=True)


def _limit(
    rehearsal: Rehearsal, evidence: Evidence, failures: Sequence[Failure], language: Language
) -> Failure | None:
    """What the simulation could not do, if that is why the run ended."""
    if evidence.status == "timed-out":
        ranks = list(evidence.ranks.values())
        # Ranks that wait for each other are the script's doing, however fast the devices.
        if waiting_ranks(ranks) and not are_side_by_side(ranks):
            return None
        nothing = Failure.without_place("", _TIME, _TIME, "en")
        return _as_limit(failures[0] if failures else nothing, "time")
    if not failures:
        return None
    root = failures[0]
    if root.kind == limits.KIND:
        return _announced(root, rehearsal, language)
    if _was_too_slow(evidence, failures):
        return _as_limit(root, "own-time-limit")
    outgrown = next((seen for seen in rehearsal.limits if seen.kind in _OF_THE_WHOLE_RUN), None)
    if outgrown is not None and root.kind in _WITHOUT_A_WORD:
        message = outgrown.message.in_language(language)
        return _as_limit(replace(root, rank=outgrown.rank, message=message), outgrown.kind)
    kind = limits.kind_of_limit(root, offline=rehearsal.offline)
    return None if kind is None else _as_limit(root, kind)


def _was_too_slow(evidence: Evidence, failures: Sequence[Failure]) -> bool:
    """Whether the script's own time limit for a collective ran out while a rank that had not come to it was at work.

    Devices that are computed by processors take longer than any script allows for.
    """
    if not any(each.kind == _OWN_TIMEOUT for each in failures):
        return False
    mismatch = evidence.mismatch
    if mismatch is not None and mismatch.other[1] is not None:
        return False
    late = [rank for rank in evidence.ranks.values() if rank.raised is None and not rank.ended]
    if mismatch is not None:
        late = [rank for rank in late if rank.rank == mismatch.other[0]]
    at_work = {rank.rank for rank in late if rank.beat} - waiting_ranks(late)
    return bool(at_work) and failures[0].kind in (_OWN_TIMEOUT, PARTED)


def _announced(root: Failure, rehearsal: Rehearsal, language: Language) -> Failure:
    """The limit in the words of the journal where one fits, which are in both languages."""
    fitting = [
        seen for seen in rehearsal.limits if seen.message.en and seen.message.en in root.message
    ]
    refused = next((each for each in rehearsal.unavailable if each.en in root.message), None)
    if not fitting and refused is not None:
        return _as_limit(replace(root, message=refused.in_language(language)), "network")
    of_rank = [seen for seen in rehearsal.limits if seen.rank == root.rank]
    for seen in (*fitting, *of_rank[-1:]):
        message = seen.message.in_language(language) if fitting else root.message
        return _as_limit(replace(root, message=message), seen.kind or "missing-kernel")
    return _as_limit(root, "missing-kernel")


def _as_limit(failure: Failure, kind: str) -> Failure:
    explanation = limits.explained(kind)
    return replace(failure, kind=kind, code=None, explanation=explanation, root_cause=True)


def _events(directory: Path) -> Iterator[dict[str, Any]]:
    """Every entry of every process, in the order of time."""
    paths = sorted(directory.glob("rehearsal-*.jsonl"))
    found = (event for path in paths for event in entries_of(path) if "event" in event)
    return iter(sorted(found, key=lambda event: float(event.get("time") or 0)))


_OWN_TIMEOUT = "collective-timeout"
_OF_THE_WHOLE_RUN = frozenset({"host-memory", "disk", "isolation"})
"""Limits that end a run from outside."""
_WITHOUT_A_WORD = frozenset(
    {"killed", "exit-status", "fatal-signal", "launcher", "peer-lost", "rank-left-early"}
    | {"run-lost", "worker-died", "worker-killed"}
)
"""What remains of ranks that were ended so; an exception of a rank's own means something else."""
NOT_SIMULATED = Translated(
    en="simulated GPUs do not show the numerics of CUDA kernels, races between streams, real GPU memory, NCCL's own "
    "failures, or speed",
    zh_cn="模拟 GPU 无法体现 CUDA kernel 的数值特性、stream 之间的竞争、真实显存占用、NCCL 自身的故障以及速度",
)
FORECAST = Translated(
    en="a forecast of memory computes no values: the losses and metrics that the script prints mean nothing",
    zh_cn="显存预测不计算数值：脚本打印的损失和指标没有意义",
)
_WENT_ON = Translated(
    en="the simulation lacks this, and the script went on without it: {limit}",
    zh_cn="模拟不支持此项，脚本在没有它的情况下继续运行：{limit}",
)
_TIME = Translated(en="time was over", zh_cn="时间已到")
