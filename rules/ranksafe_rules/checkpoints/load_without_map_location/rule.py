"""RS601: every process loads a checkpoint to the GPU that it was saved from."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ranksafe.checker.finding import Applicability, Finding, FixOffer, Level
from ranksafe.checker.rule import Rule, RuleMetadata, Scope, Symptom
from ranksafe.launch.context import LaunchContext
from ranksafe.localization import Translated
from ranksafe.semantics.module import Module

from ranksafe_rules._shared.every_rank import (
    every_rank,
    may_be_reached,
    may_run_on_every_rank,
    runs_on_every_rank,
)
from ranksafe_rules._shared.processes import Certainty
from ranksafe_rules._shared.rank_words import asks_for_the_rank
from ranksafe_rules.checkpoints.loaded_files import Use, may_be_called, unplaced_loads

_MESSAGE = Translated(
    "Every process loads this checkpoint to the GPU that it was saved from, which is cuda:0 for all of them when rank "
    "0 saved it: GPU 0 holds one copy per process",
    "每个进程都会把这个检查点加载到它保存时所在的 GPU；若由 rank 0 保存，则所有进程都加载到 cuda:0，GPU 0 "
    "上会有每个进程的一份副本",
)
_ON_THE_CPU = Translated('Load to the CPU: map_location="cpu"', '加载到 CPU：map_location="cpu"')
_MOVED = Translated(
    'Load to the CPU: map_location="cpu" (what is loaded stays there unless the code moves it)',
    '加载到 CPU：map_location="cpu"（除非代码再移动，否则加载的内容会留在 CPU 上）',
)


class LoadWithoutMapLocation(Rule):
    """Looks at all calls of torch.load."""

    metadata = RuleMetadata(
        code="RS601",
        name="load-without-map-location",
        summary=Translated(
            "torch.load without map_location in every process",
            "每个进程都调用 torch.load 而未指定 map_location",
        ),
        level=Level.WARNING,
        symptom=Symptom.SLOW,
        since="0.1.0",
        run_signatures=(
            r"Attempting to deserialize object on CUDA device \d+ but torch\.cuda\.device_count\(\) is \d+",
        ),
    )
    scope = Scope.MODULE
    at_rest = True
    on_several_gpus = True
    follows_callers = True
    mentions = frozenset({"torch.load", "import load"})

    def check(self, node: ast.AST, module: Module, launch: LaunchContext) -> Iterator[Finding]:  # noqa: ARG002
        """A finding for each checkpoint that comes to the GPU that it was saved from."""
        loads = list(unplaced_loads(module))
        if not loads or not may_be_reached(module, launch):
            return
        for load in loads:
            safe = load.use is Use.STATE
            if safe and every_rank(module, launch) >= Certainty.SHOWN:
                everywhere = may_run_on_every_rank(module, load.call) and may_be_called(
                    module, load, launch
                )
            else:
                # What goes by a name only, or is in a file of its own, has to be seen running on all ranks.
                everywhere = runs_on_every_rank(module, load.call, launch)
            # Callers in other files, asked last, may have each rank load a file of its own.
            if not everywhere or asks_for_the_rank(module, load.source):
                continue
            offer = FixOffer(
                "on-the-cpu",
                _ON_THE_CPU if safe else _MOVED,
                Applicability.SAFE if safe else Applicability.UNSAFE,
            )
            yield self.finding(module, load.call.func, _MESSAGE, fixes=[offer])
