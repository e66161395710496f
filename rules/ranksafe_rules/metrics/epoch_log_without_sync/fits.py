"""What a script has its Trainers fit on."""

from __future__ import annotations

import ast
from typing import Final

from ranksafe.semantics.module import Module

from ranksafe_rules._shared.lightning_processes import PACKAGES
from ranksafe_rules._shared.passed_arguments import passed_for
from ranksafe_rules._shared.trails.functions import class_of

_LOADERS: Final = frozenset(
    {"torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader"}
)
_TESTS: Final = (".test(", "LightningCLI", "getattr(")
"""Words of what runs the test step (lightning 2.6.6 `trainer/trainer.py`, `cli.py`), or anything by its name."""
_MAXIMUM_DEPTH: Final = 3


def never_validates(module: Module, cls: ast.ClassDef) -> bool:
    """Whether all fits that a script shows are given a loader to train on and none to validate on: Lightning skips the
    validation then (2.6.6 `trainer/trainer.py` ``enable_validation``)."""
    train_only: bool = module.memoized(
        "fits that only train", module.tree, 0, lambda _node, _depth: _all_train_only(module)
    )
    if not train_only or module.has_method(cls, "val_dataloader"):
        return False
    return not module.users_saying(cls.name)  # They may have it fitted, too.


def _all_train_only(module: Module) -> bool:
    fits = [call for call in module.calls_written("fit") if _is_of_trainer(module, call)]
    if not fits or module.calls_written("validate"):
        return False
    return all(_trains_only(module, call) for call in fits)


def never_tests(module: Module) -> bool:
    """Whether the file, or one that imports it, fits models, and none of them has any tested, nor leaves that to
    Lightning's command line."""
    return module.users_mention(".fit(") and not any(map(module.users_mention, _TESTS))


def _is_of_trainer(module: Module, call: ast.Call) -> bool:
    if not isinstance(call.func, ast.Attribute):
        return False
    package, _, name = (_class_of(module, call.func.value) or "").partition(".")
    return package in PACKAGES and name.rpartition(".")[2] == "Trainer"


def _trains_only(module: Module, call: ast.Call) -> bool:
    given = {keyword.arg for keyword in call.keywords}
    if len(call.args) > 2 or not given <= {"model", "train_dataloaders", "ckpt_path"}:
        return False
    loader = module.argument_node(call, "train_dataloaders", 1)
    return loader is not None and _class_of(module, loader) in _LOADERS


def _class_of(module: Module, node: ast.expr, depth: int = _MAXIMUM_DEPTH) -> str | None:
    """The class of an object, also where a function of the file gets it; None when it is not known."""
    known = class_of(module, node)
    if known is not None or depth == 0 or not isinstance(node, ast.Name):
        return known
    _, bindings = module.bindings(node)
    if len(bindings) != 1 or not isinstance(bindings[0], ast.arg):
        return None
    passed = passed_for(module, module.parent(bindings[0]), node.id)
    found = {_class_of(module, given, depth - 1) for given in passed}
    return found.pop() if len(found) == 1 else None
