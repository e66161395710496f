"""RS416: a send or receive without a partner."""

from __future__ import annotations

from ranksafe.checker.finding import Level
from ranksafe.checker.rule import RuleMetadata
from ranksafe.localization import Translated
from ranksafe.semantics.rank_flow.issues import Issue, Kind

from ranksafe_rules.collectives.flow_rule import RankFlowRule

_MESSAGE = Translated(
    "This {operation} has no partner on the other rank: it waits for ever, or fails at its timeout",
    "这个 {operation} 在另一个 rank 上没有对应操作：它会永远等待，或在超时后失败",
)


class SendWithoutReceive(RankFlowRule):
    """Reports point-to-point operations whose number differs between the two ranks."""

    metadata = RuleMetadata(
        code="RS416",
        name="send-without-receive",
        summary=Translated(
            "A send or receive without a partner",
            "没有对应方的发送或接收",
        ),
        level=Level.WARNING,
        since="0.2.0",
    )
    kind = Kind.PEER

    def message(self, issue: Issue) -> Translated:
        """The sentence for one issue."""
        return _MESSAGE.filled(operation=issue.operation)
