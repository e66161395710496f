"""Calls that split or shuffle a dataset at random, and what makes their result the same in every process."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Final

from ranksafe.semantics.module import Module

from ranksafe_rules.data.loaded_datasets import loading_calls
from ranksafe_rules.data.rank_values import differs
from ranksafe_rules.data.wholes import speaks_of_ranks


@dataclass(frozen=True, slots=True)
class Splitter:
    """A function or method that splits, or shuffles what ranks then take their shares of."""

    seeds: tuple[str, ...]
    """The arguments that make the split a fixed one."""
    fixed: str
    """What the fix writes."""
    only_shuffles: bool = False


_TORCH: Final = Splitter(("generator",), "generator=torch.Generator().manual_seed(0)")
_SKLEARN: Final = Splitter(("random_state",), "random_state=0")
_DATASETS: Final = Splitter(("seed", "generator"), "seed=0")
_SHUFFLE: Final = Splitter(("seed", "generator"), "seed=0", only_shuffles=True)

_FUNCTIONS: Final = {
    "torch.utils.data.random_split": _TORCH,
    "torch.utils.data.dataset.random_split": _TORCH,
    "sklearn.model_selection.train_test_split": _SKLEARN,
}
"""torch 2.13.0: the default generator starts with a seed of its own in each process. scikit-learn: numpy's global
state, as datasets 5.2.0 for its methods."""
_METHODS: Final = {"train_test_split": _DATASETS, "shuffle": _SHUFFLE}
NAMES: Final = frozenset({"random_split", *_METHODS})
_TAKE_SHARES: Final = ("Trainer(", ".prepare(", "DistributedSampler(")


def splitter_of(module: Module, call: ast.Call) -> Splitter | None:
    """How a call splits or shuffles; None for other calls, and for splits in the order of the data."""
    name = module.qualified_name(call.func)
    splitter = _FUNCTIONS.get(name) if name is not None else None
    if splitter is None and name is None and isinstance(call.func, ast.Attribute):
        if "datasets" in module.facts.imports:
            splitter = _METHODS.get(call.func.attr)
    if splitter is None or any(keyword.arg is None for keyword in call.keywords):
        return None
    if splitter is _SHUFFLE:
        return splitter if _is_shared_out(module, call) else None
    shuffle = module.argument(call, "shuffle") if splitter is not _TORCH else None
    if shuffle is not None and shuffle.only_constant() is not True:
        return None
    return splitter


def _is_shared_out(module: Module, call: ast.Call) -> bool:
    """Whether a shuffled dataset, which is loaded here as a whole, is one of which ranks take shares by its indices."""
    assert isinstance(call.func, ast.Attribute)
    loads = list(loading_calls(module, call.func.value))
    if call.args or not loads:
        return False
    if any(module.argument_node(load, "streaming") or speaks_of_ranks(load) for load in loads):
        return False
    return any(map(module.users_mention, _TAKE_SHARES))


def is_open(module: Module, call: ast.Call, splitter: Splitter) -> bool:
    """Whether nothing in the call fixes the split: no seed, None, or one that is another in each process."""
    if splitter is _TORCH and len(call.args) > 2:
        return False
    given = [node for name in splitter.seeds if (node := module.argument_node(call, name))]
    return all(_is_none(module, node) or differs(module, _seed_in(node)) for node in given)


def _is_none(module: Module, node: ast.expr) -> bool:
    values = module.values(node)
    return (
        values.complete
        and bool(values.known)
        and all(value.is_constant and value.constant is None for value in values.known)
    )


def _seed_in(node: ast.expr) -> ast.expr:
    """The number in ``torch.Generator().manual_seed(number)``."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr == "manual_seed" and len(node.args) == 1:
            return node.args[0]
    return node
