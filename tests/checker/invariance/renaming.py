"""Neutral names for local variables and parameters: `loader` becomes `v1`, and the program means the same.

Everything called `loader` inside one outermost function is renamed together, so that it does not matter which of several
nested scopes a name belongs to. What anybody else may know by its name stays: globals, what is imported, attributes,
names that `locals()` shows, and parameters to which a call elsewhere may give a value by name.
"""

from __future__ import annotations

import ast
import symtable
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import count
from pathlib import Path

from tests.checker.invariance.changes import Change, Edit, Source, Span

Function = ast.FunctionDef | ast.AsyncFunctionDef
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_LOOKS_AT_NAMES = frozenset({"locals", "vars", "eval", "exec", "globals", "dir"})
_HARMLESS_DECORATORS = frozenset(
    {"classmethod", "contextmanager", "inference_mode", "no_grad", "property", "record", "staticmethod"}
)  # fmt: skip


def renamings(
    source: Source, keywords_elsewhere: frozenset[str], kept: Callable[[str], bool]
) -> list[Change]:
    """A change for each name of each outermost function.

    ``keywords_elsewhere``: the names by which calls in other files of the program give arguments. ``kept``: whether a name
    must stay as it is.
    """
    taken = {node.id for node in source.nodes if isinstance(node, ast.Name)}
    taken |= {node.arg for node in source.nodes if isinstance(node, ast.arg)}
    neutral = (name for number in count(1) if (name := f"v{number}") not in taken)
    calls = Calls(source, keywords_elsewhere)
    return [
        Change(f"`{name}` of `{function.name}` is called `{new}`", tuple(edits))
        for function in _outermost_functions(source)
        for name in sorted(_own_names(source, function, calls))
        if not kept(name)
        and (edits := _renamed(source, function, name, new := next(neutral), calls))
    ]


class Calls:
    """By which names the calls of a program give arguments."""

    def __init__(self, source: Source, keywords_elsewhere: frozenset[str]) -> None:
        self._source = source
        functions = [node for node in source.nodes if isinstance(node, FUNCTIONS)]
        self._bound = [function.name for function in functions]
        self._bound += [name for node in source.nodes for name in _bound_without_def(node)]
        self._calls = [node for node in source.nodes if isinstance(node, ast.Call)]
        self._elsewhere = keywords_elsewhere
        called = {id(call.func) for call in self._calls}
        self._handed_on = {
            name
            for node in source.nodes
            if id(node) not in called and (name := _last_name(node)) is not None
        }
        """Functions, methods and classes that are used without being called at once."""

    def keywords_of(self, function: Function, name: str) -> list[ast.keyword]:
        """Those that give the parameter a value, in calls that surely mean the function."""
        return [
            keyword
            for call in self._calls
            for keyword in call.keywords
            if keyword.arg == name and self._means(call, function)
        ]

    def may_rename(self, function: Function, name: str) -> bool:
        """Whether every call that gives the parameter a value by name is known."""
        given = [
            keyword for call in self._calls for keyword in call.keywords if keyword.arg == name
        ]
        return (
            name not in self._elsewhere
            and len(given) == len(self.keywords_of(function, name))
            and not any(
                keyword.arg is None
                and _last_name(call.func) in (function.name, self._owner(function))
                for call in self._calls
                for keyword in call.keywords
            )
        )

    def is_called_by_others(self, function: Function) -> bool:
        """Whether a library may call it: it is handed on, decorated, or a method that a base class may know."""
        owner = self._source.parents.get(function)
        names = {function.name}
        if isinstance(owner, ast.ClassDef):
            if owner.bases or owner.keywords:
                return True
            names |= {owner.name} if function.name == "__init__" else set()
        decorators = {_last_name(_called(item)) for item in function.decorator_list}
        return bool(names & self._handed_on) or not decorators <= _HARMLESS_DECORATORS

    def _means(self, call: ast.Call, function: Function) -> bool:
        is_method = isinstance(self._source.parents.get(function), ast.ClassDef)
        return (
            not is_method
            and isinstance(call.func, ast.Name)
            and call.func.id == function.name
            and self._bound.count(function.name) == 1
        )

    def _owner(self, function: Function) -> str | None:
        owner = self._source.parents.get(function)
        return owner.name if isinstance(owner, ast.ClassDef) else None


