"""Edits that several rules of this area share."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from itertools import chain, count

from ranksafe.checker.finding import Finding
from ranksafe.fixes.arguments import replace
from ranksafe.fixes.places import places_of
from ranksafe.fixes.statements import (
    insert_after,
    insert_before,
    remove_statement,
    replace_statement,
)
from ranksafe.rank_flow import Issue, Kind, rank_issues
from ranksafe.semantics.module import Module
from ranksafe.source.position import Edit

from ranksafe_rules.collectives.flow_rule import header_range
from ranksafe_rules.collectives.guards import Guarded, guarded


def issue_at(finding: Finding, module: Module, kind: Kind) -> Issue | None:
    """The issue that a finding was made of, in the present text."""
    for issue in rank_issues(module, finding.facts.get("ranks")):
        if issue.kind is kind and header_range(module, issue.place.node) == finding.range:
            return issue
    return None


def out_of_the_condition(finding: Finding, module: Module, kind: Kind) -> Sequence[Edit] | None:
    """Move the finding's call before or behind the condition; the condition goes when nothing is left in it."""
    issue = issue_at(finding, module, kind)
    found = None if issue is None else guarded(issue, module)
    if found is None:
        return None
    if found.is_nested:
        return _value_of_all_ranks(found, module)
    code = module.text_of(found.statement)
    if found.is_only:
        lines = [*_comments_above(found, module), code]
        edit = replace_statement(module, found.branch, "\n".join(lines))
        return None if edit is None else [edit]
    insert = insert_before if found.is_first else insert_after
    moved = insert(module, found.branch, code + _comment_behind(found.statement, module))
    removed = remove_statement(module, found.statement)
    return None if moved is None or removed is None else [moved, removed]


def _value_of_all_ranks(found: Guarded, module: Module) -> Sequence[Edit] | None:
    """The call before the condition, its value where the call was: what writes or prints stays on one rank."""
    name = new_name(module, "result")
    moved = insert_before(module, found.branch, f"{name} = {module.text_of(found.call)}")
    return None if moved is None else [moved, replace(module, found.call, name)]


def _comments_above(found: Guarded, module: Module) -> list[str]:
    places = places_of(module)
    start, end = (places.span(module, node)[0] for node in (found.branch, found.statement))
    lines = (line.strip() for line in places.text[start:end].splitlines())
    return [line for line in lines if line.startswith("#")]


def _comment_behind(statement: ast.stmt, module: Module) -> str:
    places = places_of(module)
    end = places.span(module, statement)[1]
    rest = places.text[end : places.next_line(end)].strip()
    return f"  {rest}" if rest.startswith("#") else ""


def new_name(module: Module, wanted: str) -> str:
    """``wanted``, or with a number when the file has that name."""
    taken = {node.id for node in ast.walk(module.tree) if isinstance(node, ast.Name)}
    taken |= {node.arg for node in ast.walk(module.tree) if isinstance(node, ast.arg)}
    numbered = (f"{wanted}_{number}" for number in count(2))
    return next(name for name in chain([wanted], numbered) if name not in taken)


def distributed_name(module: Module) -> str | None:
    """How the file calls ``torch.distributed``; None when it is not imported."""
    for name in ("dist", "distributed", "c10d"):
        if module.names.resolve_dotted(name) == "torch.distributed":
            return name
    return "torch.distributed" if module.names.resolve_dotted("torch") == "torch" else None


def reduction(issue: Issue, module: Module) -> tuple[ast.Call, ast.expr | ast.keyword] | None:
    """The ``module.reduce(...)`` of this file that a value comes from, with the argument that names its destination."""
    call = None if issue.origin is None else issue.origin.node
    if issue.origin is None or issue.origin.module is not module or not isinstance(call, ast.Call):
        return None
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "reduce":
        return None
    for keyword in call.keywords:
        if keyword.arg in ("dst", "group_dst"):
            return call, keyword
    return (call, call.args[1]) if len(call.args) > 1 else None
