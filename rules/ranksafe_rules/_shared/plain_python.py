"""How certain it is that one plain python process trains on several GPUs through nn.DataParallel."""

from __future__ import annotations

from typing import Final

from ranksafe.checker.finding import Level
from ranksafe.launch.context import LaunchContext, Launcher
from ranksafe.semantics.facts import data_parallel_reachable
from ranksafe.semantics.module import Module

_RAY_TRAIN: Final = ("ray.train.torch", "ray.train.huggingface")
"""Modules of ray for its workers: ``torch.TorchTrainer`` runs a function on many of them, each a process with its own
GPU in a process group (docs.ray.io, ray.train.torch.TorchTrainer); ``huggingface.transformers.prepare_trainer`` is
called there."""


def data_parallel_possible(module: Module, launch: LaunchContext) -> bool:
    """Whether models of the file may be replicated by nn.DataParallel: not where only a Trainer would do it, and the
    file, or one that imports it, belongs to the workers of Ray Train or is started on one GPU."""
    facts = module.facts
    if not data_parallel_reachable(facts, launch):
        return False
    if facts.project_wraps_data_parallel:
        return True
    is_told = launch.gpus is not None or launch.launcher is Launcher.PYTHON
    return not any(map(module.users_mention, _RAY_TRAIN)) and (
        is_told or not module.runs_on_one_gpu()
    )


def data_parallel_level(module: Module, launch: LaunchContext) -> Level | None:
    """The level of a failure that needs nn.DataParallel, None where there is none.

    ERROR: the launch is known to be one process with several GPUs. WARNING: it is taken to be (an entry script without
    a trace of a launcher). INFORMATION: a Trainer is built here, but who starts it is not known.
    """
    if launch.launcher.starts_one_process_per_gpu or not data_parallel_possible(module, launch):
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
