"""What the evaluation steps of a LightningModule log: values of this rank's batches, and whether they are reduced."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ranksafe.semantics.module import GuardKind, Module
from ranksafe.semantics.structure import Function

from ranksafe_rules.metrics.epoch_log_without_sync.fits import never_tests, never_validates
from ranksafe_rules.metrics.epoch_log_without_sync.readers import is_shown_only

LIGHTNING_MODULES: Final = (
    "pytorch_lightning.LightningModule",
    "lightning.LightningModule",
    "lightning.pytorch.LightningModule",
    "pytorch_lightning.core.LightningModule",
)
STEPS: Final = ("validation_step", "test_step")
"""Hooks that run once per batch and whose logs are of the epoch unless told otherwise
(trainer/connectors/logger_connector/fx_validator.py, lightning 2.6.6)."""
_COUNTS: Final = frozenset({"batch_idx", "batch_nb", "dataloader_idx", "dataloader_id"})
_TOGETHER: Final = re.compile(r"all_?gather|all_?reduce|gather_|\.gather\(|\.reduce\(")
"""A file with any of these may put the values of the ranks together itself."""
_STAGES: Final = frozenset(
    {"training", "validating", "testing", "sanity_checking", "stage", "state"}
)
"""Attributes that tell which step runs."""
_MAXIMUM_DEPTH: Final = 4


def takes_sync(module: Module, call: ast.Call) -> bool:
    """Whether ``sync_dist=True`` can be added: every rank comes to the call, and it says nothing of it yet."""
    return not module.guards(call) and module.argument(call, "sync_dist") is None


def logs_by_step(module: Module, cls: ast.ClassDef) -> list[list[ast.Call]]:
    """``self.log`` and ``self.log_dict`` calls of the epoch, with a value made of the batch: those of one step together
    (what a second one shares with it left out), in the order in which they run; what only the progress bar shows is
    left out."""
    if not module.is_subclass(module.class_name(cls), *LIGHTNING_MODULES):
        return []
    if module.has_method(cls, "log") or module.text_says(_may_put_together):
        return []
    steps: list[list[ast.Call]] = []
    seen: set[ast.Call] = set()
    for name in STEPS:
        found = [call for call in dict.fromkeys(_logs_of(module, cls, name)) if call not in seen]
        seen.update(found)
        read = [call for call in found if not is_shown_only(module, call)]
        if read:
            steps.append(read)
    return steps


def _logs_of(module: Module, cls: ast.ClassDef, name: str) -> Iterator[ast.Call]:
    step = module.method(cls, name)
    receiver = None if step is None else module.self_name(step)
    if step is None or receiver is None:
        return
    if name == "validation_step" and never_validates(module, cls):
        return
    if name == "test_step" and never_tests(module):
        return
    parameters = [item.arg for item in step.args.args[1:] if item.arg not in _COUNTS]
    yield from _logs(module, cls, _Part(step, receiver, frozenset(parameters)), _MAXIMUM_DEPTH)


@dataclass(frozen=True, slots=True)
class _Part:
    """A function that a step runs."""

    function: Function
    receiver: str
    """Its parameter that is the LightningModule."""
    given: frozenset[str]
    """Its parameters that hold something made of the batch."""


def _logs(module: Module, cls: ast.ClassDef, part: _Part, depth: int) -> Iterator[ast.Call]:
    """The logs of a function, and of those that it hands the LightningModule to."""
    names = _names_of_the_batch(module, part)
    for call in sorted(module.nodes(ast.Call, inside=part.function), key=module.order_of):
        assert isinstance(call, ast.Call)
        if _is_log(call, part.receiver):
            if _is_unreduced(module, call, names) and _is_of_the_step(module, call, part, names):
                yield call
        elif depth > 0:
            called = _called(module, cls, call, part.receiver, names)
            if called is not None and called.function is not part.function:
                if _is_of_the_step(module, call, part, names):
                    yield from _logs(module, cls, called, depth - 1)


def _is_log(call: ast.Call, receiver: str) -> bool:
    function = call.func
    return (
        isinstance(function, ast.Attribute)
        and function.attr in ("log", "log_dict")
        and isinstance(function.value, ast.Name)
        and function.value.id == receiver
    )


def _called(
    module: Module, cls: ast.ClassDef, call: ast.Call, receiver: str, names: set[str]
) -> _Part | None:
    """The method of the class, or the function of the file, that a call hands the LightningModule and something made
    of the batch."""
    function = call.func
    if isinstance(function, ast.Attribute):
        if not isinstance(function.value, ast.Name) or function.value.id != receiver:
            return None
        helper = module.method(cls, function.attr)
        itself = None if helper is None else module.self_name(helper)
        if helper is None or itself is None:
            return None
        given = _passed(helper.args.args[1:], call, names)
        return _Part(helper, itself, given) if given else None
    helper = module.function_called(call)
    if helper is None:
        return None
    receivers = _passed(helper.args.args, call, {receiver}, whole=True)
    given = _passed(helper.args.args, call, names)
    return _Part(helper, min(receivers), given) if len(receivers) == 1 and given else None


def _is_of_the_step(module: Module, call: ast.Call, part: _Part, names: set[str]) -> bool:
    """Whether a function that other steps may share runs a call in this one: not where a condition asks for a stage."""
    if part.function.name in STEPS:
        return True
    own = {item.arg for item in part.function.args.args}
    own |= set(_stored(part.function))
    own -= names | _COUNTS | {part.receiver}
    for guard in module.guards(call):
        for item in ast.walk(guard.test):
            if isinstance(item, ast.Name) and item.id in own:
                return False
            if isinstance(item, ast.Attribute) and item.attr in _STAGES:
                return False
    return True


def _names_of_the_batch(module: Module, part: _Part) -> set[str]:
    """The local names that hold something made of the batch."""
    names = set(part.given)
    before = -1
    while before != len(names):
        before = len(names)
        for node in module.nodes(ast.Assign, inside=part.function):
            assert isinstance(node, ast.Assign)
            if _mentions(node.value, names):
                names.update(name for target in node.targets for name in _stored(target))
        for node in module.nodes(ast.For, inside=part.function):
            assert isinstance(node, ast.For)
            if _mentions(node.iter, names):
                names.update(_stored(node.target))
    return names


def _stored(target: ast.AST) -> Iterator[str]:
    if isinstance(target, ast.Subscript):
        target = target.value
    for node in ast.walk(target):
        if isinstance(node, ast.Name) and (isinstance(node.ctx, ast.Store) or node is target):
            yield node.id


def _mentions(node: ast.AST, names: set[str]) -> bool:
    return any(isinstance(item, ast.Name) and item.id in names for item in ast.walk(node))


def _passed(
    parameters: list[ast.arg], call: ast.Call, names: set[str], *, whole: bool = False
) -> frozenset[str]:
    """The parameters that a call gives something made of one of the names (``whole``: one of them itself)."""
    pairs = [(item.arg, given) for item, given in zip(parameters, call.args, strict=False)]
    pairs += [(item.arg, item.value) for item in call.keywords if item.arg is not None]
    return frozenset(
        name
        for name, given in pairs
        if (isinstance(given, ast.Name) if whole else name not in _COUNTS)
        and _mentions(given, names)
    )


def _is_unreduced(module: Module, call: ast.Call, names: set[str]) -> bool:
    is_dictionary = isinstance(call.func, ast.Attribute) and call.func.attr == "log_dict"
    value = module.argument_node(call, *(("dictionary", 0) if is_dictionary else ("value", 1)))
    if value is None or not _mentions(value, names):
        return False
    if any(guard.kind in (GuardKind.RANK, GuardKind.LAUNCH) for guard in module.guards(call)):
        return False
    return (
        _is_off(module, call, "sync_dist")
        and not _may_be_off(module, call, "on_epoch")
        and module.argument(call, "rank_zero_only") is None
        and module.argument(call, "sync_dist_group") is None
    )


def _is_off(module: Module, call: ast.Call, name: str) -> bool:
    given = module.argument(call, name)
    return given is None or given.only_constant() is False


def _may_be_off(module: Module, call: ast.Call, name: str) -> bool:
    given = module.argument(call, name)
    return given is not None and given.only_constant() is not True


def _may_put_together(text: str) -> bool:
    return _TOGETHER.search(text) is not None
