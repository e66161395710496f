"""How certain it is that one plain python process trains on several GPUs through nn.DataParallel."""

from __future__ import annotations

from ranksafe.checker.finding import Level
from ranksafe.launch.context import LaunchContext, Launcher
from ranksafe.semantics.facts import data_parallel_reachable
from ranksafe.semantics.module import Module


def data_parallel_level(module: Module, launch: LaunchContext) -> Level | None:
    """The level of a failure that needs nn.DataParallel, None where there is none.

    ERROR: the launch is known to be one process with several GPUs. WARNING: it is taken to be (an entry script without
    a trace of a launcher). INFORMATION: a Trainer is built here, but who starts it is not known.
    """
    if launch.launcher.starts_one_process_per_gpu or not data_parallel_reachable(
        module.facts, launch
    ):
        return None
    if launch.launcher is Launcher.PYTHON:
        return Level.WARNING if launch.gpus is None else Level.ERROR
    facts = module.facts
    if facts.project_wraps_data_parallel:
        return Level.WARNING
    if facts.accelerator:
        return None
    return Level.WARNING if facts.is_entry or not facts.trainers else Level.INFORMATION


def at_most(level: Level, limit: Level) -> Level:
    """The level, lowered to ``limit`` where it is worse."""
    return min(level, limit)
