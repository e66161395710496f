"""RS415: a collective whose root is another rank on each rank."""

from __future__ import annotations

from ranksafe.checker.finding import Level
from ranksafe.checker.rule import RuleMetadata
from ranksafe.localization import Translated
from ranksafe.semantics.rank_flow.issues import Issue, Kind

from ranksafe_rules.collectives.flow_rule import RankFlowRule, reason

_MESSAGE = Translated(
    "All ranks have to name the same root of {operation}, but here it depends on {reason}",
    "所有 rank 必须为 {operation} 指定相同的根节点，而这里它取决于 {reason}",
)


class RootDiffersBetweenRanks(RankFlowRule):
    """Reports src and dst arguments that depend on the rank."""

    metadata = RuleMetadata(
        code="RS415",
        name="root-differs-between-ranks",
        summary=Translated(
            "A collective whose root is another rank on each rank",
            "各 rank 给出不同根节点的集合通信",
        ),
        level=Level.WARNING,
        since="0.2.0",
    )
    kind = Kind.ROOT

    def message(self, issue: Issue) -> Translated:
        """The sentence for one issue."""
        return _MESSAGE.filled(operation=issue.operation, reason=reason(issue))
