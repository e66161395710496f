"""RS313: an iterable dataset of which every rank reads everything."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from ranksafe.checker.finding import Applicability, Finding, FixOffer, Level, Related
from ranksafe.checker.rule import Rule, RuleMetadata, Scope, Symptom
from ranksafe.launch.context import LaunchContext
from ranksafe.localization import Translated
from ranksafe.semantics.module import Module

from ranksafe_rules._shared.processes import Certainty, several_processes
from ranksafe_rules._shared.trails.follow import trail_of
from ranksafe_rules._shared.trails.holder import Form
from ranksafe_rules.data.distributed_training import may_be_wrapped, wrap_trained_with
from ranksafe_rules.data.iterable_dataset_not_sharded.sources import (
    Kind,
    Source,
    can_be_split,
    source_of,
)
from ranksafe_rules.data.wholes import shares_data

LOADER: Final = "torch.utils.data.DataLoader"
WEB_DATASET: Final = frozenset({"webdataset.WebDataset", "webdataset.compat.WebDataset"})

_OWN: Final = Translated(
    "Every rank reads all of this IterableDataset: neither its __iter__ nor the loader splits it by rank, so each "
    "sample is trained on once per rank (get_worker_info knows the loader's workers, not the ranks)",
    "每个 rank 都会读完整个 IterableDataset：__iter__ 和 DataLoader 都没有按 rank 划分，"
    "每个样本会被每个 rank 各训练一次（get_worker_info 只知道 DataLoader 的 worker，不知道 rank）",
)
_STREAM: Final = Translated(
    "Every rank reads the whole stream: a DataLoader does not split it by rank, datasets.distributed."
    "split_dataset_by_node does",
    "每个 rank 都会读完整个数据流：DataLoader 不会按 rank 划分，需要 datasets.distributed.split_dataset_by_node",
)
_WEB: Final = Translated(
    'WebDataset has no nodesplitter: with several ranks it raises "you need to add an explicit nodesplitter to your '
    'input pipeline for multi-node training"',
    "WebDataset 没有 nodesplitter：多个 rank 时会抛出 “you need to add an explicit nodesplitter to your input pipeline "
    "for multi-node training”",
)
_ITERATION: Final = Translated("It gives every rank the same", "它给每个 rank 的数据都相同")
_WRAP: Final = Translated("The model is trained on several ranks", "模型在多个 rank 上训练")
_SPLIT: Final = Translated(
    "Split the stream by rank with split_dataset_by_node",
    "用 split_dataset_by_node 按 rank 划分数据流",
)
_NODESPLITTER: Final = Translated(
    "Split the shards by rank (nodesplitter=split_by_node)",
    "按 rank 划分分片（nodesplitter=split_by_node）",
)


class IterableDatasetNotSharded(Rule):
    """Listens to constructions of DataLoader and WebDataset."""

    metadata = RuleMetadata(
        code="RS313",
        name="iterable-dataset-not-sharded",
        summary=Translated(
            "An iterable dataset of which every rank reads everything",
            "每个 rank 都读取完整的可迭代数据集",
        ),
        level=Level.WARNING,
        symptom=Symptom.WRONG,
        since="0.1.0",
        run_signatures=(r"you need to add an explicit nodesplitter to your input pipeline",),
        silent_kinds=("same-samples",),
    )
    scope = Scope.MODULE
    at_rest = True
    listens_to = (ast.Call,)
    called_names = frozenset({"DataLoader", "WebDataset"})

    def check(self, node: ast.AST, module: Module, launch: LaunchContext) -> Iterator[Finding]:
        """A finding where nothing splits the data by rank."""
        if not isinstance(node, ast.Call):
            return
        name = module.qualified_name(node.func)
        if name in WEB_DATASET:
            yield from self._web_dataset(module, launch, node)
        elif name == LOADER:
            yield from self._loader(module, launch, node)

    def _loader(self, module: Module, launch: LaunchContext, loader: ast.Call) -> Iterator[Finding]:
        if several_processes(module, launch, needs_a_group=True) is Certainty.NEVER:
            return
        dataset = module.argument_node(loader, "dataset", 0)
        if dataset is None or module.code_says(shares_data) or not may_be_wrapped(module):
            return
        source = source_of(module, dataset)
        if source is None:
            return
        wrap = wrap_trained_with(trail_of(module, loader, Form.LOADER))
        if wrap is None:
            return
        related = [wrap.related(module, _WRAP), *_iteration(module, source)]
        fixes = []
        if source.kind is Kind.STREAM and wrap.always:
            if can_be_split(module, dataset):
                fixes = [FixOffer("split-by-node", _SPLIT, Applicability.SAFE)]
        message = _OWN if source.kind is Kind.OWN else _STREAM
        yield self.finding(module, source.call, message, related=related, fixes=fixes)

    def _web_dataset(
        self, module: Module, launch: LaunchContext, call: ast.Call
    ) -> Iterator[Finding]:
        if several_processes(module, launch) < Certainty.SHOWN or module.code_says(shares_data):
            return
        if any(keyword.arg in (None, "nodesplitter", "resampled") for keyword in call.keywords):
            return
        if len(call.args) != 1:
            return
        prefix = module.text_of(call.func).rpartition(".")[0]
        fixes = [FixOffer("nodesplitter", _NODESPLITTER, Applicability.SAFE)] if prefix else []
        yield self.finding(module, call.func, _WEB, fixes=fixes)


def _iteration(module: Module, source: Source) -> Iterator[Related]:
    if source.iteration is not None:
        place, method = source.iteration
        yield Related(_ITERATION, place.range_of(method), place.path_from(module))
