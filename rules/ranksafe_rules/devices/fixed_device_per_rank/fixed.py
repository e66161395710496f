"""GPUs that are named by a number in the source."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from enum import Enum
from typing import Final

from ranksafe.semantics.guards import GuardKind
from ranksafe.semantics.module import Module
from ranksafe.semantics.structure import Function

from ranksafe_rules._shared.chosen_devices import (
    DISTRIBUTED_DATA_PARALLEL,
    SET_DEVICE,
    is_named_in_file,
)
from ranksafe_rules._shared.devices import is_gpu_number
from ranksafe_rules._shared.every_rank import kept_to_some_ranks

NUMBERED: Final = re.compile(r"cuda:\d+")
_AVAILABLE: Final = "torch.cuda.is_available"
_DEVICE: Final = "torch.device"
_ACCELERATE: Final = ("accelerate.Accelerator", "accelerate.PartialState")
_INIT: Final = "torch.distributed.init_process_group"
_OTHER_DEVICES: Final = (
    "import ray",
    "from ray",
    "DataParallel(",
    "device_map",
    "virtual-local-rank",
)
"""Words of programs in which GPU 0 may be a process's own, or several GPUs belong to one process.
``DistributedDataParallel(`` ends in one of them and is taken out before."""


class Form(Enum):
    """How the number is written."""

    TEXT = "text"
    """``"cuda:0"``"""
    INDEX = "index"
    """The 0 of ``x.cuda(0)`` and ``torch.device("cuda", 0)``."""
    LISTED = "listed"
    """The 0 of ``device_ids=[0]``."""
    CHOSEN = "chosen"
    """The 0 of ``torch.cuda.set_device(0)``."""


@dataclass(frozen=True, slots=True)
class FixedDevice:
    """One number of a GPU in the source."""

    node: ast.expr
    """The string or the number."""
    form: Form


def fixed_device(module: Module, node: ast.AST) -> FixedDevice | None:
    """What a constant names, when it is used as a device."""
    if not isinstance(node, ast.Constant):
        return None
    if isinstance(node.value, str):
        used = NUMBERED.fullmatch(node.value) and _is_used_as_device(module, node)
        return FixedDevice(node, Form.TEXT) if used else None
    form = _form_of_number(module, node) if is_gpu_number(node) else None
    return None if form is None else FixedDevice(node, form)


def _is_used_as_device(module: Module, text: ast.expr) -> bool:
    child: ast.expr = text
    parent = module.parent(child)
    while isinstance(parent, ast.IfExp) and _asks_for_a_gpu(module, parent.test):
        child, parent = parent, module.parent(parent)
    if isinstance(parent, ast.keyword):
        call = module.parent(parent)
        return parent.arg == "device" and isinstance(call, ast.Call) and _makes(module, call)
    if isinstance(parent, ast.Call):
        if not parent.args or parent.args[0] is not child:
            return False
        called = module.qualified_name(parent.func)
        if called in SET_DEVICE:
            return True
        if called == _DEVICE:
            return _is_kept_for_good(module, parent)
        return called is None and getattr(parent.func, "attr", "") == "to"
    return _is_assigned_for_good(module, child, parent)


def _is_kept_for_good(module: Module, made: ast.Call) -> bool:
    """Whether a ``torch.device(...)`` is used where it stands, or is the only value of its variable."""
    child: ast.expr = made
    parent = module.parent(child)
    while isinstance(parent, ast.IfExp) and _asks_for_a_gpu(module, parent.test):
        child, parent = parent, module.parent(parent)
    if isinstance(parent, ast.Assign):
        return _is_assigned_for_good(module, child, parent)
    if isinstance(parent, ast.keyword):
        return parent.arg == "device"
    return isinstance(parent, ast.Call) and getattr(parent.func, "attr", "") == "to"


def _is_assigned_for_good(module: Module, value: ast.expr, statement: ast.AST | None) -> bool:
    """Whether a variable that is used as a device gets no other GPU anywhere in the file."""
    if not (isinstance(statement, ast.Assign) and statement.value is value):
        return False
    if len(statement.targets) != 1:
        return False
    target = statement.targets[0]
    uses: list[ast.expr]
    if isinstance(target, ast.Name):
        _, bindings = module.bindings(target)
        assigned = [
            module.assigned_value(item) if isinstance(item, ast.Name) else None for item in bindings
        ]
        uses = [*module.loads_of_same_name(target)]
    elif isinstance(target, ast.Attribute):
        same = [
            node
            for node in module.nodes(ast.Attribute)
            if isinstance(node, ast.Attribute) and node.attr == target.attr
        ]
        stores = [node for node in same if isinstance(node.ctx, ast.Store)]
        assigned = [module.assigned_to_attribute(store) for store in stores]
        uses = [node for node in same if isinstance(node.ctx, ast.Load)]
    else:
        return False
    is_used = any(_is_device_argument(module, use) for use in uses)
    return is_used and _all_but_one_are_the_cpu(module, assigned)


def _is_device_argument(module: Module, use: ast.expr) -> bool:
    """Whether a variable is given as a device."""
    parent = module.parent(use)
    if isinstance(parent, ast.keyword):
        return parent.arg == "device"
    if not isinstance(parent, ast.Call) or parent.args[:1] != [use]:
        return False
    called = module.qualified_name(parent.func)
    return called in (*SET_DEVICE, _DEVICE) or getattr(parent.func, "attr", "") in ("to", "cuda")


def _all_but_one_are_the_cpu(module: Module, assigned: list[ast.expr | None]) -> bool:
    return sum(item is None or not _is_the_cpu(module, item) for item in assigned) == 1


def _is_the_cpu(module: Module, value: ast.expr) -> bool:
    if isinstance(value, ast.Call) and module.qualified_name(value.func) == _DEVICE and value.args:
        value = value.args[0]
    return isinstance(value, ast.Constant) and value.value == "cpu"


def _makes(module: Module, call: ast.Call) -> bool:
    """Whether a call of torch makes or moves something."""
    called = module.qualified_name(call.func)
    if called is None:
        return getattr(call.func, "attr", "") == "to"
    return called.startswith("torch.")


def _form_of_number(module: Module, number: ast.expr) -> Form | None:
    parent = module.parent(number)
    if isinstance(parent, ast.List):
        keyword = module.parent(parent)
        call = module.parent(keyword) if isinstance(keyword, ast.keyword) else None
        if isinstance(keyword, ast.keyword) and keyword.arg == "device_ids":
            wraps = isinstance(call, ast.Call) and module.qualified_name(call.func)
            return Form.LISTED if wraps == DISTRIBUTED_DATA_PARALLEL else None
        return None
    if not isinstance(parent, ast.Call):
        return None
    called = module.qualified_name(parent.func)
    if called in SET_DEVICE and parent.args[:1] == [number]:
        return Form.CHOSEN
    if called == _DEVICE and parent.args[1:] == [number]:
        return Form.INDEX if _is_kept_for_good(module, parent) else None
    if called is None and getattr(parent.func, "attr", "") == "cuda" and parent.args == [number]:
        return Form.INDEX
    return None


def every_rank_comes_here(module: Module, node: ast.AST) -> bool:
    """Whether nothing around a node, or around the calls of its function, picks out some ranks or some launches."""
    if any(not _asks_for_a_gpu(module, guard.test) for guard in module.guards(node)):
        return False
    function = module.enclosing_function(node)
    if function is None:
        return True
    if not _makes_ranks(module, function) and not _is_called(module, function):
        return False
    careful = (GuardKind.RANK, GuardKind.LAUNCH, GuardKind.DEVICE_COUNT)
    return not any(
        kept_to_some_ranks(module, call)
        or any(guard.kind in careful for guard in module.guards(call))
        for call in module.calls_written(function.name)
    )


def _is_called(module: Module, function: Function) -> bool:
    """Whether the file names the function again; a method's object is taken to be made where the ranks are."""
    return isinstance(module.parent(function), ast.ClassDef) or is_named_in_file(module, function)


def _makes_ranks(module: Module, function: Function) -> bool:
    return any(module.calls(_INIT, DISTRIBUTED_DATA_PARALLEL, *_ACCELERATE, inside=function))


def _asks_for_a_gpu(module: Module, test: ast.expr) -> bool:
    if isinstance(test, ast.Name):
        asked = module.values(test).only_expression()
        return asked is not None and asked is not test and _asks_for_a_gpu(module, asked)
    return isinstance(test, ast.Call) and module.qualified_name(test.func) == _AVAILABLE


def has_ranks(module: Module, node: ast.AST) -> bool:
    """Whether the file itself trains with one process per GPU: it makes a group, wraps a model or asks accelerate, and
    hides no GPUs. What a class does whose objects have another method in place of the one around ``node`` is left
    out: its processes never come here."""
    facts = module.facts
    if facts.visible_devices:
        return False
    made = {*facts.accelerator, *facts.distributed_data_parallel}
    made.update(map(module.range_of, module.calls(_INIT)))
    for cls in _classes_without(module, node) if made else ():
        made.difference_update(map(module.range_of, module.nodes(ast.Call, inside=cls)))
    return bool(made)


def _classes_without(module: Module, node: ast.AST) -> list[ast.ClassDef]:
    """The classes of the file that derive from the one of the method around a node, and run a method of their own."""
    function = module.enclosing_function(node)
    owner = None if function is None else module.parent(function)
    if function is None or not isinstance(owner, ast.ClassDef):
        return []
    base, name = module.class_name(owner), function.name
    classes = [item for item in module.nodes(ast.ClassDef) if isinstance(item, ast.ClassDef)]
    overriding = [
        module.class_name(cls)
        for cls in classes
        if cls is not owner
        and module.is_subclass(module.class_name(cls), base)
        and (method := module.method(cls, name)) is not None
        and not _goes_on_to(module, method, name)
    ]
    return [cls for cls in classes if module.is_subclass(module.class_name(cls), *overriding)]


def _goes_on_to(module: Module, override: Function, name: str) -> bool:
    """Whether an overriding method calls the one that it overrides."""
    return any(
        isinstance(node, ast.Attribute) and node.attr == name
        for node in module.nodes(ast.Attribute, inside=override)
    )


def gives_other_devices(text: str) -> bool:
    """Whether the text of a file says that GPU 0 may be right."""
    own = text.replace("DistributedDataParallel(", "")
    return any(word in own for word in _OTHER_DEVICES)
