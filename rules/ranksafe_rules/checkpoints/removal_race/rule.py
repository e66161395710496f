"""RS606: every rank removes or renames the same path, and all but the first fail."""

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
from ranksafe_rules._shared.wording import in_one_line
from ranksafe_rules.checkpoints.rank_zero_guards import may_be_guarded
from ranksafe_rules.checkpoints.removed_paths import MENTIONS, Removal, racing_removals

_UNCHECKED: Final = Translated(
    "Every rank comes here for {path}: after the first one it is gone, and the others end with FileNotFoundError",
    "每个 rank 都在此处处理 {path}：第一个完成后它已不存在，其余以 FileNotFoundError 结束",
)
_CHECKED: Final = Translated(
    "Every rank may find {path} there before one of them takes it away; the others then end with FileNotFoundError",
    "在某个 rank 移走 {path} 之前，其他 rank 可能也发现它存在；它们随后以 FileNotFoundError 结束",
)
_ONLY_ZERO: Final = FixOffer(
    "only-rank-0",
    Translated(
        "Leave it to rank 0 (the other ranks do not wait for it: where they need it gone, add a barrier)",
        "只由 rank 0 执行（其他 rank 不会等待：若它们依赖此结果，请再加 barrier）",
    ),
    Applicability.UNSAFE,
)
_MISSING_OK: Final = FixOffer(
    "missing-ok",
    Translated(
        "Let the file be gone already: missing_ok=True", "允许文件已不存在：missing_ok=True"
    ),
    Applicability.SAFE,
)


class RemovalRace(Rule):
    """Looks at what the file removes and renames, and who comes there."""

    metadata = RuleMetadata(
        code="RS606",
        name="removal-race",
        summary=Translated(
            "one path removed or renamed by every rank", "每个 rank 都删除或重命名同一路径"
        ),
        level=Level.WARNING,
        symptom=Symptom.CRASHES,
        since="0.1.0",
    )
    scope = Scope.MODULE
    at_rest = True
    on_several_gpus = True
    follows_callers = True
    mentions = MENTIONS

    def check(self, node: ast.AST, module: Module, launch: LaunchContext) -> Iterator[Finding]:  # noqa: ARG002
        """A finding for each path that all ranks take away."""
        if not may_be_reached(module, launch):
            return
        for removal in racing_removals(module, launch):
            message = _CHECKED if removal.looks_first else _UNCHECKED
            path = in_one_line(module.text_of(removal.path))
            yield self.finding(
                module, removal.call.func, message.filled(path=path), fixes=_fixes(module, removal)
            )


def _fixes(module: Module, removal: Removal) -> list[FixOffer]:
    if removal.is_unlink and removal.looks_first:
        return [_MISSING_OK]
    return [_ONLY_ZERO] if may_be_guarded(module, removal.call) else []
