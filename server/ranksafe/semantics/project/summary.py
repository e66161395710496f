"""What other files need to know of a file: its names, classes and constants. Plain data, read in one short pass."""

from __future__ import annotations

import ast
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from ranksafe.pausing import pause_point
from ranksafe.semantics.walking import children, unparsed
from ranksafe.source.recovery import parse_tolerantly

_LONGEST_CONSTANT: Final = 400
"""Characters. Longer ones are texts, templates and tables, of which no question is about."""


@dataclass(slots=True)
class ClassSummary:
    """A class: dotted names as written in its file."""

    bases: list[str]
    makes: list[str]
    """What its methods call with a capital letter: the parts a model is put together from."""


@dataclass(slots=True)
class Summary:
    """One file. Dotted names are as written; `imports` says what the first segment stands for."""

    imports: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Local name -> (relative level, dotted name of what was imported)."""
    stars: list[tuple[int, str]] = field(default_factory=list)
    aliases: dict[str, str] = field(default_factory=dict)
    classes: dict[str, ClassSummary] = field(default_factory=dict)
    functions: set[str] = field(default_factory=set)
    constants: dict[str, str] = field(default_factory=dict)
    """Name -> source of the literal."""
    public: list[str] | None = None
    """``__all__``, where it is a literal."""
    depends: list[tuple[int, str]] = field(default_factory=list)
    """What is imported anywhere in the file: (relative level, dotted name); ``module.*`` for all of a module."""

    def binds(self, name: str) -> bool:
        """Whether the file itself gives a meaning to a name."""
        return (
            name in self.classes
            or name in self.functions
            or name in self.imports
            or name in self.aliases
            or name in self.constants
        )

    def bound_names(self) -> set[str]:
        """All names for which `binds` says yes."""
        return {*self.classes, *self.functions, *self.imports, *self.aliases, *self.constants}


def to_text(summary: Summary) -> str:
    """The summary as one line of JSON."""
    parts = [
        summary.imports,
        summary.stars,
        summary.aliases,
        {name: [cls.bases, cls.makes] for name, cls in summary.classes.items()},
        sorted(summary.functions),
        summary.constants,
        summary.public,
        summary.depends,
    ]
    return json.dumps(parts, separators=(",", ":"))


def from_text(text: str) -> Summary | None:
    """The summary that `to_text` wrote; None for anything else."""
    try:
        imports, stars, aliases, classes, functions, constants, public, depends = json.loads(text)
        return Summary(
            {name: (level, target) for name, (level, target) in imports.items()},
            [(level, module) for level, module in stars],
            dict(aliases),
            {name: ClassSummary(bases, makes) for name, (bases, makes) in classes.items()},
            set(functions),
            dict(constants),
            public,
            [(level, module) for level, module in depends],
        )
    except (AttributeError, TypeError, ValueError):
        return None


def summarize(text: str) -> Summary:
    """The summary of a file's text; broken statements are left out."""
    summary = Summary()
    parsed = parse_tolerantly(text)
    if parsed is not None:
        _read(parsed.tree.body, summary)
        if summary.constants:
            bound = Counter(_bound(parsed.tree.body))
            if "global" in text:
                bound.update(_declared_global(parsed.tree.body))
            summary.constants = {
                name: source for name, source in summary.constants.items() if bound[name] == 1
            }
        summary.depends = sorted(set(_imported(parsed.tree.body)))
    return summary


def _imported(body: list[ast.stmt]) -> Iterator[tuple[int, str]]:
    """What the statements import, however deep they are nested."""
    for statement in body:
        pause_point()
        if isinstance(statement, ast.Import):
            for alias in statement.names:
                yield 0, alias.name
                if not alias.asname and "." in alias.name:
                    # The name bound is the outermost package's.
                    yield 0, alias.name.partition(".")[0]
        elif isinstance(statement, ast.ImportFrom):
            module = f"{statement.module}." if statement.module else ""
            for alias in statement.names:
                yield statement.level, f"{module}{alias.name}"
        elif not isinstance(statement, _SIMPLE):
            for block in _blocks(statement):
                yield from _imported(block)


