"""Inserts a guard that ends the script early when nothing launched it."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ranksafe.checker.finding import Finding, FixOffer
from ranksafe.fixes.imports import import_name
from ranksafe.fixes.statements import enclosing_statement, insert_at_start, insert_before
from ranksafe.semantics.module import Module
from ranksafe.source.position import Edit

_GUARD = """
if {torch}.cuda.device_count() > 1 and "LOCAL_RANK" not in {os}.environ:
    raise SystemExit(
        "several GPUs visible: start with `accelerate launch` or set CUDA_VISIBLE_DEVICES"
    )
"""


def edits(finding: Finding, offer: FixOffer, module: Module) -> Sequence[Edit] | None:
    """The guard at the start of the function that trains, or before the statement that does at module level; with the
    imports it needs. None for other offers and when the code has changed."""
    if offer.key != "insert-guard":
        return None
    for node in module.nodes(ast.Call):
        if not isinstance(node, ast.Call) or module.range_of(node.func) != finding.range:
            continue
        torch, torch_edits = import_name(module, "torch")
        os, os_edits = import_name(module, "os")
        inserted = _inserted(module, node, _GUARD.format(torch=torch, os=os))
        if inserted is None:
            return None
        return [*_joined(os_edits, torch_edits), inserted]
    return None


def _inserted(module: Module, call: ast.Call, code: str) -> Edit | None:
    function = module.enclosing_function(call)
    if function is not None:
        return insert_at_start(module, function, code)
    statement = enclosing_statement(module, call)
    return None if statement is None else insert_before(module, _first_of(module, statement), code)


def _first_of(module: Module, statement: ast.stmt) -> ast.stmt:
    """The first statement of the main guard around a statement; else the statement itself."""
    parent = module.parent(statement)
    if isinstance(parent, ast.If) and statement in parent.body:
        return parent.body[0]
    return statement


def _joined(first: list[Edit], second: list[Edit]) -> list[Edit]:
    """Two insertions at one place become one edit."""
    if len(first) == len(second) == 1 and first[0].range == second[0].range:
        return [Edit(first[0].range, first[0].new_text + second[0].new_text)]
    return [*first, *second]
