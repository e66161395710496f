"""Calls of torch.load that leave it to the file where the tensors go, and what is done with what they load."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from ranksafe.launch.context import LaunchContext
from ranksafe.semantics.module import Module
from ranksafe.semantics.structure import Function

from ranksafe_rules._shared.chosen_branches import comes_to
from ranksafe_rules._shared.every_rank import callers, may_be_reached
from ranksafe_rules._shared.rank_words import asks_for_the_rank, identifiers
from ranksafe_rules._shared.trails.functions import callers_elsewhere
from ranksafe_rules.checkpoints.saved_files import LOAD, is_written_from_the_cpu

_CHECKPOINT: Final = re.compile(
    r"check_?point|ckpt|resume|state_?dict|snapshot|pretrain|weights|\.pth(\.tar)?\b", re.IGNORECASE
)
_WITHOUT_TENSORS: Final = re.compile(r"sched|sampler|scaler|loader", re.IGNORECASE)
"""What has such a name keeps numbers in its state, not tensors (torch.optim.lr_scheduler, torch.amp.GradScaler)."""
_IN_MEMORY: Final = re.compile(r"buffer|bytes|stream|(^|_)bio$", re.IGNORECASE)


class Use(Enum):
    """What becomes of what is loaded."""

    STATE = "state"
    """It goes to ``load_state_dict``, which copies to where the parameters are."""
    CHECKPOINT = "checkpoint"
    """Its name, or that of the file, says that it is a checkpoint."""


@dataclass(frozen=True, slots=True)
class Load:
    """One call of torch.load."""

    call: ast.Call
    source: ast.expr
    """What is loaded."""
    use: Use


def unplaced_loads(module: Module) -> Iterator[Load]:
    """Loads of checkpoints from files without a ``map_location``, in source order.

    Whatever is not known to be a checkpoint is left out: most other files (features, data sets) hold tensors of the
    CPU, which are loaded there.
    """
    for call in module.calls(LOAD):
        if module.argument(call, "map_location", 1) is not None:
            continue
        source = module.argument_node(call, "f", 0)
        use = None if source is None else _use_of(module, call, source)
        if source is None or use is None or not _may_hold_cuda_tensors(module, call, source):
            continue
        yield Load(call, source, use)


def may_be_called(module: Module, load: Load, launch: LaunchContext) -> bool:
    """Whether a program of several processes may come to a load: False where calls in other files alone are known to
    run its function, and each is of another program, or hands it what is loaded already."""
    function = module.enclosing_function(load.call)
    if function is None or any(callers(module, function, certain=False)):
        return True
    calls = list(callers_elsewhere(module, function))
    return not calls or any(
        may_be_reached(user, launch)
        and comes_to(module, load.call, user, call)
        and not _hands_over_loaded(module, load, function, user, call)
        for user, call in calls
    )


def _hands_over_loaded(
    module: Module, load: Load, function: Function, user: Module, call: ast.Call
) -> bool:
    """Whether a call passes what torch.load gave where the function takes a path: that is loaded nowhere again."""
    source = module.argument_node(load.call, "f", 0)
    names = [item.arg for item in (*function.args.posonlyargs, *function.args.args)]
    if not isinstance(source, ast.Name) or source.id not in names:
        return False
    given = user.argument_node(call, source.id, names.index(source.id))
    while isinstance(given, (ast.Subscript, ast.Attribute)):
        given = given.value
    known = () if given is None else user.values(given).known
    return bool(known) and all(
        isinstance(value.node, ast.Call)
        and isinstance(value.module, Module)
        and value.module.qualified_name(value.node.func) == LOAD
        for value in known
    )


def _may_hold_cuda_tensors(module: Module, call: ast.Call, source: ast.expr) -> bool:
    if module.type_of(source) == "io.BytesIO" or any(map(_IN_MEMORY.search, identifiers(source))):
        return False
    names = [*_target_words(module, _outermost(module, call)), *_strings(source)]
    if any(map(_WITHOUT_TENSORS.search, names)):
        return False
    text = module.text_of(source)
    if ".safetensors" in text or _below_a_device_context(module, call):
        return False
    if asks_for_the_rank(module, source, from_callers=False):
        return False  # A file for each rank holds what that rank had on its own GPU.
    return not is_written_from_the_cpu(module, source)


def _below_a_device_context(module: Module, node: ast.AST) -> bool:
    """``with torch.device(...)``: the author has thought of where tensors go."""
    current = module.parent(node)
    while current is not None:
        if isinstance(current, ast.With):
            for item in current.items:
                if isinstance(item.context_expr, ast.Call) and "device" in identifiers(
                    item.context_expr.func
                ):
                    return True
        current = module.parent(current)
    return False


def _use_of(module: Module, call: ast.Call, source: ast.expr) -> Use | None:
    whole = _outermost(module, call)
    uses = [whole, *(_outermost(module, use) for use in module.uses_of(whole))]
    for name in _unpacked(module, whole):
        uses += [_outermost(module, use) for use in module.loads_of_same_name(name)]
    answers = [answer for use in uses if (answer := _is_loaded(module, use)) is not None]
    if answers:
        return Use.STATE if any(answers) else None
    words = [*identifiers(source), *_strings(source), *_target_words(module, whole)]
    return Use.CHECKPOINT if any(map(_CHECKPOINT.search, words)) else None


def _outermost(module: Module, node: ast.expr) -> ast.expr:
    """``torch.load(p)["model"]`` for the load in it, ``checkpoint["model"].float()`` for the checkpoint."""
    parent = module.parent(node)
    while isinstance(parent, (ast.Subscript, ast.Attribute, ast.Call)):
        if isinstance(parent, ast.Call) and parent.func is not node:
            break
        if isinstance(parent, ast.Subscript) and parent.value is not node:
            break
        node = parent
        parent = module.parent(node)
    return node


def _is_loaded(module: Module, use: ast.expr) -> bool | None:
    """Whether an expression is an argument of a ``load_state_dict`` that takes tensors (or of a function that prepares
    it for that); None: of none at all."""
    parent = module.parent(use)
    for _ in range(2):
        if isinstance(parent, ast.keyword):
            parent = module.parent(parent)
        if not isinstance(parent, ast.Call):
            return None
        function = parent.func
        if isinstance(function, (ast.Attribute, ast.Name)):
            name = function.attr if isinstance(function, ast.Attribute) else function.id
            if name == "load_state_dict":
                return not any(map(_WITHOUT_TENSORS.search, identifiers(function)))
        parent = module.parent(parent)
    return None


def _unpacked(module: Module, whole: ast.expr) -> Iterator[ast.Name]:
    """The names of ``model_state, optimizer_state = torch.load(p)``."""
    parent = module.parent(whole)
    if isinstance(parent, ast.Assign) and isinstance(parent.targets[0], ast.Tuple):
        for item in parent.targets[0].elts:
            if isinstance(item, ast.Name):
                yield item


def _target_words(module: Module, whole: ast.expr) -> Iterator[str]:
    parent = module.parent(whole)
    if isinstance(parent, (ast.Assign, ast.AnnAssign)):
        targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
        for target in targets:
            yield from identifiers(target)


def _strings(expression: ast.expr) -> Iterator[str]:
    for node in ast.walk(expression):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
