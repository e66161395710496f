"""How many processes Lightning's Trainers and Fabrics share the data among, as far as a file says it."""

from __future__ import annotations

import ast
from typing import Final

from ranksafe.launch.context import LaunchContext
from ranksafe.semantics.module import Module

from ranksafe_rules._shared.processes import Certainty

PACKAGES: Final = ("lightning", "pytorch_lightning")
_FABRICS: Final = (*PACKAGES, "lightning_fabric")
_DEVICES: Final = ("devices", "gpus")
"""``gpus`` up to lightning 1.9."""
_SHARING: Final = ("use_distributed_sampler", "replace_sampler_ddp")
"""Off: the ranks get what the user's own samplers give them. The second name is that of lightning 1.x."""


def sharing_processes(module: Module, launch: LaunchContext) -> Certainty:
    """How sure it is that several processes share the data by Lightning's samplers.

    Lightning starts the processes itself, so that a script that plain python runs may have them.
    """
    if launch.gpus is not None and launch.gpus < 2:
        return Certainty.NEVER
    if any(module.users_mention(name) for name in _SHARING):
        return Certainty.NEVER
    answers = [_of_maker(module, call) for call in _made(module, "Trainer", PACKAGES)]
    if answers and all(answer is Certainty.NEVER for answer in answers):
        return Certainty.NEVER
    if launch.launcher.starts_one_process_per_gpu:
        return Certainty.KNOWN
    return Certainty.SHOWN if Certainty.SHOWN in answers else Certainty.POSSIBLE


def all_start_one(module: Module) -> bool:
    """Whether the file makes Fabrics or Trainers of Lightning, and each for one device: ``Fabric(devices=1)``."""
    makers = [*_made(module, "Fabric", _FABRICS), *_made(module, "Trainer", PACKAGES)]
    return bool(makers) and all(_of_maker(module, call) is Certainty.NEVER for call in makers)


def _made(module: Module, name: str, packages: tuple[str, ...]) -> list[ast.Call]:
    return [
        call
        for call in module.calls_written(name)
        if (module.qualified_name(call.func) or "").partition(".")[0] in packages
    ]


def _of_maker(module: Module, trainer: ast.Call) -> Certainty:
    nodes = _constant(module, trainer, "num_nodes")
    if isinstance(nodes, int) and nodes > 1:
        return Certainty.SHOWN
    for name in _DEVICES:
        if module.argument(trainer, name) is None:
            continue
        count = _device_count(module, trainer, name)
        if count is None:
            return Certainty.POSSIBLE
        return Certainty.SHOWN if count > 1 else Certainty.NEVER
    return Certainty.POSSIBLE


def _device_count(module: Module, trainer: ast.Call, name: str) -> int | None:
    """2 where it is "several"; None: not known."""
    node = module.argument_node(trainer, name)
    if isinstance(node, ast.List):
        return len(node.elts)
    written = _constant(module, trainer, name)
    if isinstance(written, str) and written.isdigit():
        written = int(written)
    if isinstance(written, int) and not isinstance(written, bool) and written > 0:
        return written
    return None


def _constant(module: Module, call: ast.Call, name: str) -> object:
    given = module.argument(call, name)
    return None if given is None else given.only_constant()
