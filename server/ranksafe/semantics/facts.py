"""What a file shows about how it is launched and trained."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ranksafe.launch.context import LaunchContext
from ranksafe.semantics.imports import Imports
from ranksafe.semantics.names import Names
from ranksafe.semantics.structure import ModuleStructure
from ranksafe.semantics.types import Types
from ranksafe.semantics.units import Unit
from ranksafe.semantics.walking import FUNCTIONS
from ranksafe.source.position import Range

TRAINER = "transformers.Trainer"
_TRAINERS = frozenset({TRAINER})
DATA_PARALLEL = "torch.nn.DataParallel"
_LAUNCHER_VARIABLES = frozenset(
    {"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR"}
)
_LAUNCHER_CALLS = frozenset(
    {
        "torch.distributed.init_process_group",
        "torch.distributed.init_device_mesh",
        "torch.distributed.device_mesh.init_device_mesh",
        "torch.multiprocessing.spawn",
        "torch.multiprocessing.start_processes",
        "accelerate.notebook_launcher",
        "accelerate.debug_launcher",
        "deepspeed.init_distributed",
        "deepspeed.initialize",
        "torch.distributed.get_rank",
        "torch.distributed.get_world_size",
    }
)
_DISTRIBUTED_WRAPS = frozenset(
    {
        "torch.nn.parallel.DistributedDataParallel",
        "torch.distributed.fsdp.FullyShardedDataParallel",
        "torch.distributed.fsdp.fully_shard",
    }
)
_LAUNCH_COMMAND = re.compile(
    r"\b(accelerate[ -]launch|torchrun|deepspeed (?=\S+\.py|--)|torch\.distributed\.(?:run|launch))\b"
)
_ACCELERATE = frozenset({"accelerate.Accelerator", "accelerate.PartialState"})
_CALL_NAMES = frozenset(
    {name.rpartition(".")[2] for name in (*_LAUNCHER_CALLS, *_DISTRIBUTED_WRAPS, *_ACCELERATE)}
    | {"DataParallel", "FSDP", "prepare", "setup", "getenv", "get"}
)

SEVERAL_GPUS = _LAUNCHER_VARIABLES | {
    "DataParallel", "Fabric", "PartialState", "Trainer", ".train(", ".backward(", "__main__", "_launcher", "ccelerat",
    "deepspeed", "fully_shard", "get_rank", "get_world_size", "init_device_mesh", "init_process_group", "spawn",
    "start_processes", "torch.distributed.launch", "torch.distributed.run", "torchrun",
}  # fmt: skip
"""Parts of words: a text without any of them shows neither a launcher nor a model that is trained or wrapped."""
OF_SEVERAL_PROCESSES = ("init_process_group", "DistributedDataParallel", "Accelerator")
"""Words of a file that is started as several processes."""


class Evidence(NamedTuple):
    """Something that shows a launcher."""

    what: str
    place: Range
    function: str | None
    """The function at the file's top level, without decorators, in which it stands."""


@dataclass(frozen=True, slots=True)
class ModuleFacts:
    """What the file (and, where ``project_`` is in the name, the project) shows. Ranges can be related places."""

    is_entry: bool
    """Has a main guard, or a training call at module level."""
    launcher_evidence: tuple[Evidence, ...]
    """Reads of launcher variables, process-group set-up, spawn and notebook launchers, and a launch command in the
    module's docstring."""
    accelerator: tuple[Range, ...]
    """Constructions of Accelerator or PartialState."""
    trainers: tuple[tuple[str, Range], ...]
    """Constructions of transformers.Trainer and its subclasses: canonical class name and place."""
    data_parallel: tuple[Range, ...]
    """nn.DataParallel(...) constructions."""
    distributed_data_parallel: tuple[Range, ...]
    """DDP and FSDP wraps, accelerator.prepare, fabric.setup."""
    of_processes: tuple[str | None, ...]
    """The functions, as in `Evidence`, in which those and Accelerators stand."""
    visible_devices: tuple[Range, ...]
    """Assignments of CUDA_VISIBLE_DEVICES."""
    imports: frozenset[str]
    """Top-level packages imported anywhere in the file."""
    project_trains_with_trainer: bool
    """This file, or one of the project that imports it, builds a Trainer and shows no launcher."""
    project_wraps_data_parallel: bool
    """This file, or one of the project that imports it, wraps a model in nn.DataParallel."""


