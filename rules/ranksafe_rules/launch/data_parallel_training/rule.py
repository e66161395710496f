"""RS103: a model is trained on several GPUs by nn.DataParallel, and nothing better is on offer."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from ranksafe.checker.finding import Finding, Level
from ranksafe.checker.rule import Rule, RuleMetadata, Scope, Symptom
from ranksafe.launch.context import LaunchContext
from ranksafe.localization import Translated
from ranksafe.semantics.facts import DATA_PARALLEL, OF_SEVERAL_PROCESSES
from ranksafe.semantics.module import Module

from ranksafe_rules._shared.processes import is_unit_test
from ranksafe_rules._shared.replicas import listed_devices
from ranksafe_rules._shared.visible_devices import leaves_one_gpu
from ranksafe_rules.launch.data_parallel_training.evaluations import is_only_evaluated

_MESSAGE: Final = Translated(
    "one process drives all GPUs: each forward copies the whole model from the first GPU to the others and gathers "
    "the outputs there; PyTorch recommends DistributedDataParallel, one process per GPU, on a single machine too",
    "由一个进程驱动所有 GPU：每次前向都会把整个模型从第一张 GPU 复制到其他 GPU，并在第一张 GPU 上收集输出；"
    "即使只有一台机器，PyTorch 也推荐每张 GPU 一个进程的 DistributedDataParallel",
)
_MOST_WRAPS: Final = 20


class DataParallelTraining(Rule):
    """Looks at the first wrap of the file: what is to be changed is the script, not the line."""

    metadata = RuleMetadata(
        code="RS103",
        name="data-parallel-training",
        summary=Translated(
            "A model trained on several GPUs by one process, with nn.DataParallel",
            "用 nn.DataParallel 在一个进程中以多张 GPU 训练模型",
        ),
        level=Level.INFORMATION,
        symptom=Symptom.SLOW,
        since="0.1.0",
    )
    scope = Scope.MODULE
    at_rest = True
    mentions = frozenset({"DataParallel"})

    def check(self, node: ast.AST, module: Module, launch: LaunchContext) -> Iterator[Finding]:  # noqa: ARG002
        """A finding where the project trains the model, and neither this file nor one that imports it speaks of
        several processes."""
        if launch.gpus is not None and launch.gpus < 2:
            return
        wraps = [call for call in module.calls(DATA_PARALLEL) if listed_devices(module, call) != 1]
        # A Trainer that is given the wrapped model is RS102's.
        if not wraps or module.facts.trainers or is_unit_test(module) or leaves_one_gpu(module):
            return
        if module.may_wrap_models or not module.users_mention("backward("):
            return
        if any(module.users_mention(word) for word in OF_SEVERAL_PROCESSES):
            return
        looked_at = wraps[:_MOST_WRAPS]
        trained = (wrap for wrap in looked_at if not is_only_evaluated(module, wrap))
        first = next(trained, None)
        if first is not None:
            yield self.finding(module, first.func, _MESSAGE)
