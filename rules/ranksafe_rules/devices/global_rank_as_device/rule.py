"""RS221: the rank among all machines is used as the number of a GPU of this one."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from ranksafe.checker.finding import Applicability, Finding, FixOffer, Level
from ranksafe.checker.rule import Rule, RuleMetadata, Scope, Symptom
from ranksafe.launch.context import LaunchContext
from ranksafe.localization import Translated
from ranksafe.semantics.guards import GuardKind, kind_of_words
from ranksafe.semantics.module import Module

from ranksafe_rules._shared.chosen_devices import NAMING_KINDS, numbers_chosen, same_numbers
from ranksafe_rules._shared.processes import Certainty, several_processes
from ranksafe_rules.devices.global_rank_as_device.ranks import (
    is_global_rank,
    is_of_several_nodes,
    shows_several_nodes,
)

_SEVERAL: Final = Translated(
    "{rank} counts the processes of all machines, and a GPU's number those of one: on every machine but the first "
    'this GPU does not exist ("invalid device ordinal"); use LOCAL_RANK',
    "{rank} 是所有机器上进程的编号，而 GPU 编号只在一台机器内有效：除第一台以外的机器上不存在该 GPU（“invalid device "
    "ordinal”）；请使用 LOCAL_RANK",
)
_ONE: Final = Translated(
    "{rank} counts the processes of all machines: right as a GPU's number on one machine, on a second one the GPU "
    'does not exist ("invalid device ordinal"); LOCAL_RANK is right on both',
    "{rank} 是所有机器上进程的编号：单机时用作 GPU 编号没有问题，在第二台机器上该 GPU 并不存在（“invalid device "
    "ordinal”）；LOCAL_RANK 在两种情况下都正确",
)
_MODULO: Final = FixOffer(
    "modulo-device-count",
    Translated("Take the rank modulo the number of GPUs of the machine", "对本机的 GPU 数取模"),
    Applicability.SAFE,
)


class GlobalRankAsDevice(Rule):
    """Listens to GPUs being named by a number."""

    metadata = RuleMetadata(
        code="RS221",
        name="global-rank-as-device",
        summary=Translated(
            "the global rank used as the number of a GPU", "把全局 rank 用作 GPU 编号"
        ),
        level=Level.INFORMATION,
        symptom=Symptom.CRASHES,
        since="0.1.0",
        run_signatures=(r"CUDA error: invalid device ordinal",),
    )
    scope = Scope.MODULE
    at_rest = True
    listens_to = NAMING_KINDS
    mentions = frozenset({"get_rank", "RANK", "SLURM_PROCID", "process_index"})
    on_several_gpus = True

    def check(self, node: ast.AST, module: Module, launch: LaunchContext) -> Iterator[Finding]:
        """A finding on the number, where a function first uses it."""
        for number in numbers_chosen(module, node):
            if isinstance(number, ast.Constant) or not is_global_rank(module, number):
                continue
            if several_processes(module, launch) is Certainty.NEVER or _is_one_machine(
                module, node
            ):
                continue
            if same_numbers(module, node, number)[0] is not number:
                continue  # One variable, one finding.
            several = module.text_says(shows_several_nodes)
            if not several and not is_of_several_nodes(module):
                continue
            message = (_SEVERAL if several else _ONE).filled(rank=module.text_of(number))
            level = Level.WARNING if several else Level.INFORMATION
            yield self.finding(module, number, message, level=level, fixes=[_MODULO])


def _is_one_machine(module: Module, node: ast.AST) -> bool:
    """Whether the program starts its processes itself, narrows what they see, or has asked how many GPUs there are."""
    return (
        bool(module.facts.visible_devices)
        or any(module.calls_written(name) for name in ("spawn", "start_processes"))
        or any(_counts_devices(guard.test) for guard in module.guards(node))
    )


def _counts_devices(test: ast.expr) -> bool:
    return any(kind_of_words(part) is GuardKind.DEVICE_COUNT for part in ast.walk(test))
