"""Where a collective can be taken out of the condition that keeps ranks away from it."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from ranksafe.checker.finding import Applicability, FixOffer
from ranksafe.localization import Translated
from ranksafe.rank_flow import Issue, Kind
from ranksafe.semantics.module import Module
from ranksafe.semantics.walking import unparsed

_ALL_RANKS = Translated(
    "Let all ranks perform {operation} (moves it out of the condition)",
    "让所有 rank 都执行 {operation}（将其移出条件分支）",
)
_EVALUATED_ONCE = (
    ast.Call, ast.keyword, ast.Attribute, ast.BinOp, ast.UnaryOp, ast.Dict, ast.Tuple, ast.List,
    ast.Subscript, ast.Starred,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Guarded:
    """A call in the first, the last or the only statement of an ``if`` without ``else``."""

    call: ast.Call
    statement: ast.Expr | ast.Assign
    branch: ast.If
    is_first: bool
    is_only: bool
    is_nested: bool
    """The call is an argument of something else: of ``torch.save`` or ``print``."""


def guarded(issue: Issue, module: Module) -> Guarded | None:
    """The call of the finding with the condition around it; None when moving it is not that simple."""
    branch = None if issue.branch is None else issue.branch.node
    call = issue.place.node
    if issue.waiting_rank is None or not isinstance(branch, ast.If) or branch.orelse:
        return None
    statement, is_nested = _statement_of(call, module)
    if statement is None or module.parent(statement) is not branch or is_elif(branch, module):
        return None
    # "Every tenth step, and on rank 0": the first half has to stay.
    if any(isinstance(node, (ast.BoolOp, ast.NamedExpr)) for node in ast.walk(branch.test)):
        return None
    if issue.kind is Kind.WRAPPED_FORWARD and _calls_backward(branch):
        return None
    is_first, is_last = branch.body[0] is statement, branch.body[-1] is statement
    if not is_first and (is_nested or not is_last or _needs_what_is_before(statement, branch)):
        return None
    assert isinstance(call, ast.Call)
    if "\n" in module.text_of(call if is_nested else statement):
        return None
    is_only = len(branch.body) == 1
    lines = {branch.lineno, *(item.lineno for item in branch.body)}
    if not (is_only or is_nested or len(lines) > len(branch.body)):
        return None
    return Guarded(call, statement, branch, is_first, is_only, is_nested)


def is_elif(branch: ast.If, module: Module) -> bool:
    """Whether the ``if`` is written ``elif``, or may be."""
    parent = module.parent(branch)
    return isinstance(parent, ast.If) and parent.orelse == [branch]


def offer(issue: Issue, module: Module) -> list[FixOffer]:
    """The offer to let all ranks perform it."""
    if guarded(issue, module) is None:
        return []
    title = _ALL_RANKS.filled(operation=issue.operation)
    return [FixOffer("all-ranks", title, Applicability.UNSAFE)]


def _statement_of(node: ast.AST, module: Module) -> tuple[ast.Expr | ast.Assign | None, bool]:
    """The statement around a call that it always evaluates, and whether the call is only a part of its value."""
    if not isinstance(node, ast.Call):
        return None, False
    current: ast.AST | None = node
    while isinstance(current, _EVALUATED_ONCE):
        current = module.parent(current)
    if not isinstance(current, (ast.Expr, ast.Assign)):
        return None, False
    return current, current.value is not node


def _calls_backward(branch: ast.If) -> bool:
    nodes = (node for part in branch.body for node in ast.walk(part))
    return any(isinstance(node, ast.Attribute) and node.attr == "backward" for node in nodes)


def _needs_what_is_before(statement: ast.stmt, branch: ast.If) -> bool:
    """Whether a statement reads something that is set above it under the condition."""
    above = branch.body[: branch.body.index(statement)]
    stored = {_text(node) for part in above for node in ast.walk(part) if _is_a(node, ast.Store)}
    return any(_text(node) in stored for node in ast.walk(statement) if _is_a(node, ast.Load))


def _is_a(node: ast.AST, context: type[ast.expr_context]) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, context)


def _text(node: ast.AST) -> str:
    return unparsed(node)
