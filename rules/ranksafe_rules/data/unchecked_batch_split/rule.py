"""RS304: a batch size is divided by the number of processes, and nothing checks the remainder."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Final

from ranksafe.checker.finding import Applicability, Finding, FixOffer, Level
from ranksafe.checker.rule import Rule, RuleMetadata, Stability, Symptom
from ranksafe.launch.context import LaunchContext
from ranksafe.localization import Translated
from ranksafe.semantics.module import Module

from ranksafe_rules.data.splits import COUNTS, split_at

_BATCH: Final = re.compile(r"(^|(?<!_in)_)(batch_size|batchsize|batch|bsz|bs)$", re.IGNORECASE)
"""Not ``num_items_in_batch``: a count of what is in a batch may have a remainder."""
_EVALUATION: Final = re.compile(
    r"(^|[^a-z])(test|val|valid|validation|eval)([^a-z]|$)", re.IGNORECASE
)
_GPUS_OF_A_MACHINE: Final = 8

_UNKNOWN: Final = Translated(
    "{batch} // {count} drops the remainder: with a batch size that {count} does not divide, the job trains on fewer "
    "samples per step than configured, and on none (an error in DataLoader) when the batch is smaller",
    "{batch} // {count} 会丢掉余数：当批大小不能被 {count} 整除时，每步训练的样本比配置的少；批大小更小时结果为 0，"
    "DataLoader 会报错",
)
_SMALLER: Final = Translated(
    "{size} // {devices} is {share}: {devices} processes train on {total} samples per step, not {size}",
    "{size} // {devices} 等于 {share}：{devices} 个进程每步训练 {total} 个样本，而不是 {size} 个",
)
_NONE: Final = Translated(
    '{size} // {devices} is 0, and DataLoader refuses it ("batch_size should be a positive integer value")',
    "{size} // {devices} 等于 0，DataLoader 会报错（“batch_size should be a positive integer value”）",
)
_CHECK: Final = Translated(
    "Stop with an error when the batch size is not divisible", "批大小不能整除时报错并停止"
)


class UncheckedBatchSplit(Rule):
    """Listens to floor divisions."""

    metadata = RuleMetadata(
        code="RS304",
        name="unchecked-batch-split",
        summary=Translated(
            "batch size divided by the world size without a check", "批大小除以进程数时没有检查余数"
        ),
        level=Level.INFORMATION,
        symptom=Symptom.WRONG,
        since="0.1.0",
        stability=Stability.PREVIEW,
        run_signatures=(r"batch_size should be a positive integer value, but got batch_size=0",),
    )
    listens_to = (ast.BinOp, ast.AugAssign)
    mentions = COUNTS

    def check(self, node: ast.AST, module: Module, launch: LaunchContext) -> Iterator[Finding]:
        """A finding when no remainder is looked at anywhere in the file."""
        split = split_at(module, node)
        if split is None or not _BATCH.search(split.batch_name):
            return
        if _EVALUATION.search(module.text_of(split.batch)):
            return  # A smaller batch leaves no sample out there.
        if split.is_checked(module) or not split.becomes_a_batch_size(module, node):
            return
        size = module.values(split.batch).only_constant()
        if isinstance(size, int):
            message_and_level = _known_size(size, launch)
            if message_and_level is None:
                return
            message, level = message_and_level
        elif _is_usually_whole(split.default_size(module), launch):
            return
        else:
            message = _UNKNOWN.filled(
                batch=module.text_of(split.batch), count=module.text_of(split.count)
            )
            level = Level.INFORMATION
        fixes = [FixOffer("check-divisible", _CHECK, Applicability.SAFE)]
        yield self.finding(module, node, message, level=level, fixes=fixes)


def _is_usually_whole(default: int | None, launch: LaunchContext) -> bool:
    """Whether as many GPUs as there are, or as a machine has at most, divide the default of an option: who gives
    another one knows what for."""
    return default is not None and default % (launch.gpus or _GPUS_OF_A_MACHINE) == 0


def _known_size(size: int, launch: LaunchContext) -> tuple[Translated, Level] | None:
    devices = launch.assumed_gpus
    share = size // devices
    if share == 0:
        level = Level.WARNING if launch.gpus is None else Level.ERROR
        return _NONE.filled(size=size, devices=devices), level
    if size % devices == 0:
        return None
    message = _SMALLER.filled(size=size, devices=devices, share=share, total=share * devices)
    return message, Level.WARNING
