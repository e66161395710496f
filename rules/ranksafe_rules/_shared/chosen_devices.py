"""Which GPU a process uses: the current one, a certain one, or one that is computed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Final

from ranksafe.semantics.module import Module
from ranksafe.semantics.units import callee_name

from ranksafe_rules._shared.parameters import WITHOUT_PARAMETERS

CURRENT: Final = re.compile(r"cuda")
"""A device string without a number: the current device, GPU 0 where nobody chose one."""
OPEN_NUMBER: Final = re.compile(r"cuda:(%[ds]|\{\w*\})?")
"""The string part of ``"cuda:%d" % n``, ``"cuda:{}".format(n)``, ``"cuda:" + str(n)`` and ``f"cuda:{n}"``."""
SET_DEVICE: Final = frozenset(
    {
        "torch.cuda.set_device",
        "torch.accelerator.set_device_index",
        "torch.accelerator.set_device_idx",
    }
)
DISTRIBUTED_DATA_PARALLEL: Final = "torch.nn.parallel.DistributedDataParallel"
NAMING_KINDS: Final[tuple[type[ast.AST], ...]] = (ast.Call, ast.JoinedStr, ast.BinOp)
"""Kinds of nodes in which a GPU's number can stand."""
_TAKERS: Final = frozenset({"device", "DistributedDataParallel", "cuda", "to", "format"}) | {
    name.rpartition(".")[2] for name in SET_DEVICE
}
"""Last words of calls that a GPU's number can be given to."""
_INTEGER: Final = "builtins.int"


def without_int(module: Module, node: ast.expr) -> ast.expr:
    """``x`` of ``int(x)``."""
    while isinstance(node, ast.Call) and len(node.args) == 1:
        if module.qualified_name(node.func) != _INTEGER:
            break
        node = node.args[0]
    return node


def numbers_chosen(module: Module, node: ast.AST) -> Iterator[ast.expr]:
    """What is used as a GPU's number in a node: the index of ``set_device(n)``, ``torch.device("cuda", n)``,
    ``x.cuda(n)``, ``DistributedDataParallel(m, device_ids=[n])`` and of a string that is put together."""
    if isinstance(node, ast.JoinedStr):
        yield from _in_formatted_string(node)
    elif isinstance(node, ast.BinOp):
        yield from _in_operation(module, node)
    elif isinstance(node, ast.Call):
        yield from _in_call(module, node)


def same_numbers(module: Module, node: ast.AST, number: ast.expr) -> list[ast.expr]:
    """The GPU numbers in the function of a node that are written as ``number`` is, in source order, itself included."""
    function = module.enclosing_function(node)
    written = module.text_of(number)
    found = [
        other
        for kind in NAMING_KINDS
        for place in module.nodes(kind, inside=function)
        if module.enclosing_function(place) is function
        for other in numbers_chosen(module, place)
        if module.text_of(other) == written
    ]
    return sorted(found, key=module.order_of)


def _in_formatted_string(node: ast.JoinedStr) -> Iterator[ast.expr]:
    if len(node.values) == 2:
        text, number = node.values
        if isinstance(text, ast.Constant) and text.value == "cuda:":
            if isinstance(number, ast.FormattedValue):
                yield number.value


def _in_operation(module: Module, node: ast.BinOp) -> Iterator[ast.expr]:
    text = node.left
    if not (isinstance(text, ast.Constant) and isinstance(text.value, str)):
        return
    if not isinstance(node.op, (ast.Mod, ast.Add)) or not OPEN_NUMBER.fullmatch(text.value):
        return
    number = node.right
    if isinstance(number, ast.Tuple) and len(number.elts) == 1:
        number = number.elts[0]
    if isinstance(number, ast.Call) and module.qualified_name(number.func) == "builtins.str":
        number = number.args[0] if number.args else number
    yield number


def _in_call(module: Module, call: ast.Call) -> Iterator[ast.expr]:
    function = call.func
    written = callee_name(call) or ""
    if written not in _TAKERS and not module.names.may_stand_for_another(written):
        return  # Nearly every call of a file: its name need not be looked up.
    called = module.qualified_name(function)
    if called in SET_DEVICE:
        yield from call.args[:1]
    elif called == "torch.device":
        if len(call.args) == 2 and not _is_another_kind(call.args[0]):
            yield call.args[1]
    elif called == "torch.cuda.device":
        yield from call.args[:1]
    elif called == DISTRIBUTED_DATA_PARALLEL:
        yield from _in_wrap(module, call)
    elif isinstance(function, ast.Attribute):
        if function.attr in ("cuda", "to") and called is None:
            yield from call.args[:1]
        elif function.attr == "format" and isinstance(function.value, ast.Constant):
            text = function.value.value
            if isinstance(text, str) and OPEN_NUMBER.fullmatch(text):
                yield from call.args[:1]


def _is_another_kind(kind: ast.expr) -> bool:
    return isinstance(kind, ast.Constant) and kind.value != "cuda"


def _in_wrap(module: Module, call: ast.Call) -> Iterator[ast.expr]:
    listed = module.argument_node(call, "device_ids", 1)
    if isinstance(listed, ast.List):
        yield from listed.elts
    elif listed is not None:
        for value in module.values(listed).known:
            if isinstance(value.node, ast.List):
                yield from value.node.elts
    output = module.argument_node(call, "output_device", 2)
    if output is not None:
        yield output


def is_named_in_file(
    module: Module, function: ast.FunctionDef | ast.AsyncFunctionDef | None
) -> bool:
    """Whether the file names a function again, to call it or hand it on; statements outside functions run anyway."""
    return function is None or any(
        (isinstance(node, ast.Name) and node.id == function.name)
        or (isinstance(node, ast.Attribute) and node.attr == function.name)
        for kind in (ast.Name, ast.Attribute)
        for node in module.nodes(kind)
    )


def is_on_current_device(module: Module, call: ast.Call) -> bool:
    """Whether a call puts something on the current device: ``x.cuda()``, ``x.to("cuda")``, ``device="cuda"``."""
    if isinstance(call.func, ast.Attribute) and module.qualified_name(call.func) is None:
        is_current = (
            (call.func.attr == "cuda" and not call.args and not call.keywords)
            or (call.func.attr == "to" and call.args and _is_current(module, call.args[0]))
        )  # fmt: skip
        if is_current:
            return not _holds_no_tensor(module, call.func.value)
    return any(item.arg == "device" and _is_current(module, item.value) for item in call.keywords)


def _holds_no_tensor(module: Module, moved: ast.expr) -> bool:
    """Whether what is moved is a layer or a loss of torch without parameters, weights of classes included: nothing of
    it comes to a GPU."""
    made = module.values(moved).known
    return bool(made) and all(
        isinstance(value.node, ast.Call)
        and (module.qualified_name(value.node.func) or "").startswith("torch.nn.")
        and callee_name(value.node) in WITHOUT_PARAMETERS
        and not value.node.args
        and all(word.arg not in (None, "weight", "pos_weight") for word in value.node.keywords)
        for value in made
    )


def _is_current(module: Module, device: ast.expr) -> bool:
    for value in module.values(device).known:
        node = value.node
        if isinstance(node, ast.Call) and module.qualified_name(node.func) == "torch.device":
            if len(node.args) == 1 and _is_current(module, node.args[0]):
                return True
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if CURRENT.fullmatch(node.value):
                return True
    return False
