"""Moving the construction of an optimizer behind the sharding, where nothing in between needs it."""

from __future__ import annotations

import ast

from ranksafe.fixes.statements import enclosing_statement, insert_after, remove_statement
from ranksafe.semantics.module import Module
from ranksafe.semantics.walking import unparsed
from ranksafe.source.position import Edit

from ranksafe_rules.model.optimizer_before_sharding.early_optimizers import Early


def edits_that_move(module: Module, early: Early) -> list[Edit] | None:
    """None where the optimizer is used in between, or where the sharding is in another block."""
    block = _block_of(module, early.statement)
    last = _statement_in(module, early.wrap, block)
    if block is None or last is None:
        return None
    optimizer = unparsed(early.optimizer)
    start, stop = block.index(early.statement) + 1, block.index(last) + 1
    if any(_mentions(statement, optimizer) for statement in block[start:stop]):
        return None
    code = " " * early.statement.col_offset + _with_comment(module, early.statement)
    inserted = insert_after(module, last, code)
    removed = remove_statement(module, early.statement)
    return None if inserted is None or removed is None else [removed, inserted]


def _block_of(module: Module, statement: ast.stmt) -> list[ast.stmt] | None:
    parent = module.parent(statement)
    for name in ("body", "orelse", "finalbody"):
        block = getattr(parent, name, None)
        if isinstance(block, list) and statement in block:
            return block
    return None


def _statement_in(module: Module, wrap: ast.Call, block: list[ast.stmt] | None) -> ast.stmt | None:
    """The statement of a block that holds the sharding."""
    current: ast.AST | None = enclosing_statement(module, wrap)
    while current is not None and (block is None or current not in block):
        current = module.parent(current)
    return current if isinstance(current, ast.stmt) else None


def _with_comment(module: Module, statement: ast.stmt) -> str:
    end = module.range_of(statement).end
    rest = module.source.lines[end.line][end.column :].strip()
    text = module.text_of(statement)
    return f"{text}  {rest}" if rest.startswith("#") else text


def _mentions(statement: ast.stmt, text: str) -> bool:
    return any(
        isinstance(node, (ast.Name, ast.Attribute)) and unparsed(node) == text
        for node in ast.walk(statement)
    )