def _bound(body: list[ast.stmt]) -> Iterator[str]:
    """The names that the statements of a module bind, each as often as it is bound."""
    for statement in body:
        pause_point()
        targets: list[ast.expr | None] = []
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield statement.name
            continue
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            yield from (alias.asname or alias.name.split(".")[0] for alias in statement.names)
            continue
        if isinstance(statement, ast.Assign):
            targets += statement.targets
        elif isinstance(statement, (ast.AugAssign, ast.For, ast.AsyncFor)):
            targets.append(statement.target)
        elif isinstance(statement, ast.AnnAssign):
            targets.append(None if statement.value is None else statement.target)
        elif isinstance(statement, (ast.With, ast.AsyncWith)):
            targets += [item.optional_vars for item in statement.items]
        for target in targets:
            if target is not None:
                yield from (node.id for node in ast.walk(target) if isinstance(node, ast.Name))
        for block in _blocks(statement):
            yield from _bound(block)


def _declared_global(body: list[ast.stmt]) -> Iterator[str]:
    """The names that functions and methods of a module may bind anew."""
    for statement in body:
        pause_point()
        if isinstance(statement, ast.Global):
            yield from statement.names
        elif not isinstance(statement, _SIMPLE):
            for block in _blocks(statement):
                yield from _declared_global(block)


_SIMPLE: Final = (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Raise)


def _blocks(statement: ast.AST) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(statement, name, None)
        if block:
            yield block
    for name in ("handlers", "cases"):
        for part in getattr(statement, name, ()):
            yield part.body


def _read(body: list[ast.stmt], summary: Summary) -> None:
    for statement in body:
        pause_point()
        if isinstance(statement, ast.Import):
            for alias in statement.names:
                head = alias.name.split(".")[0]
                summary.imports[alias.asname or head] = (0, alias.name if alias.asname else head)
        elif isinstance(statement, ast.ImportFrom):
            _read_import(statement, summary)
        elif isinstance(statement, ast.ClassDef):
            summary.classes[statement.name] = ClassSummary(
                [name for base in statement.bases if (name := dotted(base))], _made_in(statement)
            )
        elif isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            summary.functions.add(statement.name)
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
            _read_assignment(statement, summary)
        elif isinstance(statement, (ast.If, ast.Try)):
            _read(statement.body, summary)
            _read(statement.orelse, summary)


def _read_import(statement: ast.ImportFrom, summary: Summary) -> None:
    module = statement.module or ""
    for alias in statement.names:
        if alias.name == "*":
            summary.stars.append((statement.level, module))
        else:
            name = f"{module}.{alias.name}" if module else alias.name
            summary.imports[alias.asname or alias.name] = (statement.level, name)


def _read_assignment(statement: ast.Assign | ast.AnnAssign, summary: Summary) -> None:
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    value = statement.value
    for target in targets:
        if not isinstance(target, ast.Name) or value is None:
            continue
        if target.id == "__all__" and isinstance(value, (ast.List, ast.Tuple)):
            summary.public = [
                item.value
                for item in value.elts
                if isinstance(item, ast.Constant) and isinstance(item.value, str)
            ]
        elif isinstance(value, ast.Constant):
            source = unparsed(value)
            if len(source) <= _LONGEST_CONSTANT:
                summary.constants[target.id] = source
            else:
                summary.constants.pop(target.id, None)
        elif name := dotted(value):
            summary.aliases[target.id] = name


def _made_in(cls: ast.ClassDef) -> list[str]:
    found: dict[str, None] = {}
    pending: list[ast.AST] = [cls]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Call):
            name = dotted(node.func)
            if name is not None and name.rpartition(".")[2][:1].isupper():
                found[name] = None
        pending += children(node)
    return list(found)


def dotted(node: ast.expr) -> str | None:
    """``a.b.c`` for a chain of attributes on a name, subscripts (``Generic[T]``) left away; None for the rest."""
    parts: list[str] = []
    while True:
        if isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        elif isinstance(node, ast.Name):
            return ".".join([node.id, *reversed(parts)])
        else:
            return None
