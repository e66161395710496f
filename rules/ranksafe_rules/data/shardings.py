"""JAX shardings: into how many parts they cut an array's first dimension."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Final

from ranksafe.launch.context import LaunchContext
from ranksafe.semantics.module import Module

from ranksafe_rules._shared.origins import makers

NAMED_SHARDING: Final = "jax.sharding.NamedSharding"
_MESH: Final = "jax.sharding.Mesh"
_MAKE_MESH: Final = "jax.make_mesh"
_PARTITION_SPEC: Final = "jax.sharding.PartitionSpec"
_ALL_DEVICES: Final = frozenset({"jax.devices", "jax.local_devices"})
_DEVICE_COUNTS: Final = frozenset({"jax.device_count", "jax.local_device_count"})
_COPIES: Final = frozenset({"numpy.array", "numpy.asarray"})


@dataclass(frozen=True, slots=True)
class Partition:
    """A number of parts; ``written``: it stands in the source, else it is the number of devices of the machine."""

    count: int
    written: bool


def partition_of(module: Module, sharding: ast.Call, launch: LaunchContext) -> Partition | None:
    """The parts of the first dimension under ``NamedSharding(mesh, PartitionSpec(...))``; None when not known, or
    when the first dimension is not split."""
    mesh = module.argument_node(sharding, "mesh", 0)
    spec = module.argument_node(sharding, "spec", 1)
    if mesh is None or spec is None:
        return None
    axis = _first_axis(module, spec)
    sizes = _mesh_sizes(module, mesh, launch) if axis is not None else None
    return sizes.get(axis) if sizes is not None and axis is not None else None


def _first_axis(module: Module, spec: ast.expr) -> str | None:
    for maker in makers(module, spec):
        if module.qualified_name(maker.func) == _PARTITION_SPEC and maker.args:
            name = module.values(maker.args[0]).only_constant()
            return name if isinstance(name, str) else None
    return None


def _mesh_sizes(
    module: Module, mesh: ast.expr, launch: LaunchContext
) -> dict[str, Partition] | None:
    for maker in makers(module, mesh):
        name = module.qualified_name(maker.func)
        if name == _MESH:
            devices = module.argument_node(maker, "devices", 0)
            names = _axis_names(module, module.argument_node(maker, "axis_names", 1))
            if devices is None or names is None or len(names) != 1:
                return None
            count = _device_count(module, devices, launch)
            return None if count is None else {names[0]: count}
        if name == _MAKE_MESH:
            return _made_mesh(module, maker, launch)
    return None


def _made_mesh(
    module: Module, call: ast.Call, launch: LaunchContext
) -> dict[str, Partition] | None:
    given = module.argument(call, "axis_shapes", 0)
    shape = None if given is None else given.only_expression()
    names = _axis_names(module, module.argument_node(call, "axis_names", 1))
    if not isinstance(shape, ast.Tuple) or names is None or len(names) != len(shape.elts):
        return None
    sizes = [_count(module, size, launch) for size in shape.elts]
    return {name: size for name, size in zip(names, sizes, strict=True) if size is not None}


def _axis_names(module: Module, node: ast.expr | None) -> list[str] | None:
    for value in module.values(node).known if node is not None else ():
        if value.is_constant and isinstance(value.constant, str):
            return [value.constant]
        if isinstance(value.node, (ast.Tuple, ast.List)):
            names = [item.value for item in value.node.elts if isinstance(item, ast.Constant)]
            if len(names) == len(value.node.elts):
                return [str(name) for name in names]
    return None


def _device_count(module: Module, devices: ast.expr, launch: LaunchContext) -> Partition | None:
    """``jax.devices()``, ``jax.devices()[:k]``, ``np.array(jax.devices())``."""
    if isinstance(devices, ast.Subscript) and isinstance(devices.slice, ast.Slice):
        stop = devices.slice.upper
        if devices.slice.lower is None and stop is not None and _is_all(module, devices.value):
            return _count(module, stop, launch)
        return None
    for maker in makers(module, devices):
        if _is_all(module, maker):
            return Partition(launch.assumed_gpus, written=False)
        if module.qualified_name(maker.func) in _COPIES and len(maker.args) == 1:
            return _device_count(module, maker.args[0], launch)
    return None


def _is_all(module: Module, node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Call)
        and not node.args
        and module.qualified_name(node.func) in _ALL_DEVICES
    )


def _count(module: Module, node: ast.expr, launch: LaunchContext) -> Partition | None:
    for value in module.values(node).known:
        if value.is_constant:
            number = module.values(node).only_constant()
            return (
                Partition(number, written=True) if isinstance(number, int) and number > 0 else None
            )
        if isinstance(value.node, ast.Call):
            name = module.qualified_name(value.node.func)
            counted = value.node.args[0] if name == "builtins.len" and value.node.args else None
            if name in _DEVICE_COUNTS or (counted is not None and _is_all(module, counted)):
                return Partition(launch.assumed_gpus, written=False)
    return None
