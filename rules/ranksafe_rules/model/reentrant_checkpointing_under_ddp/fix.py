"""The edits of RS526: ``use_reentrant=False`` wherever the model is checkpointed."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ranksafe.checker.finding import Finding, FixOffer
from ranksafe.fixes.arguments import add_argument, replace
from ranksafe.launch.context import LaunchContext
from ranksafe.semantics.module import Module
from ranksafe.source.position import Edit

from ranksafe_rules._shared.reentrant_checkpoints import CHECKPOINT
from ranksafe_rules.model.reentrant_checkpointing_under_ddp.checkpointing import clash_at

_ANY_OF_THEM = LaunchContext(versions={"transformers": "4.57.6"})
"""The version was looked at when the finding was made."""


def edits(finding: Finding, offer: FixOffer, module: Module) -> Sequence[Edit] | None:  # noqa: ARG001
    """One edit for each call; None when the code has changed."""
    for call in module.nodes(ast.Call):
        assert isinstance(call, ast.Call)
        clash = clash_at(module, _ANY_OF_THEM, call)
        if clash is not None and module.range_of(clash.search) == finding.range:
            return [_edit(module, each) for each in clash.calls]
    return None


def _edit(module: Module, call: ast.Call) -> Edit:
    if module.qualified_name(call.func) in CHECKPOINT:
        given = module.argument_node(call, "use_reentrant")
        if given is None:
            return add_argument(module, call, "use_reentrant=False")
        return replace(module, given, "False")
    # The arguments of a Trainer take theirs by keyword.
    position = 0 if _is_method(call) else None
    options = module.argument_node(call, "gradient_checkpointing_kwargs", position)
    if options is None:
        return add_argument(module, call, 'gradient_checkpointing_kwargs={"use_reentrant": False}')
    return replace(module, options, '{"use_reentrant": False}')


def _is_method(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr.endswith("_enable")
