"""The edits of RS605: one rank fetches the files before the others look."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ranksafe.checker.finding import Finding, FixOffer
from ranksafe.fixes.imports import import_name
from ranksafe.fixes.statements import insert_before, replace_statement
from ranksafe.semantics.module import Module
from ranksafe.source.position import Edit

from ranksafe_rules._shared.rank_zero import accelerator_of
from ranksafe_rules.checkpoints.ranks_in_turn import (
    can_go_first,
    can_take_turns,
    group_made,
    whole_statement,
)


def edits(finding: Finding, offer: FixOffer, module: Module) -> Sequence[Edit] | None:
    """The statement below ``main_process_first()``, or the call on rank 0 and a barrier before it; None when the code
    has changed."""
    for call in module.nodes(ast.Call):
        assert isinstance(call, ast.Call)
        if module.range_of(call.func) == finding.range:
            statement = whole_statement(module, call)
            if statement is None:
                return None
            if offer.key == "main-process-first":
                return _in_turn(module, call, statement)
            return _first(module, call, statement)
    return None


def _in_turn(module: Module, call: ast.Call, statement: ast.stmt) -> Sequence[Edit] | None:
    if not can_take_turns(module, call):
        return None
    code = "\n".join(
        [
            f"with {accelerator_of(module, call)}.main_process_first():",
            *(f"    {line}" if line else "" for line in _lines(module, statement, statement)),
        ]
    )
    edit = replace_statement(module, statement, code)
    return None if edit is None else [edit]


def _first(module: Module, call: ast.Call, statement: ast.stmt) -> Sequence[Edit] | None:
    made = group_made(module, call)
    if made is None or not can_go_first(module, call):
        return None
    imports: list[Edit] = []
    if isinstance(made.func, ast.Attribute):
        group = module.text_of(made.func.value)
    else:
        group, imports = import_name(module, "torch.distributed")
    first, *others = _lines(module, call, statement)
    code = "\n".join(
        [
            f"if {group}.get_rank() == 0:",
            f"    {first}",
            *(f"    {line}" if line else "" for line in others),
            f"{group}.barrier()",
        ]
    )
    edit = insert_before(module, statement, code)
    return None if edit is None else [edit, *imports]


def _lines(module: Module, node: ast.AST, statement: ast.stmt) -> list[str]:
    """The lines of ``node`` without the indentation of ``statement``."""
    columns = statement.col_offset
    first, *others = module.text_of(node).split("\n")
    return [first, *(line if line[:columns].strip() else line[columns:] for line in others)]
