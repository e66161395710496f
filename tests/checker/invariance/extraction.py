"""Statements of a function moved into functions of their own."""

from __future__ import annotations

import ast
import symtable
from collections import Counter
from collections.abc import Iterator

from tests.checker.invariance.changes import Change, Edit, Source, Span
from tests.checker.invariance.renaming import FUNCTIONS
from tests.checker.invariance.rewriting import begins_a_line

_NAME = "extracted_part"
_NOT_MOVED = (
    ast.Return, ast.Break, ast.Continue, ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith, ast.Delete,
    ast.Global, ast.Nonlocal, ast.NamedExpr, ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef, ast.Lambda,
    ast.AsyncFunctionDef, ast.ExceptHandler, ast.Match,
)  # fmt: skip


def extracted_functions(source: Source) -> list[Change]:
    """Statements of a function become functions of their own: the largest that neither leave it nor bind unsurely."""
    changes: list[Change] = []
    for function in source.nodes:
        if isinstance(function, ast.FunctionDef):
            outer = list(source.around(function))
            if not any(isinstance(node, FUNCTIONS) for node in outer):
                changes += _extracted_of(source, function, len(changes))
    return changes


def _extracted_of(source: Source, function: ast.FunctionDef, number: int) -> Iterator[Change]:
    local = _locals(function)
    if local is None:
        return
    bound = {item.arg for item in ast.walk(function.args) if isinstance(item, ast.arg)}
    waiting: list[tuple[list[ast.stmt], set[str]]] = [(function.body, bound)]
    while waiting:
        body, bound = waiting.pop()
        bound = set(bound)
        for statement in body:
            change = _extracted(source, function, statement, local, bound, number)
            if change is not None:
                number += 1
                yield change
            elif isinstance(statement, (ast.If, ast.For, ast.While, ast.With)):
                inner = bound | _stored_in(getattr(statement, "target", None))
                if isinstance(statement, ast.With):
                    for item in statement.items:
                        inner |= _stored_in(item.optional_vars)
                waiting.append((statement.body, inner))
                if not isinstance(statement, ast.With):
                    waiting.append((statement.orelse, set(bound)))
            if isinstance(statement, ast.Assign):
                bound |= {name for target in statement.targets for name in _stored_in(target)}
            elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
                bound |= _stored_in(statement.target)


def _extracted(
    source: Source,
    function: ast.FunctionDef,
    statement: ast.stmt,
    local: frozenset[str],
    bound: set[str],
    number: int,
) -> Change | None:
    inside = list(ast.walk(statement))
    if not _may_leave(source, statement, inside):
        return None
    names = {node.id for node in inside if isinstance(node, ast.Name)} & local
    stored = _stored_in(statement) & local
    needed = set(names)
    if not any(isinstance(outer, (ast.For, ast.While)) for outer in source.around(statement)):
        # Nothing comes back to the statement, so what only it knows needs no way in or out.
        occurring = Counter(node.id for node in ast.walk(function) if isinstance(node, ast.Name))
        occurring.subtract(node.id for node in inside if isinstance(node, ast.Name))
        inner = {name for name in stored - bound if not occurring[name]}
        stored, needed = stored - inner, needed - inner
    if isinstance(statement, ast.Assign):
        # What a plain assignment stores it does not need.
        read = {node.id for node in ast.walk(statement.value) if isinstance(node, ast.Name)}
        needed -= stored - read
    if not needed <= bound:
        return None
    assert statement.end_lineno is not None
    lines = source.whole_lines(statement.lineno, statement.end_lineno)
    indent = source.line(statement.lineno)[: statement.col_offset]
    name = f"{_NAME}_{number}"
    given, returned = ", ".join(sorted(needed)), ", ".join(sorted(stored))
    back = f"{indent}return {returned}\n" if returned else ""
    call = f"{returned} = {name}({given})" if returned else f"{name}({given})"
    top = [node for node in source.around(function) if isinstance(node, ast.stmt)]
    outermost = top[-1] if top else function
    first = min(
        [outermost.lineno, *(item.lineno for item in getattr(outermost, "decorator_list", []))]
    )
    place = source.whole_lines(first, first).start
    definition = (f"def {name}({given}):\n", lines, f"{back}\n\n")
    return Change(
        f"`{source.line(statement.lineno).strip()}` is a function",
        (
            Edit(Span(place, place), definition, statement.lineno),
            Edit(lines, (f"{indent}{call}\n",), statement.lineno),
        ),
        as_one=range(statement.lineno, statement.end_lineno + 1),
    )


def _may_leave(source: Source, statement: ast.stmt, inside: list[ast.AST]) -> bool:
    """Whether a statement means the same in a function of its own."""
    if isinstance(statement, (ast.Assign, ast.Expr)):
        if not isinstance(statement.value, ast.Call):
            return False
    elif not isinstance(statement, (ast.If, ast.For)):
        return False
    assert statement.end_lineno is not None
    written = source.written(source.whole_lines(statement.lineno, statement.end_lineno))
    if not begins_a_line(source, statement) or written.strip() != source.written(
        source.span(statement)
    ):
        return False
    if any(isinstance(node, _NOT_MOVED) for node in inside):
        return False
    if any(isinstance(node, ast.Attribute) and node.attr.startswith("__") for node in inside):
        return False  # The name may be private to the class.
    words = {node.id for node in inside if isinstance(node, ast.Name)}
    return not words & {"super", "__class__", "locals", "vars"}


def _locals(function: ast.FunctionDef) -> frozenset[str] | None:
    """The names that are a function's own; None where nested functions share them."""
    module = symtable.symtable(ast.unparse(function), "function", "exec")
    table = next(item for item in module.get_children() if item.get_name() == function.name)
    symbols = table.get_symbols()
    if any(symbol.is_declared_global() for symbol in symbols):
        return None
    if any(isinstance(node, (ast.Nonlocal, ast.Delete)) for node in ast.walk(function)):
        return None
    return frozenset(symbol.get_name() for symbol in symbols if symbol.is_local())


def _stored_in(node: ast.AST | None) -> set[str]:
    found = [] if node is None else ast.walk(node)
    return {
        item.id for item in found if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store)
    }
