"""RS415: a collective whose root is another rank on each rank."""

from __future__ import annotations

from ranksafe.checker.finding import Level
from ranksafe.checker.rule import RuleMetadata, Symptom
from ranksafe.localization import Translated
from ranksafe.rank_flow import Issue, Kind

from ranksafe_rules.collectives.flow_rule import RankFlowRule, reason

_MESSAGE = Translated(
    "All ranks have to name the same root of {operation}, but here it depends on {reason}",
    "所有 rank 必须为 {operation} 指定相同的根节点，而这里它取决于 {reason}",
)
_NO_MEMBER = Translated(
    "The root of this {operation} is no member of its group: src and dst count the ranks of all processes",
    "这个 {operation} 的根节点不属于它的组：src 和 dst 是全局 rank",
)
_TENSOR = Translated(
    "The tensor of this {operation} has another shape on other ranks",
    "这个 {operation} 的张量在其他 rank 上形状不同",
)


class RootDiffersBetweenRanks(RankFlowRule):
    """Reports roots that depend on the rank or are not in the group, and tensors that do not fit the others'."""

    metadata = RuleMetadata(
        code="RS415",
        name="root-differs-between-ranks",
        summary=Translated(
            "A collective whose root is another rank on each rank",
            "各 rank 给出不同根节点的集合通信",
        ),
        level=Level.WARNING,
        symptom=Symptom.CRASHES,
        since="0.1.0",
    )
    kind = Kind.ROOT

    def message(self, issue: Issue) -> Translated:
        """The sentence for one issue."""
        if issue.name == "member":
            return _NO_MEMBER.filled(operation=issue.operation)
        if issue.name == "shape":
            return _TENSOR.filled(operation=issue.operation)
        return _MESSAGE.filled(operation=issue.operation, reason=reason(issue))
