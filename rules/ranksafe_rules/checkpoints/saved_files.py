"""How the project writes the files that it loads: from where the tensors in them come."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Final

from ranksafe.semantics.module import Module
from ranksafe.semantics.walking import unparsed

from ranksafe_rules._shared.call_chains import object_of

SAVE: Final = "torch.save"
LOAD: Final = "torch.load"
_ON_THE_CPU: Final = re.compile(r"\.cpu\(|\.numpy\(|(to|device)\(\s*(device=)?[\"']cpu")
_FULL_STATE: Final = "torch.distributed.fsdp.FullyShardedDataParallel.full_optim_state_dict"
"""Gathers an optimizer's state on the CPU (torch 2.13.0, fully_sharded_data_parallel.py: ``cpu_offload=True``)."""
_MOVES: Final = ("cpu", "cuda", "to")
_MOST_FILES: Final = 6
_MAXIMUM_DEPTH: Final = 6


def is_written_from_the_cpu(module: Module, source: ast.expr) -> bool:
    """Whether the project writes a file of this name, and always from tensors that are not on a GPU."""
    name = _file_name(module, source)
    found = _saves_of(module, name) if name else _saves_as_written(module, source)
    if not found and name is None:
        found = _saves_of_the_pair(module, source)
    return bool(found) and all(_is_from_the_cpu(*save) for save in found)


def is_written_elsewhere(module: Module, source: ast.expr) -> bool:
    """Whether the project writes a file of this name from something else than the state of a model."""
    name = _file_name(module, source)
    saves = _saves_of(module, name) if name else []
    return bool(saves) and not any(_states_saved(*save) for save in saves)


def _saves_of(module: Module, name: str) -> list[tuple[Module, ast.Call]]:
    saves = [*_saves_named(module, name)]
    for other in module.files_saying(name, most=_MOST_FILES):
        saves += _saves_named(other, name)
    return saves


def _saves_of_the_pair(module: Module, source: ast.expr) -> list[tuple[Module, ast.Call]]:
    """For a path that ``load_network`` is given those in ``save_network``; without such a pair all of the file."""
    function = module.enclosing_function(source)
    writer = None if function is None else function.name.replace("load", "save")
    saves = list(module.calls(SAVE))
    paired = [save for save in saves if _function_name(module, save) == writer]
    return [(module, save) for save in paired or saves]


def _function_name(module: Module, node: ast.AST) -> str | None:
    function = module.enclosing_function(node)
    return None if function is None else function.name


def _saves_as_written(module: Module, source: ast.expr) -> list[tuple[Module, ast.Call]]:
    """Those of the file to what is written as the source is."""
    text = module.text_of(source)
    found = []
    for save in module.calls(SAVE):
        target = module.argument_node(save, "f", 1)
        if target is not None and module.text_of(target) == text:
            found.append((module, save))
    return found


def _saves_named(module: Module, name: str) -> Iterator[tuple[Module, ast.Call]]:
    for save in module.calls(SAVE):
        target = module.argument_node(save, "f", 1)
        if target is not None and _file_name(module, target) == name:
            yield module, save


def _file_name(module: Module, path: ast.expr, depth: int = _MAXIMUM_DEPTH) -> str | None:
    """The last part of a path, where it is written down: ``"last.pth"`` of ``os.path.join(folder, "last.pth")``."""
    names: set[str | None] = set()
    for value in module.values(path).known if depth else ():
        node, holder = value.node, value.module
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            names.add(node.value.rpartition("/")[2])
        elif isinstance(holder, Module):
            last = _last_part(holder, node)
            names.add(None if last is None else _file_name(holder, last, depth - 1))
    return names.pop() if len(names) == 1 else None


def _last_part(module: Module, node: ast.expr) -> ast.expr | None:
    """The part of a path that holds the file's whole name."""
    if isinstance(node, ast.Call):
        is_join = module.qualified_name(node.func) in ("os.path.join", "pathlib.Path")
        return node.args[-1] if is_join and node.args else None
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Div) or (isinstance(node.op, ast.Add) and _begins(node.right)):
            return node.right
        return None
    if isinstance(node, ast.JoinedStr) and len(node.values) > 1 and _begins(node.values[-1]):
        return node.values[-1]
    return None


def _begins(part: ast.expr) -> bool:
    """Whether a part of a path begins a file's name itself."""
    return isinstance(part, ast.Constant) and "/" in str(part.value)


def _is_from_the_cpu(module: Module, save: ast.Call) -> bool:
    saved = module.argument_node(save, "obj", 0)
    if saved is None:
        return False
    behind = _behind(module, saved)
    if _ON_THE_CPU.search(" ".join(map(module.text_of, behind))):
        return True
    if any(
        isinstance(it, ast.Call) and module.qualified_name(it.func) == _FULL_STATE for it in behind
    ):
        return True
    if any(_ON_THE_CPU.search(module.text_of(part)) for part in _put_into(module, saved, save)):
        return True
    owners = _states_saved(module, save)
    return bool(owners) and all(_was_moved_to_the_cpu(module, owner, save) for owner in owners)


def _behind(module: Module, node: ast.expr) -> list[ast.expr]:
    return [node, *(item.node for item in module.values(node).known if item.module is module)]


def _put_into(module: Module, saved: ast.expr, save: ast.Call) -> Iterator[ast.expr]:
    """What is assigned to the items of a dictionary in the function that saves it."""
    function = module.enclosing_function(save)
    for assignment in module.nodes(ast.Assign, function):
        if isinstance(assignment, ast.Assign):
            for target in assignment.targets:
                if isinstance(target, ast.Subscript) and unparsed(target.value) == unparsed(saved):
                    yield assignment.value


def _states_saved(module: Module, save: ast.Call) -> list[ast.expr]:
    """The objects whose states are in what is saved."""
    saved = module.argument_node(save, "obj", 0)
    return [
        call.func.value
        for node in ([] if saved is None else _behind(module, saved))
        for call in ast.walk(node)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr == "state_dict"
    ]


def _was_moved_to_the_cpu(module: Module, owner: ast.expr, save: ast.Call) -> bool:
    """Whether the last move before a save, of what is saved or of the object that holds it, was to the CPU:
    ``net.cpu()`` before ``torch.save(net.module.state_dict(), path)``."""
    around = module.guards(save)
    last: ast.Call | None = None
    for word in _MOVES:
        for move in module.calls_written(word):
            if not isinstance(move.func, ast.Attribute) or not _holds(move.func.value, owner):
                continue
            if module.enclosing_function(move) is not module.enclosing_function(save):
                continue
            if module.order_of(move) < module.order_of(save) and all(
                guard in around for guard in module.guards(move)
            ):
                if last is None or module.order_of(move) > module.order_of(last):
                    last = move
    return last is not None and _ON_THE_CPU.search(f".{_from_method(module, last)}") is not None


def _from_method(module: Module, call: ast.Call) -> str:
    assert isinstance(call.func, ast.Attribute)
    return module.text_of(call)[len(module.text_of(call.func.value)) + 1 :]


def _holds(holder: ast.expr, owner: ast.expr) -> bool:
    """Whether an object is another one, or has it in it: ``net`` has ``net.module``."""
    written = ast.dump(object_of(holder))
    while True:
        if ast.dump(owner) == written:
            return True
        if not isinstance(owner, ast.Attribute):
            return False
        owner = owner.value
