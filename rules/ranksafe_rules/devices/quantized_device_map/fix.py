"""The edit of RS202: the whole model on the process's own GPU."""

from __future__ import annotations

from collections.abc import Sequence

from ranksafe.checker.finding import Finding, FixOffer
from ranksafe.fixes.arguments import replace
from ranksafe.fixes.imports import import_name
from ranksafe.semantics.module import Module
from ranksafe.source.position import Edit

from ranksafe_rules.devices.loads import map_expression_at


def edits(finding: Finding, offer: FixOffer, module: Module) -> Sequence[Edit] | None:  # noqa: ARG001
    """A new value for device_map, and the import it needs; None when the map is no longer there."""
    expression = map_expression_at(module, finding.range)
    if expression is None:
        return None
    name, imports = import_name(module, "accelerate.PartialState")
    return [replace(module, expression, f'{{"": {name}().local_process_index}}'), *imports]