@dataclass(frozen=True, slots=True)
class UnitFacts:
    """One unit's part of `ModuleFacts`; nodes, because the unit may move."""

    is_entry: bool
    launcher_evidence: tuple[tuple[str, ast.AST], ...]
    accelerator: tuple[ast.AST, ...]
    trainers: tuple[tuple[str, ast.AST], ...]
    data_parallel: tuple[ast.AST, ...]
    distributed_data_parallel: tuple[ast.AST, ...]
    visible_devices: tuple[ast.AST, ...]
    imports: frozenset[str]


def facts_of_module(
    module: ModuleStructure, parts: list[UnitFacts], imports: Imports
) -> ModuleFacts:
    """Put the parts together, with what the project does with the classes of the file."""
    launcher = tuple(
        Evidence(w, module.range_of(n), top_level_function(module, n))
        for p in parts
        for w, n in p.launcher_evidence
    )
    trainers = tuple((w, module.range_of(n)) for p in parts for w, n in p.trainers)
    data_parallel = tuple(module.range_of(n) for p in parts for n in p.data_parallel)
    trains = bool(trainers) and not launcher
    wraps = bool(data_parallel)
    if imports.project is not None and any(unit.defines_class for unit in module.units):
        imports.asked_project = True
        trains = trains or imports.project.trains_with_trainer(imports.name)
        wraps = wraps or imports.project.wraps_data_parallel(imports.name)
    return ModuleFacts(
        is_entry=any(part.is_entry for part in parts),
        launcher_evidence=launcher,
        accelerator=tuple(module.range_of(n) for p in parts for n in p.accelerator),
        trainers=trainers,
        data_parallel=data_parallel,
        distributed_data_parallel=tuple(
            module.range_of(n) for p in parts for n in p.distributed_data_parallel
        ),
        of_processes=tuple(
            top_level_function(module, n)
            for p in parts
            for n in (*p.accelerator, *p.distributed_data_parallel)
        ),
        visible_devices=tuple(module.range_of(n) for p in parts for n in p.visible_devices),
        imports=frozenset().union(*(part.imports for part in parts)),
        project_trains_with_trainer=trains,
        project_wraps_data_parallel=wraps,
    )


def top_level_function(module: ModuleStructure, node: ast.AST) -> str | None:
    """The name of the function at the file's top level, without decorators, that holds a node."""
    parent = module.parent(node)
    while parent is not None and not isinstance(parent, ast.Module):
        node, parent = parent, module.parent(parent)
    return node.name if isinstance(node, FUNCTIONS) and not node.decorator_list else None


def facts_of_unit(module: ModuleStructure, names: Names, types: Types, unit: Unit) -> UnitFacts:
    """Read one unit."""
    launcher: list[tuple[str, ast.AST]] = []
    accelerator: list[ast.AST] = []
    trainers: list[tuple[str, ast.AST]] = []
    data_parallel: list[ast.AST] = []
    distributed: list[ast.AST] = []
    for name, calls in unit.calls().items():
        if name in _CALL_NAMES or name.endswith("Trainer") or names.may_stand_for_another(name):
            for call in calls:
                called = names.qualified(call.func)
                if called in _LAUNCHER_CALLS:
                    launcher.append((called, call))
                elif called in _ACCELERATE:
                    accelerator.append(call)
                elif called in _DISTRIBUTED_WRAPS or _prepares(types, call, name):
                    distributed.append(call)
                elif called == DATA_PARALLEL:
                    data_parallel.append(call)
                elif called is not None and types.is_subclass(called, _TRAINERS):
                    trainers.append((called, call))
    visible: list[ast.AST] = []
    for constant, evidence in _telling_strings(module, unit):
        if evidence is None:
            visible.append(constant)
        else:
            launcher.append((evidence, constant))
    return UnitFacts(
        is_entry=_is_entry(module, types, unit),
        launcher_evidence=tuple(launcher),
        accelerator=tuple(accelerator),
        trainers=tuple(trainers),
        data_parallel=tuple(data_parallel),
        distributed_data_parallel=tuple(distributed),
        visible_devices=tuple(visible),
        imports=_imports(unit),
    )


