"""RS603: every rank makes the same directory, and all but the first fail."""

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
from ranksafe_rules.checkpoints.directories import MENTIONS, Creation, racing_creations

_UNCHECKED: Final = Translated(
    "Every rank makes {path}: the first one does, the others end with FileExistsError",
    "每个 rank 都创建 {path}：第一个成功，其余以 FileExistsError 结束",
)
_CHECKED: Final = Translated(
    "Every rank may find {path} missing before one of them makes it; the others then end with FileExistsError",
    "在某个 rank 创建 {path} 之前，其他 rank 可能也发现它不存在；它们随后以 FileExistsError 结束",
)
_MAY_EXIST: Final = Translated(
    "Let the directory exist: exist_ok=True", "允许目录已存在：exist_ok=True"
)
_NO_LONGER: Final = Translated(
    "Let the directory exist: exist_ok=True (a directory of an earlier run is then used again)",
    "允许目录已存在：exist_ok=True（此后会沿用以前运行留下的目录）",
)


class DirectoryRace(Rule):
    """Looks at the directories that the file makes, and who comes there."""

    metadata = RuleMetadata(
        code="RS603",
        name="directory-race",
        summary=Translated("one directory made by every rank", "每个 rank 都创建同一个目录"),
        level=Level.WARNING,
        symptom=Symptom.CRASHES,
        since="0.1.0",
        run_signatures=(r"FileExistsError: \[Errno 17\] File exists",),
    )
    scope = Scope.MODULE
    at_rest = True
    on_several_gpus = True
    follows_callers = True
    mentions = MENTIONS

    def check(self, node: ast.AST, module: Module, launch: LaunchContext) -> Iterator[Finding]:  # noqa: ARG002
        """A finding for each directory that all ranks make under one name."""
        if not may_be_reached(module, launch):
            return
        for creation in racing_creations(module, launch):
            message = _CHECKED if creation.looks_first else _UNCHECKED
            path = " ".join(module.text_of(creation.path).split())
            yield self.finding(
                module, creation.call.func, message.filled(path=path), fixes=[_offer(creation)]
            )


def _offer(creation: Creation) -> FixOffer:
    if creation.looks_first:
        return FixOffer("exist-ok", _MAY_EXIST, Applicability.SAFE)
    return FixOffer("exist-ok", _NO_LONGER, Applicability.UNSAFE)
