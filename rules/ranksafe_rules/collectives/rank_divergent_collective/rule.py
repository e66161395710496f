"""RS401: a collective that not all ranks reach."""

from __future__ import annotations

from collections.abc import Sequence

from ranksafe.checker.finding import FixOffer, Level
from ranksafe.checker.rule import RuleMetadata, Symptom
from ranksafe.localization import Translated
from ranksafe.rank_flow import Issue, Kind
from ranksafe.semantics.module import Module

from ranksafe_rules.collectives import guards
from ranksafe_rules.collectives.flow_rule import RankFlowRule, not_waiting, reason, waiting

_INSTEAD = Translated(
    "{waiting} will wait in {operation}, while {others} will go to {other}: the ranks separate on {reason}",
    "{waiting} 在 {operation} 中等待，{others} 却去执行 {other}：各 rank 因 {reason} 而走上不同的路径",
)
_NEVER = Translated(
    "{waiting} will wait in {operation} for ever: {others} will never get "
    "there, because the ranks separate on {reason}",
    "{waiting} 会在 {operation} 中永远等待：由于 {reason}，{others} 不会执行到这里",
)
_DEPENDS = Translated(
    "Some ranks may perform {operation} here and others not: the condition "
    "depends on {reason}, which differs between ranks",
    "这里可能只有部分 rank 执行 {operation}：条件取决于 {reason}，而它在各 rank 上不同",
)


class RankDivergentCollective(RankFlowRule):
    """Reports where a branch, an early return or a loop makes ranks perform different collectives."""

    metadata = RuleMetadata(
        code="RS401",
        name="rank-divergent-collective",
        summary=Translated(
            "A collective that not all ranks reach",
            "并非所有 rank 都会执行到的集合通信",
        ),
        level=Level.WARNING,
        symptom=Symptom.HANGS,
        since="0.1.0",
        run_signatures=(
            r"Watchdog caught collective operation timeout: WorkNCCL",
            r"Detected mismatch between collectives on ranks",
        ),
    )
    kind = Kind.COLLECTIVE

    def message(self, issue: Issue) -> Translated:
        """The sentence for one issue."""
        if issue.waiting_rank is None:
            return _DEPENDS.filled(operation=issue.operation, reason=reason(issue))
        sentence = _INSTEAD if issue.other else _NEVER
        return sentence.filled(
            waiting=waiting(issue), others=not_waiting(issue), operation=issue.operation,
            other=issue.other, reason=reason(issue),
        )  # fmt: skip

    def fixes(self, issue: Issue, module: Module) -> Sequence[FixOffer]:
        """Moving the statement out of the condition, where that is simple."""
        return guards.offer(issue, module)
