"""RS602: every rank writes the same file."""

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
from ranksafe_rules.checkpoints.rank_zero_guards import may_be_guarded
from ranksafe_rules.checkpoints.written_files import MENTIONS, writes_on_every_rank

_DIFFERENT: Final = Translated(
    "Every rank writes {path} here: they write over each other, so the file holds what the last one wrote, or parts of "
    "several",
    "每个 rank 都在此处写入 {path}：它们会互相覆盖，文件中只剩最后写入者的内容，或混有多个 rank 的内容",
)
_ALIKE: Final = Translated(
    "Every rank writes {path} here at the same time; one of them is enough, and who reads it meanwhile finds it "
    "half written",
    "每个 rank 都在此处同时写入 {path}；由一个 rank 写入即可，此时读取它的进程会读到不完整的文件",
)
_GUARD: Final = Translated(
    "Write it on rank 0 only (the other ranks write no file any more)",
    "只在 rank 0 上写入（其他 rank 不再写文件）",
)


class FileWrittenOnEveryRank(Rule):
    """Looks at what the file writes, and who comes there."""

    metadata = RuleMetadata(
        code="RS602",
        name="file-written-on-every-rank",
        summary=Translated("one file written by every rank", "每个 rank 都写同一个文件"),
        level=Level.WARNING,
        symptom=Symptom.WRONG,
        since="0.1.0",
        run_signatures=(
            r"PytorchStreamReader failed (reading|locating|finding)",
            r"storage has wrong size: expected -?\d+ got \d+",
        ),
        silent_kinds=("same-file-written",),
    )
    scope = Scope.MODULE
    at_rest = True
    on_several_gpus = True
    follows_callers = True
    mentions = MENTIONS

    def check(self, node: ast.AST, module: Module, launch: LaunchContext) -> Iterator[Finding]:  # noqa: ARG002
        """A finding for each file that all ranks write under one name."""
        if not may_be_reached(module, launch):
            return
        for write in writes_on_every_rank(module, launch):
            message = _ALIKE if write.alike else _DIFFERENT
            fixes = []
            if may_be_guarded(module, write.call):
                fixes.append(FixOffer("only-rank-0", _GUARD, Applicability.UNSAFE))
            yield self.finding(
                module,
                write.call.func,
                message.filled(path=" ".join(module.text_of(write.path).split())),
                level=Level.INFORMATION if write.alike else Level.WARNING,
                fixes=fixes,
            )
