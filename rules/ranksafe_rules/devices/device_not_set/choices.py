"""Whether a program with an NCCL group ever chooses the GPU of its process."""

from __future__ import annotations

import ast
from typing import Final

from ranksafe.semantics.module import Module

from ranksafe_rules._shared.chosen_devices import (
    is_named_in_file,
    is_on_current_device,
    numbers_chosen,
)

INIT: Final = "torch.distributed.init_process_group"
_NCCL: Final = "nccl"

_CHOOSING_WORDS: Final = (
    "set_device",
    "device_id",
    "cuda.device(",
    'environ["CUDA_VISIBLE_DEVICES',
    "environ['CUDA_VISIBLE_DEVICES",
    "device_mesh",
    "DeviceMesh",
    "deepspeed",
    "Accelerator",
    "PartialState",
    "lightning",
    "import ray",
    "from ray",
    "horovod",
    "TrainingArguments",
)
"""Words after which a device may be chosen, here or by a library: ``set_device`` and ``set_device_index``,
``device_id=`` of init_process_group and FSDP (``device_ids=`` of DDP says where the model is, too), a mesh (torch
2.13.0, ``DeviceMesh._setup_world_group_and_device`` sets it), an Accelerator, DeepSpeed's engine, Ray's workers, which
see one GPU each, transformers' TrainingArguments (5.23.0, ``_setup_devices``)."""
_OWN_DEVICE_NODES: Final = (ast.JoinedStr, ast.BinOp, ast.Call)

COLLECTIVES: Final = frozenset(
    f"torch.distributed.{name}"
    for name in (
        "barrier",
        "all_gather_object",
        "broadcast_object_list",
        "gather_object",
        "scatter_object_list",
    )
)
"""Collectives that take the current device by themselves under NCCL (torch 2.13.0, ``distributed_c10d.py``)."""


def starts_nccl(module: Module, call: ast.Call) -> bool:
    """Whether a process group may get an NCCL backend: it is named, or none is."""
    rank, size = module.argument(call, "rank", 4), module.argument(call, "world_size", 3)
    if size is not None and size.only_constant() == 1 and rank is not None:
        return False
    backend = module.argument(call, "backend", 0)
    if backend is None:
        return True
    return names_nccl(module, call)


def names_nccl(module: Module, call: ast.Call) -> bool:
    """Whether a group is asked to use NCCL by name."""
    backend = module.argument(call, "backend", 0)
    return backend is not None and any(
        isinstance(name, str) and _NCCL in name for name in backend.constants()
    )


def is_only_nccl(module: Module, call: ast.Call) -> bool:
    """Whether the group works with GPUs alone."""
    backend = module.argument(call, "backend", 0)
    return backend is not None and backend.only_constant() == _NCCL


def first_use(module: Module) -> ast.Call | None:
    """The first call of the file that uses the current device."""
    return next(
        (
            node
            for node in module.nodes(ast.Call)
            if isinstance(node, ast.Call) and is_on_current_device(module, node)
        ),
        None,
    )


def is_run_here(module: Module, call: ast.Call, use: ast.Call) -> bool:
    """Whether the file itself runs the call, as far as it shows, or the use stands beside it. The callers of a helper
    library may choose the device."""
    function = module.enclosing_function(call)
    if function is not None and module.enclosing_function(use) is function:
        return True
    return is_named_in_file(module, function)


def chooses_a_device(module: Module) -> bool:
    """Whether the file, a user of it or a helper that it calls may choose a GPU for each process."""
    return (
        bool(module.facts.visible_devices)
        or any(module.users_mention(word) for word in _CHOOSING_WORDS)
        or any(
            _has_own_number(module, node)
            for kind in _OWN_DEVICE_NODES
            for node in module.nodes(kind)
        )
        or any(
            isinstance(call, ast.Call) and _helper_chooses(module, call)
            for call in module.nodes(ast.Call)
        )
    )


def _has_own_number(module: Module, node: ast.AST) -> bool:
    """Whether a GPU is named by a number that is computed (``x.to(device)`` says nothing of a number)."""
    for number in numbers_chosen(module, node):
        if isinstance(number, ast.Constant):
            continue
        moves = isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "to"
        if not moves or _may_be_a_number(module, number):
            return True
    return False


def _may_be_a_number(module: Module, number: ast.expr) -> bool:
    """Whether ``x`` of ``y.to(x)`` may be an integer: nothing is known of it, and it is not called a device."""
    if module.values(number).known:
        return False
    name = number.attr if isinstance(number, ast.Attribute) else getattr(number, "id", "")
    return "rank" in name or "gpu" in name


def _helper_chooses(module: Module, call: ast.Call) -> bool:
    called = module.qualified_name(call.func)
    found = None if called is None else module.project_definition(called)
    return found is not None and any(word in found[0].source.text for word in _CHOOSING_WORDS)
