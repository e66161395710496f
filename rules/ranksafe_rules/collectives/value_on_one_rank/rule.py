"""RS409: a variable that only some ranks have assigned."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ranksafe.checker.finding import Finding, Level
from ranksafe.checker.rule import RuleMetadata, Symptom
from ranksafe.launch.context import LaunchContext
from ranksafe.localization import Translated
from ranksafe.rank_flow import Issue, Kind
from ranksafe.semantics.module import Module

from ranksafe_rules._shared.process_groups import may_have_ranks
from ranksafe_rules.collectives.flow_rule import RankFlowRule

_MESSAGE = Translated(
    "Only some ranks have assigned `{name}`: the others fail here, or go on with None",
    "只有部分 rank 给 `{name}` 赋过值：其余 rank 会在此处出错，或以 None 继续",
)


class ValueOnOneRank(RankFlowRule):
    """Reports variables assigned under a rank condition and used by the ranks that did not assign them."""

    metadata = RuleMetadata(
        code="RS409",
        name="value-on-one-rank",
        summary=Translated(
            "A variable that only some ranks have assigned",
            "只有部分 rank 赋值过的变量",
        ),
        level=Level.WARNING,
        symptom=Symptom.CRASHES,
        since="0.1.0",
    )
    kind = Kind.ONE_RANK_VALUE

    def check(self, node: ast.AST, module: Module, launch: LaunchContext) -> Iterator[Finding]:
        """The variables, in a program that may have several ranks."""
        found = list(super().check(node, module, launch))
        if found and may_have_ranks(module, launch):
            yield from found

    def message(self, issue: Issue) -> Translated:
        """The sentence for one issue."""
        return _MESSAGE.filled(name=issue.name)
