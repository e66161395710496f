"""Edits of whole statements: insert with the right indentation, remove, rewrite one with libcst."""

from __future__ import annotations

import ast
from collections.abc import Callable
from textwrap import dedent
from typing import TYPE_CHECKING

from ranksafe.fixes.places import Places, places_of
from ranksafe.semantics.module import Module
from ranksafe.source.position import Edit

if TYPE_CHECKING:
    import libcst

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def enclosing_statement(module: Module, node: ast.AST) -> ast.stmt | None:
    """The innermost statement that ``node`` is, or is part of."""
    current: ast.AST | None = node
    while current is not None and not isinstance(current, ast.stmt):
        current = module.parent(current)
    return current


def insert_before(module: Module, statement: ast.stmt, code: str) -> Edit | None:
    """Insert ``code`` (any common indentation is taken off) as lines of their own before a statement. None when the
    statement shares its line with another (``if x: y``, ``a; b``)."""
    places = places_of(module)
    start = _start(module, places, statement)
    if not places.starts_its_line(start):
        return None
    line = places.line_start(start)
    return places.edit(line, line, _indented(code, places.indentation(start), places.newline))


def insert_after(module: Module, statement: ast.stmt, code: str) -> Edit | None:
    """Insert ``code`` as lines of their own after a statement; None when it shares its line with another."""
    places = places_of(module)
    start, end = _start(module, places, statement), places.span(module, statement)[1]
    if not places.starts_its_line(start) or not places.ends_its_line(end):
        return None
    new_text = _indented(code, places.indentation(start), places.newline)
    line = places.next_line(end)
    if line == len(places.text) and not places.text.endswith(("\n", "\r")):
        new_text = places.newline + new_text
    return places.edit(line, line, new_text)


def insert_at_start(module: Module, function: _Function, code: str) -> Edit | None:
    """Insert ``code`` as the first statements of a function, after its docstring."""
    first = function.body[0]
    is_docstring = (
        isinstance(first, ast.Expr)
        and isinstance(first.value, ast.Constant)
        and isinstance(first.value.value, str)
    )
    return insert_after(module, first, code) if is_docstring else insert_before(module, first, code)


def remove_statement(module: Module, statement: ast.stmt) -> Edit | None:
    """Remove a statement with its lines; a block left empty gets ``pass``. None when it shares its line."""
    places = places_of(module)
    start, end = _start(module, places, statement), places.span(module, statement)[1]
    if not places.starts_its_line(start) or not places.ends_its_line(end):
        return None
    if _is_alone(module, statement):
        return places.edit(start, end, "pass")
    return places.edit(places.line_start(start), places.next_line(end), "")


def replace_statement(module: Module, statement: ast.stmt, code: str) -> Edit | None:
    """Put ``code`` where a statement stands; further lines get the statement's indentation. None when ``code`` has
    several lines and the statement shares its line with another."""
    places = places_of(module)
    start, end = _start(module, places, statement), places.span(module, statement)[1]
    alone = places.starts_its_line(start) and places.ends_its_line(end)
    if not alone and "\n" in dedent(code).strip("\n"):
        return None
    indentation = places.indentation(start)
    new_text = _indented(code, indentation, places.newline)
    return places.edit(start, end, new_text[len(indentation) :].rstrip("\r\n"))


def rewrite_statement(
    module: Module, statement: ast.stmt, rewrite: Callable[[libcst.Module], libcst.Module]
) -> Edit | None:
    """Rewrite one statement with libcst, which keeps its formatting and comments.

    ``rewrite`` gets a libcst module with that statement (below an ``if`` where it is indented). None when libcst cannot
    parse the statement, or nothing was changed. Raises ImportError where libcst is missing: not every .vsix has it.
    """
    import libcst as cst  # here, so that only a fix that needs it pays for it

    places = places_of(module)
    start, end = _start(module, places, statement), places.span(module, statement)[1]
    if not places.starts_its_line(start) or not places.ends_its_line(end):
        return None
    first, last = places.line_start(start), places.next_line(end)
    lines = places.text[first:last]
    header = "if 1:\n" if places.indentation(start) else ""
    try:
        tree = cst.parse_module(header + lines)
        code = rewrite(tree).code
    except cst.ParserSyntaxError:
        return None
    rewritten = code.removeprefix(header)
    return places.edit(first, last, rewritten) if rewritten != lines else None


def _start(module: Module, places: Places, statement: ast.stmt) -> int:
    decorators = getattr(statement, "decorator_list", None)
    if not decorators:
        return places.span(module, statement)[0]
    first = min(places.span(module, decorator)[0] for decorator in decorators)
    return places.text.rindex("@", 0, first)


def _is_alone(module: Module, statement: ast.stmt) -> bool:
    parent = module.parent(statement)
    if parent is None or isinstance(parent, ast.Module):
        return False
    blocks = (getattr(parent, name, None) for name in ("body", "orelse", "finalbody"))
    return any(block == [statement] for block in blocks)


def _indented(code: str, indentation: str, newline: str) -> str:
    lines = dedent(code.replace("\r\n", "\n")).strip("\n").split("\n")
    return "".join((indentation + line if line.strip() else "") + newline for line in lines)
