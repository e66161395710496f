"""RS701: an experiment tracker is started on every rank."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from ranksafe.checker.finding import Applicability, Finding, FixOffer, Level
from ranksafe.checker.rule import Rule, RuleMetadata, Scope, Symptom
from ranksafe.launch.context import LaunchContext
from ranksafe.localization import Translated
from ranksafe.semantics.module import Module

from ranksafe_rules._shared.every_rank import may_be_reached
from ranksafe_rules._shared.rank_zero import names_rank_zero
from ranksafe_rules.metrics.trackers import MENTIONS, Kind, Start, starts_on_every_rank

_MESSAGES: Final = {
    Kind.RUN: Translated(
        "Every rank starts a run of its own here: one training shows up as as many runs as there are GPUs",
        "每个 rank 都在此处启动自己的 run：一次训练会显示为与 GPU 数相同的多个 run",
    ),
    Kind.EVENTS: Translated(
        "Every rank writes events to one folder here: TensorBoard takes a folder for one run, so it mixes the ranks or "
        "shows one of them",
        "每个 rank 都在此处向同一目录写入事件：TensorBoard 把一个目录当作一次运行，会混合各 rank 的数据，"
        "或只显示其中一个",
    ),
    Kind.LOG: Translated(
        "Every rank writes to this log: what all ranks write is there once per rank, in any order",
        "每个 rank 都写入该日志：各 rank 都写的行会按 rank 数重复出现，顺序不定",
    ),
}
_DISABLE: Final = Translated(
    'Start it on rank 0 only (mode="disabled" on the others)',
    '只在 rank 0 上启动（其他 rank 使用 mode="disabled"）',
)


class TrackerOnEveryRank(Rule):
    """Looks at the trackers that the file starts, and who comes there."""

    metadata = RuleMetadata(
        code="RS701",
        name="tracker-on-every-rank",
        summary=Translated(
            "experiment tracker started on every rank", "每个 rank 都启动了实验跟踪器"
        ),
        level=Level.WARNING,
        symptom=Symptom.WRONG,
        since="0.1.0",
    )
    scope = Scope.MODULE
    at_rest = True
    on_several_gpus = True
    follows_callers = True
    mentions = MENTIONS

    def check(self, node: ast.AST, module: Module, launch: LaunchContext) -> Iterator[Finding]:  # noqa: ARG002
        """A finding for each tracker or log that all ranks start."""
        if not may_be_reached(module, launch):
            return
        for start in starts_on_every_rank(module, launch):
            yield self.finding(
                module,
                start.call.func,
                _MESSAGES[start.kind],
                level=Level.INFORMATION if start.kind is Kind.LOG else Level.WARNING,
                fixes=_offers(module, start),
            )


def _offers(module: Module, start: Start) -> list[FixOffer]:
    """wandb alone has a mode in which its calls do nothing, so that ``wandb.log`` can stay as it is."""
    call = start.call
    if module.qualified_name(call.func) != "wandb.init" or not names_rank_zero(module, call):
        return []
    if module.argument(call, "mode") is not None:
        return []
    return [FixOffer("disable-others", _DISABLE, Applicability.UNSAFE)]
