"""Devices as code writes them, and where a forward can learn its own instead."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from ranksafe.semantics.module import Module

from ranksafe_rules._shared.parameters import parameter_name
from ranksafe_rules._shared.replicated_class import Function, ReplicatedClass
from ranksafe_rules._shared.tensor_inputs import tensor_inputs

_NUMBERED = re.compile(r"cuda:(\d+)")


@dataclass(frozen=True, slots=True)
class DeviceUse:
    """An expression given as a device: ``device=d``, ``x.to(d)``, ``x.cuda(d)``."""

    device: ast.expr
    call: ast.Call
    moved: ast.expr | None
    """What is moved there; None where something is made there."""


def device_uses(view: ReplicatedClass, method: Function) -> Iterator[DeviceUse]:
    """Every place in a method where a tensor is made on, or moved to, a device."""
    for call in view.nodes(ast.Call, method):
        moved = None
        if isinstance(call.func, ast.Attribute) and call.func.attr in ("to", "cuda"):
            moved = call.func.value
            if call.args and not isinstance(call.args[0], ast.Starred):
                yield DeviceUse(call.args[0], call, moved)
                continue
        for keyword in call.keywords:
            if keyword.arg == "device":
                yield DeviceUse(keyword.value, call, moved)


_SOME_NUMBER = -1


def is_numbered_device(module: Module, node: ast.expr, *, formatted: bool = False) -> bool:
    """Whether an expression is, or may be, one certain GPU: ``"cuda:0"``, ``torch.device("cuda", 0)``, a name of
    those. With ``formatted``, ``f"cuda:{n}"`` counts too. "cuda" without a number is the current device."""
    return bool(device_numbers(module, node, formatted=formatted))


def device_numbers(module: Module, node: ast.expr, *, formatted: bool = False) -> frozenset[int]:
    """The numbers of the GPUs that a device expression may be; -1 for one that is computed (with ``formatted``)."""
    return frozenset().union(
        *(
            _numbers(module, value.node, formatted)
            for value in module.values(node).known
            if not value.is_guarded_by_launch
        )
    )


def _numbers(module: Module, node: ast.expr, formatted: bool) -> frozenset[int]:
    if isinstance(node, ast.Constant):
        found = _NUMBERED.fullmatch(node.value) if isinstance(node.value, str) else None
        return frozenset({int(found[1])}) if found else frozenset()
    if isinstance(node, ast.JoinedStr):
        first = node.values[0] if node.values else None
        is_cuda = isinstance(first, ast.Constant) and first.value == "cuda:"
        return frozenset({_SOME_NUMBER}) if formatted and is_cuda else frozenset()
    if isinstance(node, ast.Call) and module.qualified_name(node.func) == "torch.device":
        if len(node.args) == 2:
            if is_gpu_number(node.args[1]):
                return frozenset({node.args[1].value})  # type: ignore[attr-defined]
            return frozenset({_SOME_NUMBER}) if formatted else frozenset()
        if len(node.args) == 1 and not isinstance(node.args[0], ast.Starred):
            return device_numbers(module, node.args[0], formatted=formatted)
    return frozenset()


def is_gpu_number(node: ast.expr) -> bool:
    """A literal index such as the 0 of ``x.cuda(0)``."""
    return isinstance(node, ast.Constant) and node.value.__class__ is int


def own_device(view: ReplicatedClass, function: Function, use: DeviceUse) -> str | None:
    """Source text of the device that the module copy works on at ``use``, or None when nothing there tells it.

    An input tells it, since DataParallel and DDP have put it there; not where that input is itself being moved, which
    on one GPU may be a move away from the CPU. A parameter of the module tells it always.
    """
    inputs = tensor_inputs(view, function, before=use.call)
    moved = _names_moved(view, function)
    for name in inputs:
        if name not in moved:
            return f"{name}.device"
    parameter = parameter_name(view, exact=False)
    return f"{parameter}.device" if parameter is not None else None


def _names_moved(view: ReplicatedClass, function: Function) -> set[str]:
    """Variables that the function moves to another device."""
    return {use.moved.id for use in device_uses(view, function) if isinstance(use.moved, ast.Name)}
