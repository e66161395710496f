"""Evaluation loops over a rank's own share of the data, whose results nobody puts together."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ranksafe.semantics.module import Module
from ranksafe.semantics.structure import Function
from ranksafe.semantics.units import callee_name

from ranksafe_rules._shared.origins import makers
from ranksafe_rules._shared.passed_arguments import passed_elsewhere
from ranksafe_rules._shared.rank_words import asks_for_the_rank, identifiers

_SAMPLER: Final = "torch.utils.data.distributed.DistributedSampler"
_SAMPLERS: Final = frozenset({_SAMPLER, "torch.utils.data.DistributedSampler"})
_LOADER: Final = "torch.utils.data.DataLoader"
_ACCELERATOR: Final = "accelerate.Accelerator"
_TOGETHER: Final = re.compile(
    r"all_?reduce|all_?gather|gather_|\.gather\(|\.reduce\(|reduce_|_reduce\b|sync|torchmetrics|rank_?\d|part_?files"
    r"|merge|broadcast|collect",
    re.IGNORECASE,
)
"""A file with any of these may put the results of the ranks together."""
_COUNTER: Final = re.compile(r"step|count|(^|_)(num|nb|n|total)(_|$)", re.IGNORECASE)
"""Such a name divides a result; the result itself says more in a message."""
_WITHOUT_GRADIENTS: Final = frozenset({"no_grad", "inference_mode"})
_WRAPPERS: Final = frozenset({"tqdm", "trange", "enumerate", "iter", "zip", "islice", "track"})
_KNOWN: Final = frozenset(
    {
        "builtins",
        "numpy",
        "torch",
        "sklearn",
        "math",
        "evaluate",
        "wandb",
        "pandas",
        "statistics",
        "collections",
    }
)
_REPORTS: Final = frozenset(
    {
        "print",
        "info",
        "log",
        "debug",
        "warning",
        "write",
        "add_scalar",
        "add_scalars",
        "append",
        "set_description",
    }
)


@dataclass(frozen=True, slots=True)
class Share:
    """A loop that collects results of one rank's share."""

    loader: ast.expr
    result: str
    """The name of what is collected."""
    source: tuple[Module, ast.Call]
    """What gives each rank its share: the sampler, or ``accelerator.prepare``; with its file."""


def uncollected_shares(module: Module) -> Iterator[Share]:
    """The evaluation loops of the file that do, in source order."""
    if module.text_says(_may_put_together):
        return
    for loop in module.nodes(ast.For):
        assert isinstance(loop, ast.For)
        function = module.enclosing_function(loop)
        if function is None or not _evaluates(module, function, loop):
            continue
        loader = _loader(loop.iter)
        source = None if loader is None else _source_of_shares(module, loader)
        result = _reported_result(module, function, loop) if source is not None else None
        if loader is not None and source is not None and result is not None:
            yield Share(loader, result, source)


def _loader(iterated: ast.expr) -> ast.expr | None:
    """What is iterated, through ``enumerate`` and ``tqdm``."""
    while isinstance(iterated, ast.Call):
        function = iterated.func
        word = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        if word not in _WRAPPERS or not iterated.args:
            return None
        iterated = iterated.args[0]
    return iterated if isinstance(iterated, (ast.Name, ast.Attribute)) else None


def _source_of_shares(module: Module, loader: ast.expr) -> tuple[Module, ast.Call] | None:
    """What gives each rank its share, in this file or in one that hands the loader over."""
    own = _own_source(module, loader)
    if own is not None:
        return module, own
    _, bindings = module.bindings(loader) if isinstance(loader, ast.Name) else (None, [])
    function = module.enclosing_function(loader)
    if len(bindings) != 1 or not isinstance(bindings[0], ast.arg) or function is None:
        return None
    found = {
        given: (user, source)
        for user, given in passed_elsewhere(module, function, bindings[0].arg)
        if (source := _own_source(user, given)) is not None
        and not user.text_says(_may_put_together)
    }
    return next(iter(found.values()), None)


def _own_source(module: Module, loader: ast.expr) -> ast.Call | None:
    for made in makers(module, loader):
        if module.qualified_name(made.func) == _LOADER:
            sampler = module.argument_node(made, "sampler", 3)
            for maker in () if sampler is None else makers(module, sampler):
                if module.qualified_name(maker.func) in _SAMPLERS:
                    return maker
    return _preparation(module, loader) if isinstance(loader, ast.Name) else None


