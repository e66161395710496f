"""RS223: the model is not on the first device of its nn.DataParallel."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from ranksafe.checker.finding import Finding, Level, Related
from ranksafe.checker.rule import Rule, RuleMetadata, Scope, Symptom
from ranksafe.launch.context import LaunchContext
from ranksafe.localization import Translated
from ranksafe.semantics.facts import DATA_PARALLEL
from ranksafe.semantics.module import Module

from ranksafe_rules.devices.data_parallel_on_another_device.placements import (
    Placement,
    placement_of,
    wanted_device,
)

_ELSEWHERE: Final = Translated(
    "DataParallel wants the model on cuda:{wanted}, the first of its devices, and it is put on cuda:{found}: the first "
    'forward fails ("module must have its parameters and buffers on device cuda:{wanted} (device_ids[0]) but found '
    'one of them on device: cuda:{found}")',
    "DataParallel 要求模型位于其第一个设备 cuda:{wanted}，而模型被放到了 cuda:{found}：第一次前向就会失败（“module "
    "must have its parameters and buffers on device cuda:{wanted} (device_ids[0]) but found one of them on device: "
    "cuda:{found}”）",
)
_SPREAD: Final = Translated(
    "DataParallel wants the whole model on cuda:{wanted}, and its device_map spreads it over the GPUs: the first "
    'forward fails ("module must have its parameters and buffers on device cuda:{wanted} (device_ids[0])"); a model '
    "with a device_map already uses all of them",
    "DataParallel 要求整个模型位于 cuda:{wanted}，而 device_map 会把它分散到各个 GPU：第一次前向就会失败（“module must "
    "have its parameters and buffers on device cuda:{wanted} (device_ids[0])”）；带 device_map "
    "的模型已经在使用所有 GPU",
)
_PUT: Final = Translated("the model is placed here", "模型在此处放置")


class DataParallelOnAnotherDevice(Rule):
    """Listens to nn.DataParallel."""

    metadata = RuleMetadata(
        code="RS223",
        name="data-parallel-on-another-device",
        summary=Translated(
            "a model that is not on the first device of its nn.DataParallel",
            "模型不在 nn.DataParallel 的第一个设备上",
        ),
        level=Level.WARNING,
        symptom=Symptom.CRASHES,
        since="0.1.0",
        run_signatures=(r"module must have its parameters and buffers on device cuda:\d+",),
    )
    scope = Scope.MODULE
    at_rest = True
    listens_to = (ast.Call,)
    called_names = frozenset({"DataParallel"})
    mentions = frozenset({"DataParallel"})

    def check(self, node: ast.AST, module: Module, launch: LaunchContext) -> Iterator[Finding]:
        """A finding where the two devices differ."""
        assert isinstance(node, ast.Call)
        if module.qualified_name(node.func) != DATA_PARALLEL:
            return
        if launch.gpus is not None and launch.gpus < 2:
            return
        wanted = wanted_device(module, node)
        placement = None if wanted is None else placement_of(module, node)
        if placement is None or not _differs(placement, wanted):
            return
        message = _SPREAD if placement.spread else _ELSEWHERE
        certain = launch.gpus is not None and not placement.spread and not module.guards(node)
        yield self.finding(
            module,
            node,
            message.filled(wanted=wanted, found=placement.device),
            level=Level.ERROR if certain else Level.WARNING,
            related=[Related(_PUT, module.range_of(placement.node))],
        )


def _differs(placement: Placement, wanted: int | None) -> bool:
    return placement.spread or placement.device not in (None, wanted)
