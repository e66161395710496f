"""``torch.distributed.device_mesh``: the groups that the dimensions of a mesh of known size stand for."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from ranksafe.semantics.rank_flow.operations import Parameter
from ranksafe.semantics.rank_flow.values import Known, Many, Sameness, Thing, Value

if TYPE_CHECKING:
    from ranksafe.semantics.rank_flow.interpreter import Interpreter

# torch/distributed/device_mesh.py:init_device_mesh (torch 2.13.0)
_SHAPE = Parameter("mesh_shape", 1)
_NAMES = Parameter("mesh_dim_names", None)
_DIMENSION = Parameter("mesh_dim", 0)
_KIND = "mesh"
_LARGEST = 8


@dataclass(frozen=True, slots=True)
class _Dimension:
    name: str | None
    size: int
    stride: int

    def index_of(self, rank: int) -> int:
        return rank // self.stride % self.size

    def members_with(self, rank: int) -> tuple[int, ...]:
        first = rank - self.index_of(rank) * self.stride
        return tuple(first + index * self.stride for index in range(self.size))


def made(interpreter: Interpreter, node: ast.Call) -> Thing | None:
    """The mesh that ``init_device_mesh`` makes, where its size is known and is that of the world."""
    given = _SHAPE.of(node)
    sizes = None if given is None else _constants(interpreter.expressions.value(given), int)
    if not sizes or min(sizes) < 1:
        return None
    run = interpreter.run
    size = prod(sizes)
    if size <= _LARGEST:
        run.largest_rank = max(run.largest_rank, size - 1)
    if size != run.world.size:
        return None
    written = _NAMES.of(node)
    names = None if written is None else _constants(interpreter.expressions.value(written), str)
    if names is None or len(names) != len(sizes):
        names = [None] * len(sizes)
    dimensions = tuple(
        _Dimension(name, length, prod(sizes[index + 1 :]))
        for index, (name, length) in enumerate(zip(names, sizes, strict=True))
    )
    return Thing(_KIND, node=node, module=run.module, detail=dimensions)


def part(mesh: Value, index: Value) -> Thing | None:
    """``mesh["tp"]`` or ``mesh["dp", "tp"]``; None for what is no mesh, or not one of its dimensions."""
    if not isinstance(mesh, Thing) or mesh.kind != _KIND:
        return None
    asked = [index.constant] if isinstance(index, Known) else _constants(index, str)
    chosen = tuple(item for name in asked or () for item in mesh.detail if item.name == name)
    if not chosen or len(chosen) != len(asked or ()):
        return None
    return Thing(_KIND, node=mesh.node, module=mesh.module, detail=chosen)


def answer(interpreter: Interpreter, mesh: Thing, node: ast.Call, word: str) -> Value | None:
    """What a method of a mesh returns on this rank; None where it is not known."""
    if mesh.kind != _KIND:
        return None
    run = interpreter.run
    given = _DIMENSION.of(node)
    if word == "get_rank":
        return Known(run.world.rank, run.origin(node, Sameness.RANK))
    if word == "size" and given is None:
        return Known(prod(item.size for item in mesh.detail))
    dimension = _dimension(mesh, None if given is None else interpreter.expressions.value(given))
    if dimension is None:
        return None
    if word == "size":
        return Known(dimension.size)
    if word == "get_local_rank":
        return Known(dimension.index_of(run.world.rank), run.origin(node, Sameness.RANK))
    if word == "get_group":
        members = dimension.members_with(run.world.rank)
        return Thing("group", node=node, module=run.module, detail=members)
    return None


def of_group(interpreter: Interpreter, node: ast.Call, name: str) -> Value | None:
    """``get_process_group_ranks`` and its like of a group of known members; None for other calls."""
    last = name.rpartition(".")[2]
    if not name.startswith("torch.distributed.") or not node.args:
        return None
    if last not in ("get_process_group_ranks", "get_global_rank", "get_group_rank"):
        return None
    run = interpreter.run
    group = interpreter.expressions.value(node.args[0])
    if not isinstance(group, Thing) or group.kind != "group" or group.detail is None:
        return None
    members: tuple[int, ...] = group.detail
    origin = run.origin(node, Sameness.RANK) if len(members) < run.world.size else None
    if last == "get_process_group_ranks":
        return Many(tuple(Known(member, origin) for member in members))
    index = interpreter.expressions.value(node.args[1]) if len(node.args) > 1 else None
    if not isinstance(index, Known) or not isinstance(index.constant, int):
        return None
    if last == "get_group_rank":
        asked = index.constant
        return Known(members.index(asked), index.origin) if asked in members else None
    return Known(members[index.constant], origin) if 0 <= index.constant < len(members) else None


def _dimension(mesh: Thing, asked: Value | None) -> _Dimension | None:
    dimensions: tuple[_Dimension, ...] = mesh.detail
    if asked is None or (isinstance(asked, Known) and asked.constant is None):
        return dimensions[0] if len(dimensions) == 1 else None
    if not isinstance(asked, Known):
        return None
    if isinstance(asked.constant, int):
        inside = 0 <= asked.constant < len(dimensions)
        return dimensions[asked.constant] if inside else None
    return next((item for item in dimensions if item.name == asked.constant), None)


def _constants(value: Value, kind: type) -> list[Any] | None:
    """The items of a tuple or list of constants of one type."""
    if isinstance(value, Known) and isinstance(value.constant, tuple):
        found = list(value.constant)
    elif isinstance(value, Many):
        found = [item.constant if isinstance(item, Known) else None for item in value.items]
    else:
        return None
    return found if all(isinstance(item, kind) for item in found) else None
