"""How sure it is that a wrapper is there when the file runs on several GPUs."""

from __future__ import annotations

import re
from typing import Final

from ranksafe.checker.finding import Level
from ranksafe.launch.context import LaunchContext
from ranksafe.semantics.module import Module

from ranksafe_rules._shared.plain_python import data_parallel_possible
from ranksafe_rules._shared.processes import Certainty, several_processes
from ranksafe_rules._shared.wrapped_models import (
    Wrapped,
    Wrapper,
    may_prepare_for_other_strategies,
)

_OTHER_STRATEGY: Final = re.compile(r"deepspeed|fsdp", re.IGNORECASE)
"""A Trainer that is configured for them wraps the model in something else."""


def level_of(module: Module, launch: LaunchContext, wrapped: Wrapped) -> Level | None:
    """The level of what goes wrong because of a wrapper; None where there is none."""
    if launch.gpus is not None and launch.gpus < 2:
        return None
    if wrapped.how is Wrapper.DATA_PARALLEL:
        return Level.WARNING
    if wrapped.how is Wrapper.TRAINER:
        if module.text_says(_speaks_of_other_strategies):
            return None
        if data_parallel_possible(module, launch):
            return Level.WARNING
    return distributed_level(module, launch, wrapped)


def distributed_level(module: Module, launch: LaunchContext, wrapped: Wrapped) -> Level | None:
    """The same for what goes wrong under DistributedDataParallel only."""
    if wrapped.how is Wrapper.DATA_PARALLEL:
        return None
    if wrapped.how is Wrapper.TRAINER and module.text_says(_speaks_of_other_strategies):
        return None
    needs_a_group = wrapped.how is Wrapper.DISTRIBUTED
    certainty = several_processes(module, launch, needs_a_group=needs_a_group)
    if certainty is Certainty.NEVER:
        return None
    unseen = wrapped.how is Wrapper.PREPARED and may_prepare_for_other_strategies(module)
    return Level.INFORMATION if unseen or certainty is Certainty.POSSIBLE else Level.WARNING


def _speaks_of_other_strategies(text: str) -> bool:
    return _OTHER_STRATEGY.search(text) is not None
