"""RS703: a LightningModule logs a value of the evaluation that is of one rank's batches only."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from ranksafe.checker.finding import Applicability, Finding, FixOffer, Level, Related
from ranksafe.checker.rule import Rule, RuleMetadata, Scope, Symptom
from ranksafe.launch.context import LaunchContext
from ranksafe.localization import Translated
from ranksafe.semantics.module import Module

from ranksafe_rules._shared.lightning_processes import sharing_processes
from ranksafe_rules._shared.processes import Certainty
from ranksafe_rules.metrics.epoch_log_without_sync.readers import is_monitored
from ranksafe_rules.metrics.epoch_log_without_sync.step_logs import (
    STEPS,
    logs_by_step,
    takes_sync,
)

_SHOWN: Final = Translated(
    "With several GPUs Lightning gives each rank a share of the data, and without sync_dist=True {what} is the mean "
    "over this rank's share: the value that is shown is rank 0's",
    "使用多个 GPU 时，Lightning 给每个 rank 分配一部分数据；没有 sync_dist=True，{what} 就只是本 rank "
    "那部分数据的平均值：显示的是 rank 0 的值",
)
_MONITORED: Final = Translated(
    "With several GPUs Lightning gives each rank a share of the data, and without sync_dist=True {what} is the mean "
    "over this rank's share: the value that is shown is rank 0's, and what monitors it sees another one on every rank",
    "使用多个 GPU 时，Lightning 给每个 rank 分配一部分数据；没有 sync_dist=True，{what} 就只是本 rank "
    "那部分数据的平均值：显示的是 rank 0 的值，而监控它的组件在每个 rank 上看到的值都不同",
)
_LIKEWISE: Final = Translated("logged likewise", "此处同样记录")
_SYNC: Final = Translated("Add sync_dist=True", "添加 sync_dist=True")


class EpochLogWithoutSync(Rule):
    """Listens to classes."""

    metadata = RuleMetadata(
        code="RS703",
        name="epoch-log-without-sync",
        summary=Translated(
            "a validation value that Lightning logs from one rank's share of the data",
            "Lightning 记录的验证指标只来自一个 rank 的那部分数据",
        ),
        level=Level.INFORMATION,
        symptom=Symptom.WRONG,
        since="0.1.0",
        run_signatures=(r"It is recommended to use `self\.log\(.*sync_dist=True\)`",),
    )
    scope = Scope.CLASS
    listens_to = (ast.ClassDef,)
    mentions = frozenset(f"def {step}" for step in STEPS)

    def check(self, node: ast.AST, module: Module, launch: LaunchContext) -> Iterator[Finding]:
        """One finding per step: it is mended as a whole."""
        assert isinstance(node, ast.ClassDef)
        groups = logs_by_step(module, node)
        certainty = sharing_processes(module, launch) if groups else Certainty.NEVER
        if certainty is Certainty.NEVER:
            return
        level = Level.INFORMATION if certainty is Certainty.POSSIBLE else Level.WARNING
        for calls in groups:
            offers = []
            if any(takes_sync(module, call) for call in calls):
                offers.append(FixOffer("sync", _SYNC, Applicability.SAFE))
            monitored = [call for call in calls if is_monitored(module, call)]
            first = (monitored or calls)[0]
            message = _MONITORED if monitored else _SHOWN
            yield self.finding(
                module,
                first,
                message.filled(what=_logged(module, first)),
                level=level,
                related=[
                    Related(_LIKEWISE, module.range_of(call)) for call in calls if call is not first
                ],
                fixes=offers,
            )


def _logged(module: Module, call: ast.Call) -> str:
    """The key, as written, or the call."""
    first = module.argument_node(call, "name", 0)
    if isinstance(first, (ast.Constant, ast.JoinedStr)):
        return module.text_of(first)
    return module.text_of(call.func)
