"""What the rules on rank flow have in common: the analysis finds, a rule words one kind of finding."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar

from ranksafe.checker.finding import Finding, FixOffer, Related
from ranksafe.checker.rule import Rule, Scope
from ranksafe.launch.context import LaunchContext
from ranksafe.localization import Translated
from ranksafe.rank_flow import Issue, Kind, rank_issues
from ranksafe.semantics.module import Module
from ranksafe.source.position import Position, Range

MENTIONS = frozenset(
    {
        "istributed",
        "ccelerat",
        "deepspeed",
        "abric",
        "DDP",
        "FSDP",
        "is_main_process",
        "rank",
        "process_zero",
        "global_zero",
        "lightning",
        "TrainerCallback",
    }
)
_SEPARATE = Translated("the ranks separate here", "各 rank 在此处分开")
_DIFFERS = Translated("{text} differs between ranks", "{text} 在各 rank 上不同")
_PERFORMED = Translated("{operation} is performed here", "{operation} 在此处执行")
_OTHERS = Translated("the other ranks go on here", "其余 rank 走到此处")
_RANK_ZERO = Translated("rank 0", "rank 0")
_OTHER_RANKS = Translated("the other ranks", "其余 rank")
_DATA = Translated("data that only one rank sees", "只有单个 rank 才有的数据")


class RankFlowRule(Rule):
    """A rule whose findings are the issues of one kind."""

    scope = Scope.MODULE
    at_rest = True
    mentions = MENTIONS
    kind: ClassVar[Kind]

    @abstractmethod
    def message(self, issue: Issue) -> Translated:
        """The sentence for one issue."""

    def fixes(self, issue: Issue, module: Module) -> Sequence[FixOffer]:  # noqa: ARG002
        """What can be offered; nothing unless a rule knows better."""
        return ()

    def check(self, node: ast.AST, module: Module, launch: LaunchContext) -> Iterator[Finding]:  # noqa: ARG002
        """The issues of this rule's kind, where several ranks may run."""
        if launch.assumed_gpus < 2:
            return
        for issue in rank_issues(module, launch.gpus):
            if issue.kind is self.kind:
                found = self.finding(
                    module,
                    issue.place.node,
                    self.message(issue),
                    related=related(module, issue),
                    fixes=self.fixes(issue, module),
                    ranks=launch.gpus,
                )
                yield replace(found, range=header_range(module, issue.place.node))


def header_range(module: Module, node: ast.AST) -> Range:
    """Where a node stands; of a loop or a handler its first line only."""
    if isinstance(node, (ast.For, ast.AsyncFor)):
        return module.range_of(node.iter)
    if isinstance(node, ast.While):
        return module.range_of(node.test)
    place = module.range_of(node)
    if isinstance(node, ast.ExceptHandler):
        line = place.start.line
        text = module.source.lines[line].split("#")[0].rstrip()
        return Range(place.start, Position(line, max(len(text), place.start.column + 1)))
    return place


def related(module: Module, issue: Issue) -> list[Related]:
    """Both arms and the reason, as places an editor can go to."""
    found: list[Related] = []

    def add(sentence: Translated, node: ast.AST, where: Module) -> None:
        item = Related(sentence, _short_range(where, node), where.path_from(module))
        if item.path is not None or item.range != header_range(module, issue.place.node):
            if all((item.range, item.path) != (other.range, other.path) for other in found):
                found.append(item)

    if issue.branch is not None:
        test = getattr(issue.branch.node, "test", issue.branch.node)
        add(_SEPARATE, test, issue.branch.module)
    if issue.waits is not None:
        add(_PERFORMED.filled(operation=issue.operation), issue.waits.node, issue.waits.module)
    if issue.other_place is not None:
        add(_OTHERS, issue.other_place.node, issue.other_place.module)
    if issue.origin is not None:
        add(_DIFFERS.filled(text=issue.origin.text), issue.origin.node, issue.origin.module)
    return found


def _short_range(module: Module, node: ast.AST) -> Range:
    return header_range(module, node)


def waiting(issue: Issue) -> Translated:
    """Who waits: rank 0, or the others."""
    return _RANK_ZERO if issue.waiting_rank == 0 else _OTHER_RANKS


def not_waiting(issue: Issue) -> Translated:
    """Who does not come."""
    return _OTHER_RANKS if issue.waiting_rank == 0 else _RANK_ZERO


def reason(issue: Issue) -> Translated:
    """What the condition depends on, as written."""
    if issue.origin is None:
        return _DATA
    return Translated(f"`{issue.origin.text}`", f"`{issue.origin.text}`")
