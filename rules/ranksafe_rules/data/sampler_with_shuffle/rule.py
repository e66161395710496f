"""RS311: a DataLoader that is given a sampler and is told to shuffle."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from ranksafe.checker.finding import Applicability, Finding, FixOffer, Level
from ranksafe.checker.rule import Rule, RuleMetadata, Scope, Symptom
from ranksafe.launch.context import LaunchContext
from ranksafe.localization import Translated
from ranksafe.semantics.guards import GuardKind
from ranksafe.semantics.module import Module, Value
from ranksafe.semantics.walking import unparsed

from ranksafe_rules._shared.processes import Certainty, several_processes
from ranksafe_rules.data.sampler_with_shuffle.pairs import (
    Pair,
    clashing,
    drops_shuffle,
    is_iterable,
    samplers,
    true_values,
)

LOADER: Final = "torch.utils.data.DataLoader"

_MESSAGE: Final = Translated(
    'The loader has a sampler and shuffle=True: DataLoader raises "sampler option is mutually exclusive with shuffle"',
    "DataLoader 同时给了 sampler 和 shuffle=True：会抛出 “sampler option is mutually exclusive with shuffle”",
)
_SOMETIMES: Final = Translated(
    "With {condition} the loader has a sampler and shuffle=True: DataLoader raises "
    '"sampler option is mutually exclusive with shuffle"',
    "当 {condition} 时，DataLoader 同时有 sampler 和 shuffle=True：会抛出 "
    "“sampler option is mutually exclusive with shuffle”",
)
_ITERABLE_SHUFFLE: Final = Translated(
    'An IterableDataset cannot be shuffled by its loader: DataLoader raises "expected unspecified shuffle option"',
    "DataLoader 不能打乱 IterableDataset：会抛出 “expected unspecified shuffle option”",
)
_ITERABLE_SAMPLER: Final = Translated(
    'An IterableDataset takes no sampler: DataLoader raises "expected unspecified sampler option"; the dataset\'s '
    "own __iter__ has to give each rank its share",
    "IterableDataset 不接受 sampler：DataLoader 会抛出 “expected unspecified sampler option”；应由数据集的 __iter__ "
    "让每个 rank 只取自己的一份",
)
_REMOVE: Final = Translated("Remove shuffle=True", "去掉 shuffle=True")
_ONLY_WITHOUT: Final = Translated(
    "Shuffle only where there is no sampler", "仅在没有 sampler 时打乱"
)


class SamplerWithShuffle(Rule):
    """Listens to constructions of DataLoader."""

    metadata = RuleMetadata(
        code="RS311",
        name="sampler-with-shuffle",
        summary=Translated(
            "A DataLoader with a sampler and shuffle=True, which it refuses",
            "DataLoader 同时设置 sampler 和 shuffle=True，会被拒绝",
        ),
        level=Level.WARNING,
        symptom=Symptom.CRASHES,
        since="0.1.0",
        run_signatures=(
            r"sampler option is mutually exclusive with shuffle",
            r"DataLoader with IterableDataset: expected unspecified (shuffle|sampler) option",
        ),
    )
    scope = Scope.MODULE
    at_rest = True
    listens_to = (ast.Call,)
    called_names = frozenset({"DataLoader"})
    mentions = frozenset({"Sampler", "sampler", "IterableDataset"})

    def check(self, node: ast.AST, module: Module, launch: LaunchContext) -> Iterator[Finding]:
        """A finding where a sampler and a true ``shuffle`` come together on one way through the code."""
        if not isinstance(node, ast.Call) or module.qualified_name(node.func) != LOADER:
            return
        shuffle = module.argument_node(node, "shuffle", 2)
        sampler = module.argument_node(node, "sampler", 3)
        if shuffle is None and sampler is None:
            return
        certainty = several_processes(module, launch)
        if certainty is Certainty.NEVER:
            return
        if is_iterable(module, node):
            yield from self._of_iterable(module, node, shuffle, sampler)
        elif shuffle is not None and sampler is not None:
            pair = clashing(module, shuffle, sampler)
            if pair is not None:
                yield self._clash(module, node, pair, certainty)

    def _clash(self, module: Module, call: ast.Call, pair: Pair, certainty: Certainty) -> Finding:
        guards = pair.guards
        by_launch = all(guard.kind is GuardKind.LAUNCH for guard in guards)
        level = Level.ERROR if certainty is Certainty.KNOWN and by_launch else Level.WARNING
        message = _MESSAGE
        if guards:
            first = guards[0]
            test = unparsed(first.test)
            message = _SOMETIMES.filled(condition=test if first.positive else f"not ({test})")
        fixes = []
        if _is_written_in(pair.shuffle, call):
            title = _REMOVE if drops_shuffle(module, pair.sampler) else _ONLY_WITHOUT
            fixes = [FixOffer("no-shuffle", title, Applicability.SAFE)]
        return self.finding(module, pair.shuffle, message, level=level, fixes=fixes)

    def _of_iterable(
        self,
        module: Module,
        call: ast.Call,
        shuffle: ast.expr | None,
        sampler: ast.expr | None,
    ) -> Iterator[Finding]:
        if shuffle is not None and _always(true_values(module, shuffle)):
            fixes = []
            if _is_written_in(shuffle, call):
                fixes = [FixOffer("no-shuffle", _REMOVE, Applicability.SAFE)]
            yield self.finding(module, shuffle, _ITERABLE_SHUFFLE, fixes=fixes)
        elif sampler is not None and samplers(module, sampler):
            yield self.finding(module, sampler, _ITERABLE_SAMPLER)


def _always(values: list[Value]) -> bool:
    return any(not value.guards for value in values)


def _is_written_in(shuffle: ast.expr, call: ast.Call) -> bool:
    """Whether ``True`` itself stands in the call."""
    written = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg)]
    return isinstance(shuffle, ast.Constant) and any(item is shuffle for item in written)
