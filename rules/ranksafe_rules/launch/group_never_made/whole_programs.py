"""Files that are a whole program, of which all that could make a process group can be seen."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from typing import Final

from ranksafe.semantics.module import Module

from ranksafe_rules._shared.rank_words import names_behind
from ranksafe_rules.launch.reached import is_reached

_MAKES_NO_GROUP: Final = frozenset(
    {
        "PIL", "albumentations", "cv2", "datasets", "einops", "h5py", "imageio", "matplotlib", "numpy", "omegaconf",
        "packaging", "pandas", "psutil", "pyarrow", "regex", "requests", "safetensors", "scipy", "seaborn",
        "sentencepiece", "skimage", "sklearn", "tensorboard", "tensorboardX", "termcolor", "tiktoken", "timm",
        "tokenizers", "torch", "torchaudio", "torchinfo", "torchmetrics", "torchtext", "torchvision", "tqdm",
        "transformers", "wandb", "yaml",
    }
)  # fmt: skip
"""Packages that make no process group unless they are asked to, by one of the words below."""
_MAKING: Final = re.compile(
    r"init_process_group|init_device_mesh|init_distributed|init_rpc|DeviceMesh|fully_shard|distribute_tensor|_c10d"
    r"|importlib|__import__|runpy|(?<![.\w])(?:exec|eval)\("
)
"""Of torch and timm, and ways to run what cannot be seen."""
_TRAINING: Final = re.compile(r"Trainer|TrainingArguments|tp_plan")
"""Of transformers."""
_MADE_BY_USERS: Final = (
    "init_process_group",
    "init_device_mesh",
    "init_distributed",
    "Accelerator",
    "PartialState",
    "TrainingArguments",
    "deepspeed",
    "lightning",
)
"""What a file that imports this one may have done before it calls its functions."""
_DISTRIBUTED: Final = "torch.distributed."
_NEEDS_GROUP: Final = tuple(
    _DISTRIBUTED + name
    for name in (
        "all_gather", "all_gather_into_tensor", "all_gather_object", "all_reduce", "all_to_all", "barrier",
        "broadcast", "broadcast_object_list", "gather", "get_backend", "get_rank", "get_world_size",
        "monitored_barrier", "new_group", "recv", "reduce", "reduce_scatter", "scatter", "send",
    )
)  # fmt: skip
"""Calls that raise ValueError without a group (run with torch 2.13.0)."""
_WRAPPER: Final = "torch.nn.parallel.DistributedDataParallel"
_SAMPLERS: Final = (
    "torch.utils.data.distributed.DistributedSampler",
    "torch.utils.data.DistributedSampler",
)
_LOOKS: Final = re.compile(
    r"is_initialized|is_available|initiali[sz]ed|torchelastic", re.IGNORECASE
)


def is_whole_program(module: Module) -> bool:
    """Whether the file is a script, and nothing in it or in what it imports makes a process group."""
    if not module.facts.is_entry or module.text_says(_makes_a_group):
        return False
    if "transformers" in module.facts.imports and module.text_says(_trains):
        return False
    return all(_makes_none(node) for node in _imports(module)) and not any(
        module.users_mention(word) for word in _MADE_BY_USERS
    )


def calls_without_a_group(module: Module) -> Iterator[ast.Call]:
    """The calls that need a group and are reached when the file is run, in source order."""
    found = [
        call
        for call in (*module.calls(*_NEEDS_GROUP), *_wrappers(module), *_samplers(module))
        if is_reached(module, call, _is_looked_at)
    ]
    yield from sorted(found, key=module.order_of)


def _makes_a_group(text: str) -> bool:
    return _MAKING.search(text) is not None


def _trains(text: str) -> bool:
    return _TRAINING.search(text) is not None


def _imports(module: Module) -> Iterator[ast.Import | ast.ImportFrom]:
    for kind in (ast.Import, ast.ImportFrom):
        for node in module.nodes(kind):
            assert isinstance(node, (ast.Import, ast.ImportFrom))
            yield node


def _makes_none(node: ast.Import | ast.ImportFrom) -> bool:
    if isinstance(node, ast.ImportFrom):
        names = [node.module or ""] if not node.level else [""]
    else:
        names = [alias.name for alias in node.names]
    return all(
        name.partition(".")[0] in _MAKES_NO_GROUP
        or name.partition(".")[0] in sys.stdlib_module_names
        for name in names
    )


def _wrappers(module: Module) -> Iterator[ast.Call]:
    for call in module.calls(_WRAPPER):
        if module.argument(call, "process_group", None) is None:
            if module.argument(call, "device_mesh", None) is None:
                yield call


def _samplers(module: Module) -> Iterator[ast.Call]:
    for call in module.calls(*_SAMPLERS):
        given = [
            module.argument(call, name, position)
            for position, name in ((1, "num_replicas"), (2, "rank"))
        ]
        if module.qualified_name(call.func) in _SAMPLERS and any(item is None for item in given):
            yield call


def _is_looked_at(module: Module, node: ast.AST) -> bool:
    """Whether something around ``node``, or an exit before it, asks whether there is a group, or errors are caught."""
    function = module.enclosing_function(node)
    if _asks(module, node) or any(
        _asks(module, leaving)
        for leaving in (() if function is None else module.returns_of(function))
        if module.order_of(leaving) < module.order_of(node)
    ):
        return True
    current = module.parent(node)
    while current is not None and not isinstance(current, (ast.FunctionDef, ast.AsyncFunctionDef)):
        if isinstance(current, (ast.Try, ast.ExceptHandler, ast.Lambda)):
            return True
        current = module.parent(current)
    return False


def _asks(module: Module, node: ast.AST) -> bool:
    return any(
        _LOOKS.search(word)
        for guard in module.guards(node)
        for word in names_behind(module, guard.test)
    )
