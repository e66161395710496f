"""Where a model is when nn.DataParallel runs it, and where nn.DataParallel wants it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ranksafe.semantics.module import Module
from ranksafe.semantics.walking import unparsed

from ranksafe_rules._shared.call_chains import names_of_result, object_of
from ranksafe_rules._shared.devices import device_numbers
from ranksafe_rules._shared.origins import makers
from ranksafe_rules.devices.loads import device_map_of, is_model_load

_MOVING: Final = frozenset({"to", "cuda"})
_CHOOSING: Final = ("set_device", "cuda.device(", "set_default_device")
"""In a file with one of these, nobody knows which device is the current one."""


@dataclass(frozen=True, slots=True)
class Placement:
    """What puts a model somewhere."""

    node: ast.AST
    device: int | None
    """The GPU's number; None: not known."""
    spread: bool = False
    """A device map puts the model on several GPUs."""


def wanted_device(module: Module, wrap: ast.Call) -> int | None:
    """The first of the device ids, 0 when they are left out; None: not known."""
    given = module.argument(wrap, "device_ids", 1)
    if given is None:
        return 0
    if not given.complete or len(given.known) != 1:
        return None
    value = given.known[0]
    if value.is_constant:
        return 0 if value.constant is None else None
    if isinstance(value.node, (ast.List, ast.Tuple)) and value.node.elts:
        first = value.node.elts[0]
        if isinstance(first, ast.Constant) and isinstance(first.value, int):
            return first.value
    return None


def placement_of(module: Module, wrap: ast.Call) -> Placement | None:
    """The last thing that places the wrapped model, in the function of the wrap; None where that is not sure."""
    model = module.argument_node(wrap, "module", 0)
    if model is None:
        return None
    around = set(module.guards(wrap))
    last: ast.Call | None = None
    for call in _moves(module, wrap, model):
        if last is None or module.order_of(call.func) >= module.order_of(last.func):
            last = call
    if last is not None:
        certain = set(module.guards(last)) <= around
        return Placement(last, _device_of(module, last)) if certain else None
    for load in makers(module, model):
        asked = device_map_of(module, load) if is_model_load(module, load) else None
        if asked is not None:
            return Placement(asked.anchor, None, spread=True)
    return None


def _moves(module: Module, wrap: ast.Call, model: ast.expr) -> Iterator[ast.Call]:
    """``model.to(device)`` before the wrap, in it and behind it."""
    function = module.enclosing_function(wrap)
    inner = unparsed(object_of(model))
    wrapper = names_of_result(module, wrap)
    for word in _MOVING:
        for call in module.calls_written(word):
            if module.enclosing_function(call) is not function or call is wrap:
                continue
            if not isinstance(call.func, ast.Attribute):
                continue
            subject = object_of(call)
            if subject is wrap:
                yield call
            elif module.order_of(call) > module.order_of(wrap) and not module.is_inside(call, wrap):
                if unparsed(subject) in wrapper or unparsed(subject) == inner:
                    yield call
            elif unparsed(subject) == inner or inner in names_of_result(module, call):
                yield call


def _device_of(module: Module, call: ast.Call) -> int | None:
    assert isinstance(call.func, ast.Attribute)
    device = module.argument_node(call, "device", 0)
    if device is None:
        return _current(module) if call.func.attr == "cuda" and not call.keywords else None
    numbers = device_numbers(module, device)
    if len(numbers) == 1:
        return next(iter(numbers))
    constant = module.values(device).only_constant()
    if isinstance(constant, int) and not isinstance(constant, bool):
        return constant
    return _current(module) if constant == "cuda" else None


def _current(module: Module) -> int | None:
    return None if module.text_says(_chooses) else 0


def _chooses(text: str) -> bool:
    return any(word in text for word in _CHOOSING)
