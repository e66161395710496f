"""Loops that feed a DataLoader's batches to a model that several GPUs share."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from ranksafe.launch.context import LaunchContext
from ranksafe.semantics.module import Module

from ranksafe_rules._shared.origins import makers
from ranksafe_rules._shared.replicas import listed_devices
from ranksafe_rules._shared.visible_devices import leaves_one_gpu
from ranksafe_rules.data.batch_norms import normalises_single_values

DATA_PARALLEL = "torch.nn.DataParallel"
DISTRIBUTED_DATA_PARALLEL = "torch.nn.parallel.DistributedDataParallel"
DATA_LOADER = "torch.utils.data.DataLoader"
_PASSING_ITERATORS = frozenset({"enumerate", "tqdm", "trange", "track"})


@dataclass(frozen=True, slots=True)
class Pass:
    """One loop over a loader whose body calls a replicated model."""

    wrap: ast.Call
    """The DataParallel or DistributedDataParallel construction."""
    splits_batches: bool
    """True: DataParallel cuts every batch into chunks; False: every process has batches of its own."""
    devices: int
    """GPUs that share the work; assumed when `devices_known` is False."""
    devices_known: bool
    trains: bool
    """The loop has a backward pass."""
    normalises_single_values: bool
    """The model's BatchNorm refuses a single sample (and is not converted to SyncBatchNorm)."""


def chunk_sizes(batch: int, devices: int) -> list[int]:
    """How ``nn.DataParallel`` cuts a batch: as ``Tensor.chunk`` does, all chunks as large as the first but the last,
    and fewer chunks than devices where that already covers the batch (9 over 8 is 2, 2, 2, 2, 1)."""
    if batch < 1:
        return []
    largest = -(-batch // devices)
    full, rest = divmod(batch, largest)
    return [largest] * full + ([rest] if rest else [])


def rows_per_batch(module: Module, loader: ast.Call) -> int | None:
    """The loader's batch size, where it is certain."""
    values = module.argument(loader, "batch_size", 1)
    if values is None:
        return 1 if module.argument(loader, "batch_sampler") is None else None
    size = values.only_constant()
    return size if isinstance(size, int) and not isinstance(size, bool) and size > 0 else None


def passes(module: Module, launch: LaunchContext, loader: ast.Call) -> list[Pass]:
    """The loops over ``loader`` that call a replicated model, one per wrap of the model."""
    if module.qualified_name(loader.func) != DATA_LOADER:
        return []
    found: dict[int, Pass] = {}
    for loop in module.nodes(ast.For):
        if isinstance(loop, ast.For) and _iterates(module, loop.iter, loader):
            trains = any(_is_backward(node) for node in ast.walk(loop))
            for wrap in _wraps_called_in(module, loop):
                known = _pass(module, launch, wrap, trains)
                if known is not None and (id(wrap) not in found or trains):
                    found[id(wrap)] = known
    return list(found.values())


def _pass(module: Module, launch: LaunchContext, wrap: ast.Call, trains: bool) -> Pass | None:
    splits = module.qualified_name(wrap.func) == DATA_PARALLEL
    listed = listed_devices(module, wrap) if splits else None
    devices = listed or launch.assumed_gpus
    if devices < 2 or (splits and leaves_one_gpu(module)):
        return None
    model = module.argument_node(wrap, "module", 0)
    fragile = model is not None and any(
        normalises_single_values(module, maker) for maker in makers(module, model)
    )
    if not splits and module.calls_written("convert_sync_batchnorm"):
        fragile = False
    known = listed is not None or launch.gpus is not None
    return Pass(wrap, splits, devices, known, trains, fragile)


def _iterates(module: Module, iterated: ast.expr, loader: ast.Call) -> bool:
    for maker in makers(module, iterated):
        if maker is loader:
            return True
        function = maker.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        if name in _PASSING_ITERATORS and maker.args and _iterates(module, maker.args[0], loader):
            return True
    return False


def _wraps_called_in(module: Module, loop: ast.For) -> Iterator[ast.Call]:
    for node in ast.walk(loop):
        if isinstance(node, ast.Call) and isinstance(node.func, (ast.Name, ast.Attribute)):
            for maker in makers(module, node.func):
                name = module.qualified_name(maker.func)
                if name in (DATA_PARALLEL, DISTRIBUTED_DATA_PARALLEL):
                    yield maker


def _is_backward(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and (
        isinstance(node.func, ast.Attribute) and node.func.attr == "backward"
    )
