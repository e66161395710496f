"""Edits of DataLoader arguments (text only, libcst is not needed)."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ranksafe.checker.finding import Finding
from ranksafe.fixes.arguments import add_argument, replace
from ranksafe.semantics.module import Module
from ranksafe.source.position import Edit


def loader_at(finding: Finding, module: Module) -> ast.Call | None:
    """The DataLoader call whose batch size, or whose name, the finding is on."""
    for call in module.calls_written("DataLoader"):
        anchor = module.argument_node(call, "batch_size", 1) or call.func
        if module.range_of(anchor) == finding.range or module.range_of(call.func) == finding.range:
            return call
    return None


def batch_size_edit(finding: Finding, module: Module, size: int) -> Sequence[Edit] | None:
    """Set the batch size where the number itself is written in the file; None where it comes from elsewhere."""
    loader = loader_at(finding, module)
    if loader is None:
        return None
    given = module.argument_node(loader, "batch_size", 1)
    if given is None:
        return [add_argument(module, loader, f"batch_size={size}")]
    written = [value.node for value in module.values(given).known if value.module is module]
    if len(written) == 1 and isinstance(written[0], ast.Constant):
        return [replace(module, written[0], str(size))]
    return None
