"""The edit of RS315: a fixed seed for the split or the shuffle."""

from __future__ import annotations

from collections.abc import Sequence

from ranksafe.checker.finding import Finding, FixOffer
from ranksafe.fixes.arguments import add_argument, replace
from ranksafe.fixes.imports import import_name
from ranksafe.semantics.module import Module
from ranksafe.source.position import Edit

from ranksafe_rules.data.unseeded_split.splits import NAMES, is_open, splitter_of


def edits(finding: Finding, offer: FixOffer, module: Module) -> Sequence[Edit] | None:  # noqa: ARG001
    """The argument, added or in the place of the one that fixes nothing; None when the code has changed."""
    for name in sorted(NAMES):
        for call in module.calls_written(name):
            splitter = splitter_of(module, call)
            if splitter is None or module.range_of(call.func) != finding.range:
                continue
            if not is_open(module, call, splitter):
                return None
            made: list[Edit] = []
            text = splitter.fixed
            if "torch." in text:
                written, made = import_name(module, "torch")
                text = text.replace("torch.", f"{written}.")
            given = [keyword for keyword in call.keywords if keyword.arg in splitter.seeds]
            if len(given) > 1:
                return None
            edit = replace(module, given[0], text) if given else add_argument(module, call, text)
            return [*made, edit]
    return None
