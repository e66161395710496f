"""RS305: DataParallel gets batches that leave GPUs without work."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ranksafe.checker.finding import Applicability, Finding, FixOffer, Level, Related
from ranksafe.checker.rule import Rule, RuleMetadata, Symptom
from ranksafe.launch.context import LaunchContext
from ranksafe.localization import Translated
from ranksafe.semantics.module import Module

from ranksafe_rules.data.passes import Pass, chunk_sizes, passes, rows_per_batch

_IDLE = Translated(
    "DataParallel cuts a batch of {batch} over {devices} GPUs into {chunks}: {used} of {devices} GPUs work",
    "DataParallel 把 {batch} 个样本的批次在 {devices} 个 GPU 上切成 {chunks}：{devices} 个 GPU 中只有 {used} 个在工作",
)
_WRAPPED = Translated("the model is replicated here", "模型在此处被复制到多个 GPU")
_FULL = Translated(
    "Use batch_size={batch}, the same number of samples on every GPU (changes the training)",
    "改用 batch_size={batch}，每个 GPU 的样本数相同（会改变训练）",
)


class IdleReplicas(Rule):
    """Listens to DataLoaders, and does the chunk arithmetic of ``Tensor.chunk``."""

    metadata = RuleMetadata(
        code="RS305",
        name="idle-replicas",
        summary=Translated(
            "DataParallel batch with fewer chunks than GPUs",
            "DataParallel 的批次切出的分块少于 GPU 数",
        ),
        level=Level.INFORMATION,
        symptom=Symptom.SLOW,
        since="0.1.0",
    )
    listens_to = (ast.Call,)
    called_names = frozenset({"DataLoader"})
    mentions = frozenset({"DataParallel"})

    def check(self, node: ast.AST, module: Module, launch: LaunchContext) -> Iterator[Finding]:
        """A finding when the batch of a training gives fewer chunks than there are GPUs."""
        assert isinstance(node, ast.Call)
        batch = rows_per_batch(module, node)
        if batch is None:
            return
        for found in passes(module, launch, node):
            chunks = chunk_sizes(batch, found.devices)
            if not found.trains:
                continue  # Who evaluates sample by sample means to.
            if not found.splits_batches or len(chunks) == found.devices or _crashes(found, chunks):
                continue
            full = -(-batch // found.devices) * found.devices
            message = _IDLE.filled(
                batch=batch,
                devices=found.devices,
                chunks=", ".join(map(str, chunks)),
                used=len(chunks),
            )
            offer = FixOffer("fill-gpus", _FULL.filled(batch=full), Applicability.UNSAFE)
            yield self.finding(
                module,
                module.argument_node(node, "batch_size", 1) or node.func,
                message,
                related=[Related(_WRAPPED, module.range_of(found.wrap.func))],
                fixes=[offer],
                full=full,
            )
            return


def _crashes(found: Pass, chunks: list[int]) -> bool:
    """RS302 speaks then: the batch does not only waste GPUs, it fails."""
    return found.trains and found.normalises_single_values and 1 in chunks
