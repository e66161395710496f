"""Choose the root cause and put every failure into words.

Causality comes before clocks: hosts' clocks differ, and the rank that hangs or loses a connection often speaks first. A
rank that died without a word outranks its peers' complaints about it; an exception of a rank's own outranks lost
connections, and a timeout that ran out outranks connections that were lost to the rank which it ended; among equals
the earliest counts, the launcher's opinion breaking ties.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ranksafe.localization import Language, Translated, both
from ranksafe.runs.explain.alike import said_alike
from ranksafe.runs.explain.context import OF_TWO_RANKS, in_context
from ranksafe.runs.explain.deaths import Death, Ending, deaths_of, is_crash
from ranksafe.runs.explain.evidence import Evidence, RankEvidence
from ranksafe.runs.explain.extent import with_extent
from ranksafe.runs.explain.failures import failure_of, launcher_failure, marked_evidence
from ranksafe.runs.explain.going_on import is_certain
from ranksafe.runs.explain.hangs import hang_failures
from ranksafe.runs.explain.launcher_report import read_launcher
from ranksafe.runs.explain.locate import UserCode
from ranksafe.runs.explain.signatures import meaning_of_end
from ranksafe.runs.model import Failure, RankReport

_CAUSES = (Ending.RAISED, Ending.SILENT)
_LOST = "peer-lost"


def explain(
    evidence: Evidence, user_code: UserCode, language: Language = "en"
) -> tuple[list[Failure], list[RankReport]]:
    """Failures, root causes first, and one report per rank."""
    evidence = marked_evidence(evidence, user_code)
    report = read_launcher(evidence.launcher)
    deaths = deaths_of(evidence, report)
    reports = [_report(death, evidence) for death in deaths]
    if evidence.status in ("cancelled", "hung"):
        return [], reports
    if evidence.status == "timed-out":
        return hang_failures([death.rank for death in deaths], language), reports
    if deaths and evidence.returncode == 0:
        return _unconnected(deaths, language), reports
    # Of the same moment first the rank that the launcher saw fail first.
    ordered = sorted(deaths, key=lambda death: (death.time, death.rank.rank != report.first))
    root = next((death for death in ordered if death.ending in _CAUSES), None)
    if evidence.going_on and not is_certain(root, deaths, evidence):
        return [], reports
    if root is None:
        root = _left_early(deaths) or _gave_up(ordered)
    if root is None:
        failure = launcher_failure(evidence, user_code, language)
        return ([failure] if failure else []), reports
    first = in_context(failure_of(root, deaths, language), evidence, report)
    first = _with_place(first, root, deaths, language)
    failures = [with_extent(first, root, deaths, evidence, report)]
    for death in ordered:
        if death is not root and death.ending in (*_CAUSES, Ending.PEER_LOST):
            other = replace(failure_of(death, deaths, language), root_cause=False)
            if not _same(other, failures[0]):
                failures.append(other)
    return failures, reports


def _with_place(
    failure: Failure, root: Death, deaths: Sequence[Death], language: Language
) -> Failure:
    """Without a line of its own, the line of another rank that raised the same, or that was in the other half of the
    collective."""
    if failure.line is None and failure.kind in OF_TWO_RANKS:
        return _with_peers_place(failure, deaths, language)
    if failure.frames or root.raised is None or root.ending is not Ending.RAISED:
        return failure
    for death in deaths:
        if (
            death.raised is not None
            and death.raised.frames
            and said_alike(death.raised, root.raised)
        ):
            other = failure_of(death, deaths, language)
            return replace(other, rank=failure.rank, message=failure.message)
    return failure


_PEERS_LINE = Translated(
    en="This rank left no line; the one shown is where rank {peer} was in the collective with it.",
    zh_cn="该 rank 没有留下行号；所示行是 rank {peer} 与它进行集合通信时所在的行。",
)


def _with_peers_place(failure: Failure, deaths: Sequence[Death], language: Language) -> Failure:
    """A rank that gloo aborted has no line; one that lost it was in a collective with it."""
    for death in deaths:
        if death.ending is not Ending.PEER_LOST:
            continue
        peer = failure_of(death, deaths, language)
        if peer.line is not None:
            told = _PEERS_LINE.filled(peer=death.rank.rank)
            return replace(
                peer,
                kind=failure.kind,
                code=failure.code,
                rank=failure.rank,
                message=failure.message,
                explanation=both(failure.explanation, told),
            )
    return failure


def _left_early(deaths: Sequence[Death]) -> Death | None:
    """A rank that finished while others were still waiting for it in a collective."""
    lost = any(death.ending is Ending.PEER_LOST for death in deaths)
    finished = [
        death for death in deaths if death.ending is Ending.FINISHED and not death.rank.stopped
    ]
    return min(finished, key=lambda death: death.time) if lost and finished else None


def _gave_up(ordered: Sequence[Death]) -> Death | None:
    """Of ranks that only waited for others, the first that had enough of it; a lost connection follows from that."""
    waited = [death for death in ordered if death.ending is Ending.PEER_LOST]
    return min(
        waited,
        key=lambda death: death.known is not None and death.known[0].kind == _LOST,
        default=None,
    )


def _same(one: Failure, other: Failure) -> bool:
    """The same failure on another rank is one failure."""
    place = (one.kind, one.filename, one.line)
    return place == (other.kind, other.filename, other.line)


_UNCONNECTED_MESSAGE = Translated(
    en="{ranks} ranks trained, and no process group connected them",
    zh_cn="{ranks} 个 rank 都在训练，但没有进程组把它们连接起来",
)


def _unconnected(deaths: Sequence[Death], language: Language) -> list[Failure]:
    """Ranks that trained to the end without ever forming a group: each made its own model."""
    ranks: list[RankEvidence] = [death.rank for death in deaths]
    trained = [rank for rank in ranks if rank.steps > 0]
    if len(trained) < 2:
        return []
    if any(rank.group_size is not None and rank.group_size > 1 for rank in ranks):
        return []
    message = _UNCONNECTED_MESSAGE.filled(ranks=len(trained))
    kind = "unconnected-ranks"
    return [Failure.without_place(kind, message, meaning_of_end(kind), language)]


def _report(death: Death, evidence: Evidence) -> RankReport:
    rank = death.rank
    names = {
        Ending.RAISED: "failed",
        Ending.SILENT: "killed" if (death.exit or 0) < 0 else "failed",
        Ending.PEER_LOST: "failed",
        Ending.STOPPED: "stopped",
        Ending.FINISHED: "succeeded",
        Ending.UNKNOWN: "stopped" if evidence.returncode else "unknown",
    }
    outcome = names[death.ending]
    if death.ending is Ending.FINISHED and death.exit:
        outcome = "failed" if is_crash(death) else "stopped"
    if (
        evidence.status in ("cancelled", "timed-out", "hung")
        and death.ending is not Ending.FINISHED
    ):
        outcome = "stopped"
    return RankReport(rank.rank, rank.host, death.exit, outcome)
