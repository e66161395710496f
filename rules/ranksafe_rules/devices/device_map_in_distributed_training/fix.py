"""The edits of RS201: drop the map, or put the whole model on the process's own GPU."""

from __future__ import annotations

from collections.abc import Sequence

from ranksafe.checker.finding import Finding, FixOffer
from ranksafe.fixes.arguments import remove_argument_value, replace
from ranksafe.fixes.imports import import_name
from ranksafe.semantics.module import Module
from ranksafe.source.position import Edit

from ranksafe_rules.devices.loads import map_expression_at


def edits(finding: Finding, offer: FixOffer, module: Module) -> Sequence[Edit] | None:
    """The edits of either offer; None when the map is not written where it could be changed."""
    expression = map_expression_at(module, finding.range)
    if expression is None:
        return None
    if offer.key == "drop-device-map":
        removal = remove_argument_value(module, expression)
        return None if removal is None else [removal]
    name, imports = import_name(module, "accelerate.PartialState")
    # Not process_index: that is the global rank, no device number on a second node.
    return [replace(module, expression, f'{{"": {name}().local_process_index}}'), *imports]
