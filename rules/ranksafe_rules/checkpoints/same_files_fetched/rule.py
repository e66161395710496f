"""RS605: every rank downloads or unpacks the same files."""

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
from ranksafe_rules.checkpoints.fetched_files import MENTIONS, Kind, fetches_on_every_rank
from ranksafe_rules.checkpoints.ranks_in_turn import can_go_first, can_take_turns

_MESSAGES: Final = {
    Kind.DATASET: Translated(
        "Every rank downloads {what} when it is missing: they write the same files at the same time, and a rank that "
        'checks or reads them meanwhile ends ("Dataset not found or corrupted")',
        "{what} 不存在时，每个 rank 都会下载它：它们同时写入相同的文件，此时检查或读取这些文件的 rank 会报错退出"
        "（“Dataset not found or corrupted”）",
    ),
    Kind.HUB: Translated(
        "Every rank fetches {what} when it is not in torch.hub's cache: they unpack and move the same folder, and the "
        "slower ones do not find their files",
        "torch.hub 缓存中没有 {what} 时，每个 rank 都会获取它：它们解压并移动同一个目录，"
        "较慢的 rank 会找不到自己的文件",
    ),
    Kind.FILE: Translated(
        "Every rank downloads to {what}: they write the same file at the same time, and a rank that comes later finds "
        "it there and reads half of it",
        "每个 rank 都下载到 {what}：它们同时写入同一个文件，稍后到达的 rank 会发现文件已存在，却只读到一部分",
    ),
    Kind.ARCHIVE: Translated(
        "Every rank unpacks into {what}: they write over the same files, and a rank that reads one meanwhile finds it "
        "empty or cut short",
        "每个 rank 都解压到 {what}：它们会覆盖相同的文件，此时读取文件的 rank 会得到空的或不完整的内容",
    ),
    Kind.COMMAND: Translated(
        "Every rank runs this {what} on the same files: they write them at the same time, and a rank that reads one "
        "meanwhile finds it incomplete",
        "每个 rank 都对相同的文件运行这条 {what} 命令：它们同时写入，此时读取文件的 rank 会得到不完整的内容",
    ),
}
_TURNS: Final = FixOffer(
    "main-process-first",
    Translated(
        "Let the main process do it first, and the others after it: main_process_first()",
        "让主进程先执行，其他进程随后执行：main_process_first()",
    ),
    Applicability.SAFE,
)
_FIRST: Final = FixOffer(
    "rank-0-first",
    Translated(
        "Let rank 0 download it before the others look", "让 rank 0 先下载，其他 rank 随后再检查"
    ),
    Applicability.SAFE,
)


class SameFilesFetched(Rule):
    """Looks at what the file downloads and unpacks, and who comes there."""

    metadata = RuleMetadata(
        code="RS605",
        name="same-files-fetched",
        summary=Translated(
            "the same files downloaded or unpacked by every rank",
            "每个 rank 都下载或解压相同的文件",
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
        """A finding for each thing that all ranks fetch to one place."""
        if not may_be_reached(module, launch):
            return
        for fetch in fetches_on_every_rank(module, launch):
            fixes = []
            if can_take_turns(module, fetch.call):
                fixes.append(_TURNS)
            elif fetch.kind is Kind.DATASET and can_go_first(module, fetch.call):
                fixes.append(_FIRST)
            message = _MESSAGES[fetch.kind].filled(what=in_one_line(fetch.what))
            yield self.finding(module, fetch.call.func, message, fixes=fixes)