def _preparation(module: Module, loader: ast.Name) -> ast.Call | None:
    """``model, loader = accelerator.prepare(model, loader)`` for a loader of torch."""
    for binding in module.bindings(loader)[1]:
        target = module.parent(binding)
        position = 0
        if isinstance(target, ast.Tuple):
            position = next(i for i, item in enumerate(target.elts) if item is binding)
            target = module.parent(target)
        call = target.value if isinstance(target, ast.Assign) else None
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            continue
        prepares = call.func.attr == "prepare" and position < len(call.args)
        if prepares and module.type_of(call.func.value) == _ACCELERATOR:
            made = makers(module, call.args[position])
            if any(module.qualified_name(item.func) == _LOADER for item in made):
                return call
    return None


def _evaluates(module: Module, function: Function, loop: ast.For) -> bool:
    """Whether a loop evaluates: it makes no gradients, and nothing in it trains."""
    if any(callee_name(call) in ("backward", "step") for call in _calls(loop)):
        return False
    if any(_WITHOUT_GRADIENTS & set(identifiers(item)) for item in function.decorator_list):
        return True
    if any(_WITHOUT_GRADIENTS & set(identifiers(call.func)) for call in _calls(loop)):
        return True
    parent = module.parent(loop)
    while parent is not None and parent is not function:
        if isinstance(parent, ast.With):
            for item in parent.items:
                if _WITHOUT_GRADIENTS & set(identifiers(item.context_expr)):
                    return True
        parent = module.parent(parent)
    return False


def _reported_result(module: Module, function: Function, loop: ast.For) -> str | None:
    """The name of something that the loop adds up or lists, and that is reported afterwards without leaving what is
    known: by arithmetic, numpy, scikit-learn, ``return``, ``print``."""
    collected = set(_collected(loop))
    after = [
        name
        for name in module.nodes(ast.Name, inside=function)
        if isinstance(name, ast.Name)
        and name.id in collected
        and isinstance(name.ctx, ast.Load)
        and module.order_of(name) > module.order_of(loop.body[-1])
        and not module.is_inside(name, loop)
    ]
    if not after or not all(_stays_known(module, name, function) for name in after):
        return None
    telling = [name.id for name in after if not _COUNTER.search(name.id)]
    return telling[0] if telling else after[0].id


def _collected(loop: ast.For) -> Iterator[str]:
    for node in ast.walk(loop):
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
            if isinstance(node.target, ast.Name):
                yield node.target.id
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in ("append", "extend", "add_batch"):
                if isinstance(node.func.value, ast.Name):
                    yield node.func.value.id


def _stays_known(module: Module, name: ast.Name, function: Function) -> bool:
    """Whether only functions that do not talk to other ranks get to see a value, and no file of this rank."""
    child: ast.AST = name
    parent = module.parent(child)
    while parent is not None and parent is not function and not isinstance(parent, ast.stmt):
        if isinstance(parent, ast.Call) and not _is_known_call(module, parent, child):
            return False
        child, parent = parent, module.parent(parent)
    return not (isinstance(parent, ast.stmt) and _tells_ranks_apart(module, parent))


def _is_known_call(module: Module, call: ast.Call, child: ast.AST) -> bool:
    word = callee_name(call)
    if word in _REPORTS:
        return True
    if child is call.func:
        return True  # A method of the value itself: ``total.item()``, ``metric.compute()``.
    called = module.qualified_name(call.func)
    return called is not None and called.partition(".")[0] in _KNOWN


def _tells_ranks_apart(module: Module, statement: ast.stmt) -> bool:
    """``print(f"rank {rank}: ...")``: who reads it knows that it is one share."""
    return not isinstance(statement, (ast.If, ast.For, ast.While, ast.With, ast.Try)) and (
        asks_for_the_rank(module, statement, 0)
    )


def _calls(node: ast.AST) -> Iterator[ast.Call]:
    return (item for item in ast.walk(node) if isinstance(item, ast.Call))


def _may_put_together(text: str) -> bool:
    return _TOGETHER.search(text) is not None
