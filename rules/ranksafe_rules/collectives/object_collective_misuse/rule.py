"""RS408: a list that an object collective cannot use."""

from __future__ import annotations

from ranksafe.checker.finding import Level
from ranksafe.checker.rule import RuleMetadata
from ranksafe.localization import Translated
from ranksafe.rank_flow import Issue, Kind

from ranksafe_rules.collectives.flow_rule import RankFlowRule

_MESSAGE = Translated(
    "{operation} is given a list that this rank must not give, or that cannot take the result",
    "传给 {operation} 的列表在该 rank 上不应传入，或无法接收结果",
)


class ObjectCollectiveMisuse(RankFlowRule):
    """Reports lists given to gather and object collectives where they must not be, or have the wrong length."""

    metadata = RuleMetadata(
        code="RS408",
        name="object-collective-misuse",
        summary=Translated(
            "A list that an object collective cannot use",
            "对象集合通信无法使用的列表",
        ),
        level=Level.WARNING,
        since="0.2.0",
        run_signatures=(r"must NOT be specified on non-destination ranks",),
    )
    kind = Kind.OBJECT_LIST

    def message(self, issue: Issue) -> Translated:
        """The sentence for one issue."""
        return _MESSAGE.filled(operation=issue.operation)
