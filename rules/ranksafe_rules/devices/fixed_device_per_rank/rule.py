"""RS222: every process uses the GPU whose number is written in the source."""

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
from ranksafe_rules.devices.fixed_device_per_rank.fixed import (
    Form,
    every_rank_comes_here,
    fixed_device,
    gives_other_devices,
    has_ranks,
)

_ALL: Final = Translated(
    "Every process uses GPU {number} here: the others stay empty, its memory runs out, or the work meets tensors of "
    "another GPU; with one process per GPU the number comes from LOCAL_RANK",
    "所有进程都在此处使用 GPU {number}：其他 GPU 闲置，该 GPU 显存不足，或与其他 GPU 上的张量相遇而出错；每个 GPU "
    "一个进程时，编号应取自 LOCAL_RANK",
)
_OWN: Final = FixOffer(
    "own-device",
    Translated(
        "Use the GPU of this process (moves the work of all processes but one)",
        "使用当前进程自己的 GPU（除一个进程外，其余进程的计算都会移到别的 GPU）",
    ),
    Applicability.UNSAFE,
)


class FixedDevicePerRank(Rule):
    """Listens to numbers and strings."""

    metadata = RuleMetadata(
        code="RS222",
        name="fixed-device-per-rank",
        summary=Translated(
            "one certain GPU in code that runs once per GPU",
            "每个 GPU 一个进程的代码中写死了某个 GPU",
        ),
        level=Level.WARNING,
        symptom=Symptom.SLOW,
        since="0.1.0",
        run_signatures=(r"Duplicate GPU detected ?: rank \d+ and rank \d+ both on CUDA device",),
    )
    scope = Scope.MODULE
    at_rest = True
    listens_to = (ast.Constant,)
    mentions = frozenset({"cuda:", ".cuda(", '"cuda"', "'cuda'", "device_ids", "set_device"})
    on_several_gpus = True

    def check(self, node: ast.AST, module: Module, launch: LaunchContext) -> Iterator[Finding]:
        """A finding on the number, where all ranks come by."""
        found = fixed_device(module, node)
        if found is None or module.text_says(gives_other_devices):
            return
        if not has_ranks(module, found.node):
            return
        if several_processes(module, launch, needs_a_group=True) is Certainty.NEVER:
            return
        if not every_rank_comes_here(module, found.node):
            return
        number = str(found.node.value).removeprefix("cuda:")  # type: ignore[attr-defined]
        chosen = bool(module.facts.accelerator) or found.form is Form.CHOSEN
        fixes = [_OWN] if chosen or module.users_mention("set_device") else []
        yield self.finding(module, found.node, _ALL.filled(number=number), fixes=fixes)