@cache
def keywords_in(file: Path) -> frozenset[str]:
    """The names by which the calls of a file give arguments."""
    nodes = ast.walk(ast.parse(file.read_text(encoding="utf-8")))
    return frozenset(node.arg for node in nodes if isinstance(node, ast.keyword) and node.arg)


def _outermost_functions(source: Source) -> Iterator[Function]:
    for node in source.nodes:
        if isinstance(node, FUNCTIONS):
            if not any(isinstance(outer, FUNCTIONS) for outer in source.around(node)):
                yield node


def _own_names(source: Source, function: Function, calls: Calls) -> set[str]:
    inside = list(ast.walk(function))
    if any(isinstance(node, ast.Name) and node.id in _LOOKS_AT_NAMES for node in inside):
        return set()
    bound = {node.id for node in inside if isinstance(node, ast.Name) and _is_stored(node)}
    bound |= {node.arg for node in inside if isinstance(node, ast.arg)}
    kept = {name for node in inside for name in _bound_without_name(node)}
    kept |= _known_outside(function) | _kept_parameters(source, inside, calls)
    return {name for name in bound - kept if not name.startswith("__") and name != "_"}


def _is_stored(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


def _bound_without_def(node: ast.AST) -> Iterable[str]:
    """Names that something else than a function definition binds."""
    if isinstance(node, ast.Name) and _is_stored(node):
        return [node.id]
    if isinstance(node, ast.arg):
        return [node.arg]
    return _bound_without_name(node)


def _bound_without_name(node: ast.AST) -> Iterable[str]:
    """Names that are bound by something which is no `ast.Name` with a place of its own."""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return [(alias.asname or alias.name).partition(".")[0] for alias in node.names]
    if isinstance(node, (ast.Global, ast.Nonlocal)):
        return node.names
    if isinstance(node, (*FUNCTIONS, ast.ClassDef, ast.ExceptHandler, ast.MatchAs, ast.MatchStar)):
        return [node.name] if node.name else []
    if isinstance(node, ast.MatchMapping):
        return [node.rest] if node.rest else []
    return []


def _known_outside(function: Function) -> set[str]:
    """Names that some scope of the function, or what stands before its body, takes from outside or shows there."""
    module = symtable.symtable(ast.unparse(function), "function", "exec")
    known = set(module.get_identifiers())
    tables = module.get_children()
    while tables:
        table = tables.pop()
        tables += table.get_children()
        for symbol in table.get_symbols():
            is_attribute = table.get_type() == "class" and symbol.is_local()
            if symbol.is_global() or symbol.is_declared_global() or is_attribute:
                known.add(symbol.get_name())
    return known


def _kept_parameters(source: Source, inside: list[ast.AST], calls: Calls) -> set[str]:
    kept: set[str] = set()
    for function in inside:
        if not isinstance(function, FUNCTIONS):
            continue
        arguments = function.args
        parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        if isinstance(source.parents.get(function), ast.ClassDef) and parameters:
            kept.add(parameters[0].arg)  # `self`
        called_by_others = calls.is_called_by_others(function)
        kept |= {
            item.arg
            for item in parameters
            if called_by_others or not calls.may_rename(function, item.arg)
        }
    return kept


def _renamed(
    source: Source, function: Function, name: str, new: str, calls: Calls
) -> list[Edit] | None:
    """None where a place is not known: Python before 3.12 misplaces names inside some f-strings."""
    inside = list(ast.walk(function))
    places: list[ast.expr | ast.arg | ast.keyword] = [
        node for node in inside if isinstance(node, ast.Name) and node.id == name
    ]
    places += [node for node in inside if isinstance(node, ast.arg) and node.arg == name]
    for nested in inside:
        if isinstance(nested, FUNCTIONS) and name in _parameters(nested):
            places += calls.keywords_of(nested, name)
    spans = {Span(start, start + len(name)) for start in map(source.start, places)}
    if len(spans) < len(places) or any(source.written(span) != name for span in spans):
        return None
    return [Edit(span, (new,), source.line_at(span.start)) for span in spans]


def _parameters(function: Function) -> list[str]:
    arguments = function.args
    return [item.arg for item in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]


def _called(node: ast.expr) -> ast.expr:
    return node.func if isinstance(node, ast.Call) else node


def _last_name(node: ast.AST) -> str | None:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None
