"""RS702: a metric is computed from one rank's share of the data."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from ranksafe.checker.finding import Finding, Level, Related
from ranksafe.checker.rule import Rule, RuleMetadata, Scope, Symptom
from ranksafe.launch.context import LaunchContext
from ranksafe.localization import Translated
from ranksafe.semantics.module import Module

from ranksafe_rules._shared.processes import Certainty, several_processes
from ranksafe_rules.metrics.shares import uncollected_shares

_MESSAGE: Final = Translated(
    "Each rank evaluates its own share of {loader}, and nothing puts the shares together: {result} is of "
    "one share",
    "每个 rank 只在 {loader} 中自己的那一份上评估，且没有汇总各 rank 的结果：{result} 只反映其中一份",
)
_SOURCE: Final = Translated("it shares the data among the ranks", "在此处把数据分给各 rank")


class MetricOnOneShare(Rule):
    """Looks at loops that evaluate."""

    metadata = RuleMetadata(
        code="RS702",
        name="metric-on-one-share",
        summary=Translated(
            "metric of one rank's share of the data", "指标只在一个 rank 的那份数据上计算"
        ),
        level=Level.WARNING,
        symptom=Symptom.WRONG,
        since="0.1.0",
    )
    scope = Scope.MODULE
    at_rest = True
    on_several_gpus = True
    follows_callers = True
    mentions = frozenset({"no_grad", "inference_mode"})

    def check(self, node: ast.AST, module: Module, launch: LaunchContext) -> Iterator[Finding]:  # noqa: ARG002
        """A finding for each loop whose result is of one share."""
        if several_processes(module, launch, needs_a_group=True) is Certainty.NEVER:
            return
        if not any(module.users_mention(word) for word in ("DistributedSampler", "Accelerator")):
            return
        for share in uncollected_shares(module):
            message = _MESSAGE.filled(loader=module.text_of(share.loader), result=share.result)
            file, source = share.source
            place = file.range_of(source.func)
            related = [Related(_SOURCE, place, file.path_from(module))]
            yield self.finding(module, share.loader, message, related=related)
