"""RS316: Lightning cannot put a distributed sampler into the batch sampler of a DataLoader."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from ranksafe.checker.finding import Finding, Level, Related
from ranksafe.checker.rule import Rule, RuleMetadata, Scope, Symptom
from ranksafe.launch.context import LaunchContext
from ranksafe.localization import Translated
from ranksafe.semantics.module import Module

from ranksafe_rules._shared.lightning_processes import sharing_processes
from ranksafe_rules._shared.processes import Certainty
from ranksafe_rules.data.batch_sampler_not_replaceable.batch_samplers import Obstacle, obstacle

_LOADERS: Final = frozenset(
    {"torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader"}
)
_MESSAGES: Final = {
    Obstacle.NO_BATCH_SAMPLER: Translated(
        "With several GPUs Lightning puts a distributed sampler into {name}, and it is no BatchSampler of torch: "
        '"Lightning can\'t inject a (distributed) sampler into your batch sampler"; share the batches yourself and '
        "pass use_distributed_sampler=False to the Trainer",
        "使用多个 GPU 时，Lightning 会把分布式采样器放进 {name}，而它不是 torch 的 BatchSampler：“Lightning can't "
        "inject a (distributed) sampler into your batch sampler”；请自行划分批次，"
        "并给 Trainer 传入 use_distributed_sampler=False",
    ),
    Obstacle.NO_SAMPLER_ARGUMENT: Translated(
        "With several GPUs Lightning puts a distributed sampler into {name}, whose __init__ has no parameter "
        '`sampler`: "Trying to inject a modified sampler into the batch sampler" (TypeError); take a sampler, or '
        "share the batches yourself and pass use_distributed_sampler=False to the Trainer",
        "使用多个 GPU 时，Lightning 会把分布式采样器放进 {name}，而它的 __init__ 没有 `sampler` 参数：“Trying to "
        "inject a modified sampler into the batch sampler”（TypeError）；请接受一个 sampler，或自行划分批次，"
        "并给 Trainer 传入 use_distributed_sampler=False",
    ),
}
_CLASS: Final = Translated("the batch sampler", "该批采样器")


class BatchSamplerNotReplaceable(Rule):
    """Listens to loaders."""

    metadata = RuleMetadata(
        code="RS316",
        name="batch-sampler-not-replaceable",
        summary=Translated(
            "a batch sampler that Lightning cannot make distributed",
            "Lightning 无法改为分布式的批采样器",
        ),
        level=Level.INFORMATION,
        symptom=Symptom.CRASHES,
        since="0.1.0",
        run_signatures=(
            r"Lightning can't inject a \(distributed\) sampler into your batch sampler",
            r"Trying to inject a modified sampler into the batch sampler",
        ),
    )
    scope = Scope.MODULE
    at_rest = True
    listens_to = (ast.Call,)
    called_names = frozenset({"DataLoader"})
    mentions = frozenset({"LightningModule", "LightningDataModule"})

    def check(self, node: ast.AST, module: Module, launch: LaunchContext) -> Iterator[Finding]:
        """A finding where the class of the batch sampler is in the file."""
        assert isinstance(node, ast.Call)
        if module.qualified_name(node.func) not in _LOADERS:
            return
        found = obstacle(module, node)
        certainty = sharing_processes(module, launch) if found is not None else Certainty.NEVER
        if found is None or certainty is Certainty.NEVER:
            return
        cls, kind = found
        yield self.finding(
            module,
            node,
            _MESSAGES[kind].filled(name=cls.name),
            level=Level.INFORMATION if certainty is Certainty.POSSIBLE else Level.WARNING,
            related=[Related(_CLASS, module.range_of(cls))],
        )