def _telling_strings(module: ModuleStructure, unit: Unit) -> Iterator[tuple[ast.AST, str | None]]:
    """Strings with the launcher that they are evidence of; None: they set CUDA_VISIBLE_DEVICES."""
    for constant in unit.by_kind.get(ast.Constant, ()):
        value = constant.value  # type: ignore[attr-defined]
        if value.__class__ is not str:
            continue
        if value in _LAUNCHER_VARIABLES and _is_key(module, constant):
            yield constant, value
        elif value == "CUDA_VISIBLE_DEVICES" and _is_stored(module, constant):
            yield constant, None
        elif "\n" in value and _is_module_docstring(module, constant):
            command = _LAUNCH_COMMAND.search(value)
            if command is not None:
                yield constant, command[1].strip()


def _prepares(types: Types, call: ast.Call, name: str) -> bool:
    if name not in ("prepare", "setup") or not isinstance(call.func, ast.Attribute):
        return False
    receiver = types.of(call.func.value)
    return receiver in ("accelerate.Accelerator", "lightning.Fabric", "lightning.fabric.Fabric")


def _is_module_docstring(module: ModuleStructure, constant: ast.AST) -> bool:
    """Whether the string is where a script tells its users how to start it."""
    statement = module.parent(constant)
    return isinstance(statement, ast.Expr) and isinstance(module.parent(statement), ast.Module)


def _is_key(module: ModuleStructure, constant: ast.AST) -> bool:
    """Whether the string is looked up (``os.environ["RANK"]``, ``os.environ.get("RANK")``, ``"RANK" in os.environ``);
    setting a variable by hand (``os.environ["WORLD_SIZE"] = "1"``) is no evidence of a launcher."""
    parent = module.parent(constant)
    if isinstance(parent, ast.Subscript):
        return isinstance(parent.ctx, ast.Load)
    if isinstance(parent, ast.Call) and parent.args and parent.args[0] is constant:
        return isinstance(parent.func, (ast.Attribute, ast.Name)) and (
            parent.func.attr if isinstance(parent.func, ast.Attribute) else parent.func.id
        ) in ("get", "getenv", "pop", "get_int_from_env")
    return isinstance(parent, ast.Compare)


def _is_stored(module: ModuleStructure, constant: ast.AST) -> bool:
    parent = module.parent(constant)
    if isinstance(parent, ast.Subscript):
        return isinstance(parent.ctx, ast.Store)
    return (
        isinstance(parent, ast.Call)
        and isinstance(parent.func, ast.Attribute)
        and parent.func.attr in ("setdefault", "putenv")
    )


def _is_entry(module: ModuleStructure, types: Types, unit: Unit) -> bool:
    if unit.owner is not None or unit.is_definition:
        return False
    for node in unit.nodes:
        if isinstance(node, ast.If) and is_main_guard(node.test):
            return True
    # A training call that runs when the file runs.
    for call in unit.calls().get("train", ()):
        if module.enclosing_function(call) is None and isinstance(call.func, ast.Attribute):
            if types.is_subclass(types.of(call.func.value), _TRAINERS):
                return True
    return any(
        module.enclosing_function(call) is None and isinstance(call.func, ast.Attribute)
        for call in unit.calls().get("backward", ())
    )


def is_main_guard(test: ast.expr) -> bool:
    """Whether the expression is ``__name__ == "__main__"``, either way round."""
    if not (isinstance(test, ast.Compare) and len(test.comparators) == 1):
        return False
    sides = (test.left, test.comparators[0])
    return any(isinstance(item, ast.Name) and item.id == "__name__" for item in sides) and any(
        isinstance(item, ast.Constant) and item.value == "__main__" for item in sides
    )


def _imports(unit: Unit) -> frozenset[str]:
    found: set[str] = set()
    for node in unit.by_kind.get(ast.Import, ()):
        found.update(alias.name.split(".")[0] for alias in node.names)  # type: ignore[attr-defined]
    for node in unit.by_kind.get(ast.ImportFrom, ()):
        if not node.level and node.module:  # type: ignore[attr-defined]
            found.add(node.module.split(".")[0])  # type: ignore[attr-defined]
    return frozenset(found)


def data_parallel_reachable(facts: ModuleFacts, launch: LaunchContext) -> bool:
    """Whether models of a file may be replicated by nn.DataParallel: wrapped explicitly in the project, or by a
    Trainer in a launch that is (or, for an entry script, is taken to be) one plain python process with several GPUs."""
    if launch.assumed_gpus < 2:
        return False
    if facts.project_wraps_data_parallel:
        return True
    if launch.launcher.starts_one_process_per_gpu:
        return False
    return facts.project_trains_with_trainer
