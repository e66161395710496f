"""RS312: DistributedDataParallel trains on a loader that gives each rank the whole dataset."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from ranksafe.checker.finding import Applicability, Finding, FixOffer, Level
from ranksafe.checker.rule import Rule, RuleMetadata, Scope, Symptom
from ranksafe.launch.context import LaunchContext
from ranksafe.localization import Translated
from ranksafe.semantics.module import Module

from ranksafe_rules._shared.processes import Certainty, several_processes
from ranksafe_rules._shared.trails.follow import trail_of
from ranksafe_rules._shared.trails.holder import Form
from ranksafe_rules.data.distributed_training import may_be_wrapped, wrap_trained_with
from ranksafe_rules.data.loader_not_sharded.sharding import sharding
from ranksafe_rules.data.wholes import is_whole, seeds_by_rank, shares_data

LOADER: Final = "torch.utils.data.DataLoader"
_GIVEN: Final = (("sampler", 3), ("batch_sampler", 4))

_SHUFFLED: Final = Translated(
    "Every rank goes through the whole dataset: DistributedDataParallel does not split it, and neither does this "
    "loader. An epoch is as long as on one GPU, and each sample is used once per rank (with one seed for all ranks: in "
    "the same batches)",
    "每个 rank 都会遍历整个数据集：DistributedDataParallel 不划分数据，这个 DataLoader 也没有。"
    "一个 epoch 和单卡一样长，每个样本会被每个 rank 各用一次（若所有 rank 的随机种子相同，连批次都一样）",
)
_IN_ORDER: Final = Translated(
    "Every rank trains on the whole dataset in its order: DistributedDataParallel does not split the data, and neither "
    "does this loader, so that ranks with the same dataset get the same batches and the other GPUs add nothing",
    "每个 rank 都按顺序遍历整个数据集：DistributedDataParallel 不划分数据，这个 DataLoader 也没有；"
    "各 rank 的数据集若相同，批次也完全相同，其余 GPU 没有任何贡献",
)
_WRAP: Final = Translated("The model is trained on several ranks", "模型在多个 rank 上训练")
_FIX: Final = Translated(
    "Give each rank its share with DistributedSampler (changes the batches)",
    "用 DistributedSampler 让每个 rank 只取自己的一份（会改变批次）",
)


class LoaderNotSharded(Rule):
    """Listens to constructions of DataLoader."""

    metadata = RuleMetadata(
        code="RS312",
        name="loader-not-sharded",
        summary=Translated(
            "DistributedDataParallel trains on a loader that every rank goes through as a whole",
            "DistributedDataParallel 训练时，每个 rank 都遍历完整的 DataLoader",
        ),
        level=Level.WARNING,
        symptom=Symptom.WRONG,
        since="0.1.0",
        silent_kinds=("same-samples",),
    )
    scope = Scope.MODULE
    at_rest = True
    listens_to = (ast.Call,)
    called_names = frozenset({"DataLoader"})

    def check(self, node: ast.AST, module: Module, launch: LaunchContext) -> Iterator[Finding]:
        """A finding when a loop trains with the loader and nothing shares its data among the ranks."""
        if not isinstance(node, ast.Call) or module.qualified_name(node.func) != LOADER:
            return
        if several_processes(module, launch, needs_a_group=True) is Certainty.NEVER:
            return
        if module.code_says(shares_data) or not _is_plain(module, node):
            return
        shuffles = _shuffles(module, node)
        if shuffles is None or (shuffles and seeds_by_rank(module)):
            return
        if not may_be_wrapped(module):
            return
        trail = trail_of(module, node, Form.LOADER)
        wrap = wrap_trained_with(trail)
        if wrap is None:
            return
        fixes = []
        if wrap.always and sharding(module, node, trail) is not None:
            fixes = [FixOffer("shard", _FIX, Applicability.UNSAFE)]
        message = _SHUFFLED if shuffles else _IN_ORDER
        related = [wrap.related(module, _WRAP)]
        yield self.finding(module, node.func, message, related=related, fixes=fixes)


def _is_plain(module: Module, loader: ast.Call) -> bool:
    """Whether the loader goes through a whole dataset of which it is known where it comes from."""
    if any(module.argument(loader, name, position) is not None for name, position in _GIVEN):
        return False
    if any(keyword.arg is None for keyword in loader.keywords):
        return False
    dataset = module.argument_node(loader, "dataset", 0)
    return dataset is not None and is_whole(module, dataset)


def _shuffles(module: Module, loader: ast.Call) -> bool | None:
    """Whether the loader shuffles; None when that is not known."""
    values = module.argument(loader, "shuffle", 2)
    if values is None:
        return False
    constant = values.only_constant()
    return bool(constant) if isinstance(constant, (bool, int)) else None
