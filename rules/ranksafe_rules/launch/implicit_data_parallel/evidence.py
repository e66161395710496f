"""Signs that a Trainer script is not trained by one plain python process on several GPUs after all."""

from __future__ import annotations

import ast

from ranksafe.launch.context import LaunchContext, Launcher
from ranksafe.semantics.guards import GuardKind
from ranksafe.semantics.module import Module

from ranksafe_rules._shared.origins import makers
from ranksafe_rules._shared.visible_devices import visible_devices

_LAUNCH_WORDS = frozenset(
    {"main_process_first", "local_rank", "parallel_mode", "distributed_state", "world_size"}
    | {"process_index", "local_process_index", "is_world_process_zero", "deepspeed"}
    | {"add_config_arguments", "deepspeed_config", "HfDeepSpeedConfig", "ParallelismConfig"}
)
"""Attributes and names that are read by code which was written with several processes in mind."""
_SPREADING_MAPS = frozenset({"auto", "balanced", "balanced_low_0", "sequential"})


def shows_another_launch(
    module: Module, launch: LaunchContext, call: ast.Call, built: ast.Call
) -> bool:
    """Whether something keeps this Trainer from nn.DataParallel, or says how the script is started."""
    return (
        _is_tested(module, call)
        or _is_guarded(module, call)
        or _is_guarded(module, built)
        or visible_devices(module, several=False) is not None
        or _arguments_forbid(module, built)
        or _model_is_spread(module, built)
        or (launch.launcher is Launcher.UNKNOWN and _is_written_for_a_launcher(module))
        or (launch.launcher is Launcher.UNKNOWN and _is_launched(module))
    )


def _is_launched(module: Module) -> bool:
    """Whether the project's commands start the script with a launcher, or its others and not this one otherwise."""
    return (
        bool(module.launch_commands())
        or module.runs_in_one_process()
        or module.project_launches_others()
    )


def _is_tested(module: Module, call: ast.Call) -> bool:
    """Whether the call stands in a test, which says nothing of how anything is trained."""
    function = module.enclosing_function(call)
    return function is not None and function.name.startswith("test")


def _is_guarded(module: Module, node: ast.AST) -> bool:
    return any(guard.kind is not GuardKind.OTHER for guard in module.guards(node))


def _arguments_forbid(module: Module, built: ast.Call) -> bool:
    """Whether the training arguments choose the CPU, or something that only means anything with a launcher."""
    for arguments in _objects(module, built, "args", 1):
        for name in ("use_cpu", "no_cuda"):
            chosen = module.argument(arguments, name)
            if chosen is not None and chosen.only_constant() is not False:
                return True
        for name in ("deepspeed", "fsdp", "fsdp_config", "parallelism_config"):
            chosen = module.argument(arguments, name)
            if chosen is not None and not _is_empty(chosen.constants()):
                return True
        if any((keyword.arg or "").startswith("ddp_") for keyword in arguments.keywords):
            return True
    return False


def _is_empty(constants: list[object]) -> bool:
    return bool(constants) and not any(constants)


def _model_is_spread(module: Module, built: ast.Call) -> bool:
    """Whether the model is loaded over several devices, or quantised: Trainer does not use nn.DataParallel then."""
    given = module.argument_node(built, "model", 0)
    for load in () if given is None else makers(module, given):
        device_map = module.argument(load, "device_map")
        if device_map is not None:
            constants = device_map.constants()
            if not device_map.known or any(item in _SPREADING_MAPS for item in constants):
                return True
        for name in ("quantization_config", "load_in_8bit", "load_in_4bit"):
            if module.argument(load, name) is not None:
                return True
    return False


def _objects(module: Module, built: ast.Call, name: str, position: int) -> list[ast.Call]:
    """The calls that make an argument of the Trainer."""
    values = module.argument(built, name, position)
    if values is None:
        return []
    return [value.node for value in values.known if isinstance(value.node, ast.Call)]


def _is_written_for_a_launcher(module: Module) -> bool:
    return any(
        isinstance(node, ast.Attribute) and node.attr in _LAUNCH_WORDS
        for node in module.nodes(ast.Attribute)
    ) or any(
        isinstance(node, ast.Name) and node.id in _LAUNCH_WORDS for node in module.nodes(ast.Name)
    )
