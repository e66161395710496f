"""Make a name of another package available in a file."""

from __future__ import annotations

import ast

from ranksafe.fixes.places import Places, places_of
from ranksafe.semantics.module import Module
from ranksafe.source.position import Edit


def import_name(module: Module, qualified_name: str) -> tuple[str, list[Edit]]:
    """How to write ``qualified_name`` (``accelerate.PartialState``, ``os``) in this file, and the edits that make it
    so: none when an import at the top of the file provides it already."""
    package, _, name = qualified_name.rpartition(".")
    imports = _top_level_imports(module)
    for statement in imports:
        found = _already(statement, package, name)
        if found is not None:
            return found, []
    places = places_of(module)
    for statement in imports:
        if isinstance(statement, ast.ImportFrom) and _can_take_a_name(statement, package):
            return name, [_extended(module, places, statement, name)]
    line = f"from {package} import {name}" if package else f"import {name}"
    return name, [_new_import(module, places, imports, line)]


def add_import(module: Module, qualified_name: str) -> list[Edit]:
    """The edits of `import_name` alone."""
    return import_name(module, qualified_name)[1]


def _top_level_imports(module: Module) -> list[ast.Import | ast.ImportFrom]:
    found: list[ast.Import | ast.ImportFrom] = []
    for kind in (ast.Import, ast.ImportFrom):
        for node in module.nodes(kind):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                parent = module.parent(node)
                if parent is None or isinstance(parent, ast.Module):
                    found.append(node)
    return sorted(found, key=lambda node: module.range_of(node))


def _already(statement: ast.Import | ast.ImportFrom, package: str, name: str) -> str | None:
    if isinstance(statement, ast.ImportFrom):
        if statement.module == package and statement.level == 0:
            for alias in statement.names:
                if alias.name == name:
                    return alias.asname or name
        return None
    for alias in statement.names:
        if not package and alias.name == name:
            return alias.asname or name
        if package and alias.name == package:
            return f"{alias.asname or package}.{name}"
    return None


def _can_take_a_name(statement: ast.ImportFrom, package: str) -> bool:
    from_package = statement.level == 0 and statement.module == package
    return from_package and statement.names[0].name != "*"


def _extended(module: Module, places: Places, statement: ast.ImportFrom, name: str) -> Edit:
    last = statement.names[-1]
    start, end = places.span(module, last)
    separator = ", "
    if places.starts_its_line(start):
        separator = f",{places.newline}{places.indentation(start)}"
    return places.edit(end, end, separator + name)


def _new_import(
    module: Module,
    places: Places,
    imports: list[ast.Import | ast.ImportFrom],
    line: str,
) -> Edit:
    if imports:
        block = _leading_block(module, imports)
        end = places.span(module, block)[1]
        if places.starts_its_line(places.span(module, block)[0]) and places.ends_its_line(end):
            offset = places.next_line(end)
            text = line + places.newline
            if offset == len(places.text) and not places.text.endswith(("\n", "\r")):
                text = places.newline + text
            if isinstance(block, ast.ImportFrom) and block.module == "__future__":
                text = places.newline + text
            return places.edit(offset, offset, text)
    offset = _after_header(places)
    before = places.newline if _ends_a_string(places.text[:offset]) else ""
    return places.edit(offset, offset, before + line + places.newline)


def _leading_block(
    module: Module, imports: list[ast.Import | ast.ImportFrom]
) -> ast.Import | ast.ImportFrom:
    """The last import of the first run of imports: later ones may stand after code that must run first."""
    last = imports[0]
    for statement in imports[1:]:
        gap = module.range_of(statement).start.line - module.range_of(last).end.line
        if gap > 2:
            break
        last = statement
    return last


def _ends_a_string(text: str) -> bool:
    return text.rstrip().endswith(('"', "'"))


def _after_header(places: Places) -> int:
    """After the comments and the docstring at the top."""
    try:
        tree = ast.parse(places.text)
    except SyntaxError:
        tree = ast.Module([], [])
    if tree.body and ast.get_docstring(tree, clean=False) is not None:
        end_line = tree.body[0].end_lineno or 1
        return places.next_line(places.offset_of_line(end_line - 1))
    offset = 0
    for line in places.lines:
        if not line.startswith("#"):
            break
        offset += len(line)
    return offset
