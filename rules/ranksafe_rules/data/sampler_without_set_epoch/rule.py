"""RS310: a shuffling DistributedSampler that nobody tells the epoch."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Final

from ranksafe.checker.finding import Applicability, Finding, FixOffer, Level, Related
from ranksafe.checker.rule import Rule, RuleMetadata, Scope, Symptom
from ranksafe.launch.context import LaunchContext
from ranksafe.localization import Translated
from ranksafe.semantics.module import Module

from ranksafe_rules._shared.loops import Loop
from ranksafe_rules._shared.processes import Certainty, several_processes
from ranksafe_rules._shared.trails.follow import trail_of
from ranksafe_rules._shared.trails.holder import Holder, Trail
from ranksafe_rules.data.arguments import flag
from ranksafe_rules.data.epochs import header_of, repeating_loop, trains
from ranksafe_rules.data.sampler_without_set_epoch.telling import telling

SAMPLER: Final = "torch.utils.data.DistributedSampler"
"""torch 2.13.0: its order comes from ``seed + epoch``, and only ``set_epoch`` changes the epoch."""

_TRAINING_IN_EPOCHS: Final = (".backward(", "for epoch in ")
"""Words of files that train in epochs."""
_EVALUATION: Final = re.compile(r"(^|_)(val|valid|validation|eval|evaluation|test|dev)(_|$)")
_MESSAGE: Final = Translated(
    "Nobody calls set_epoch on this sampler: every epoch goes through the data in the same order, with the same "
    "batches on each rank",
    "没有对该采样器调用 set_epoch：每个 epoch 的数据顺序都相同，每个 rank 上的批次也完全一样",
)
_LOOP: Final = Translated("The loop over the epochs", "epoch 循环")
_FIX: Final = Translated(
    "Call set_epoch at the top of the loop over the epochs", "在 epoch 循环开头调用 set_epoch"
)


class SamplerWithoutSetEpoch(Rule):
    """Listens to constructions of DistributedSampler."""

    metadata = RuleMetadata(
        code="RS310",
        name="sampler-without-set-epoch",
        summary=Translated(
            "A shuffling DistributedSampler without set_epoch: the same order in every epoch",
            "DistributedSampler 打乱数据却没有调用 set_epoch：每个 epoch 顺序相同",
        ),
        level=Level.WARNING,
        symptom=Symptom.WRONG,
        since="0.1.0",
    )
    scope = Scope.MODULE
    at_rest = True
    listens_to = (ast.Call,)
    called_names = frozenset({"DistributedSampler"})
    mentions = frozenset({"DistributedSampler"})

    def check(self, node: ast.AST, module: Module, launch: LaunchContext) -> Iterator[Finding]:
        """A finding when a loop trains on the sampler's data in several epochs."""
        if not isinstance(node, ast.Call) or module.qualified_name(node.func) != SAMPLER:
            return
        if several_processes(module, launch, needs_a_group=True) is Certainty.NEVER:
            return
        if module.code_says(_tells_the_epoch) or _is_for_evaluation(module, node):
            return
        trail = trail_of(module, node)
        if trail.given_up or trail.unknown or _told_elsewhere(module, trail):
            return
        loop = epoch_loop(trail)
        if loop is None:
            if _trained_with_elsewhere(module, trail):
                yield self.finding(module, node, _MESSAGE)
            return
        can_be_told = loop[0] is module and telling(module, trail, loop[1]) is not None
        fixes = [FixOffer("set-epoch", _FIX, Applicability.SAFE)] if can_be_told else []
        yield self.finding(module, node, _MESSAGE, related=[_related(module, *loop)], fixes=fixes)


def _tells_the_epoch(text: str) -> bool:
    return "set_epoch" in text or ".sampler.epoch" in text or "sampler.epoch =" in text


def _trains(text: str) -> bool:
    return _TRAINING_IN_EPOCHS[0] in text


def _told_elsewhere(module: Module, trail: Trail) -> bool:
    """Whether a file that the sampler comes through, or one that imports this file, sets the epoch."""
    if any(other.code_says(_tells_the_epoch) for other in trail.files[1:]):
        return True
    return module.users_mention("set_epoch")


def _trained_with_elsewhere(module: Module, trail: Trail) -> bool:
    """Whether this file only makes the loader, and its users train with it in a loop over epochs."""
    shuffle = module.argument_node(trail.start, "shuffle", 3)
    shuffles = shuffle is None or flag(module, shuffle, ()) is True
    if trail.passes or not trail.loaders or not trail.returned or not shuffles:
        return False
    cls = module.enclosing_class(trail.start)
    if (cls is not None and cls.bases) or module.code_says(_trains):
        # What its base class does with a loader is not seen here; a loop of this file would have been.
        return False
    if all(_is_evaluating(module, loader) for loader in trail.loaders):
        return False
    # The loop is not seen, so whoever sets an epoch may do so for this loader: a trainer that a user hands it to.
    return all(map(module.users_mention, _TRAINING_IN_EPOCHS)) and not module.texts_saying(
        "set_epoch"
    )


def _is_evaluating(module: Module, loader: Holder) -> bool:
    places = (loader.node, *loader.made)
    return any(_is_for_evaluation(module, place) for place in places)


def epoch_loop(trail: Trail) -> tuple[Module, Loop] | None:
    """The loop that trains on the sampler's data epoch after epoch; the sampler has to shuffle there."""
    call = trail.start
    module = trail.files[0]
    shuffle = module.argument_node(call, "shuffle", 3)
    for found in trail.passes:
        if shuffle is not None and flag(module, shuffle, found.holder.made) is not True:
            continue
        loop = repeating_loop(found)
        if loop is not None and trains(found):
            return loop
    return None


def _related(module: Module, place: Module, loop: Loop) -> Related:
    return Related(_LOOP, place.range_of(header_of(loop)), place.path_from(module))


def _is_for_evaluation(module: Module, call: ast.AST) -> bool:
    """A last resort for loops that train or evaluate as a flag says: what the variable or the function is called."""
    names: list[str] = []
    current = module.parent(call)
    while current is not None:
        if isinstance(current, (ast.FunctionDef, ast.AsyncFunctionDef)):
            names.append(current.name)
        elif isinstance(current, ast.Assign):
            names += [name for target in current.targets for name in _names_in(target)]
        elif isinstance(current, ast.AnnAssign):
            names += _names_in(current.target)
        current = module.parent(current)
    return any(_EVALUATION.search(name) for name in names)


def _names_in(target: ast.expr) -> list[str]:
    return [
        item.id if isinstance(item, ast.Name) else item.attr
        for item in ast.walk(target)
        if isinstance(item, (ast.Name, ast.Attribute))
    ]
