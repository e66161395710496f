"""The edit of RS301: a sharding of a single device."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ranksafe.checker.finding import Finding, FixOffer
from ranksafe.fixes.arguments import replace
from ranksafe.fixes.imports import import_name
from ranksafe.semantics.module import Module
from ranksafe.source.position import Edit

from ranksafe_rules._shared.origins import makers
from ranksafe_rules.data.shardings import NAMED_SHARDING


def edits(finding: Finding, offer: FixOffer, module: Module) -> Sequence[Edit] | None:  # noqa: ARG001
    """Replace the NamedSharding where it is made, so that everything that uses it agrees; None when it is no longer
    there."""
    for call in (
        *module.calls_written("device_put"),
        *module.calls_written("make_array_from_process_local_data"),
    ):
        arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
        if not any(module.range_of(argument) == finding.range for argument in arguments):
            continue
        for argument in arguments:
            for maker in makers(module, argument):
                if module.qualified_name(maker.func) == NAMED_SHARDING:
                    return _on_one_device(module, maker)
    return None


def _on_one_device(module: Module, sharding: ast.Call) -> list[Edit]:
    jax, imports = import_name(module, "jax")
    text = f"{jax}.sharding.SingleDeviceSharding({jax}.devices()[0])"
    return [replace(module, sharding, text), *imports]
