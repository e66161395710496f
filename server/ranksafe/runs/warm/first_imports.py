"""What a script imports before it does anything else: so much can be imported beforehand without a difference.

A statement that may change how later imports behave (an environment variable set, a path added, any call at module
level) ends the list. Modules of the project are read, not imported: their own first imports count where they stand.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_MOST_FILES = 60
_MOST_BYTES = 1 << 20
_ORDER_OF_HASHES = frozenset({"set", "frozenset", "hash"})
_NEEDS_COMPILER = re.compile(
    rb"\b(?:optim|DistributedDataParallel|fully_shard|Accelerator|\w*Trainer)\b"
)
"""torch 2.13.0 imports ``torch._dynamo`` when the first optimizer or DistributedDataParallel is made
(``torch/_compile.py``, ``_disable_dynamo``): that takes as long as torch itself."""

Statement = tuple[str, tuple[str, ...]]
"""A module, and the names taken from it."""


@dataclass(frozen=True, slots=True)
class FirstImports:
    """Of one script and the project's modules that it imports."""

    statements: tuple[Statement, ...]
    orders_by_hash: bool
    """Whether the code may depend on the order of a set, which is another in each process that starts anew."""


def first_imports(script: Path) -> FirstImports:
    """Read the script and what it imports of its own project; nothing where it cannot be read."""
    project = _Project(script.absolute().parent)
    tree = project.parsed(script.absolute())
    if tree is None:
        return FirstImports((), orders_by_hash=True)
    project.follow(tree, script.absolute(), takes_part=True)
    statements = list(dict.fromkeys(project.statements))
    if statements and project.needs_compiler and not project.sets_compiler:
        statements.append(("torch._dynamo", ()))
    return FirstImports(tuple(statements), project.orders_by_hash or project.is_too_large)


@dataclass
class _Project:
    folder: Path
    statements: list[Statement] = field(default_factory=list)
    orders_by_hash: bool = False
    is_too_large: bool = False
    needs_compiler: bool = False
    sets_compiler: bool = False
    """Whether an environment variable of torch's is named, which may be set after ``import torch``."""
    is_over: bool = False
    """Whether a statement was met behind which nothing may be imported beforehand."""
    seen: set[Path] = field(default_factory=set)
    taken: set[Path] = field(default_factory=set)
    """Those whose own first imports were noted where they stand."""

    def parsed(self, path: Path) -> ast.Module | None:
        """None where the file was read before, cannot be read, or there are too many."""
        if path in self.seen:
            return None
        self.seen.add(path)
        try:
            if len(self.seen) > _MOST_FILES or path.stat().st_size > _MOST_BYTES:
                self.is_too_large = True
                return None
            text = path.read_bytes()
            self.needs_compiler = self.needs_compiler or bool(_NEEDS_COMPILER.search(text))
            self.sets_compiler = self.sets_compiler or b"TORCH" in text
            return ast.parse(text)
        except (OSError, SyntaxError, ValueError, RecursionError):
            self.is_too_large = True
            return None

    def follow(self, tree: ast.Module, path: Path, *, takes_part: bool) -> None:
        """Note what a file imports first, and look into every module of the project that it names anywhere."""
        for statement in tree.body:
            if takes_part and not self.is_over:
                self.take(statement, path)
        for node in ast.walk(tree):
            if isinstance(node, (ast.Set, ast.SetComp)) or (
                isinstance(node, ast.Name) and node.id in _ORDER_OF_HASHES
            ):
                self.orders_by_hash = True
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                for own in self.own_files(node, path):
                    self.enter(own, takes_part=False)

    def take(self, statement: ast.stmt, path: Path) -> None:
        """One statement at module level."""
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            own = list(self.own_files(statement, path))
            if own:
                for each in own:
                    self.enter(each, takes_part=True)
            elif isinstance(statement, ast.Import):
                self.statements += [(alias.name, ()) for alias in statement.names]
            elif statement.level:
                self.is_over = True
            elif statement.module != "__future__":
                names = tuple(alias.name for alias in statement.names)
                self.statements.append((statement.module or "", names))
        elif not _is_harmless(statement):
            self.is_over = True

    def enter(self, path: Path, *, takes_part: bool) -> None:
        """A module of the project."""
        if takes_part and path in self.taken:
            return
        tree = self.parsed(path)
        if takes_part:
            self.taken.add(path)
            # Read before for the sake of a function, or not to be read at all.
            self.is_over = self.is_over or tree is None
        if tree is not None:
            self.follow(tree, path, takes_part=takes_part)

    def own_files(self, node: ast.Import | ast.ImportFrom, path: Path) -> Iterator[Path]:
        """The files of the project that an import executes."""
        if isinstance(node, ast.Import):
            wanted = [(self.folder, alias.name) for alias in node.names]
        else:
            base = (
                path.parents[node.level - 1] if 0 < node.level <= len(path.parents) else self.folder
            )
            module = node.module or ""
            wanted = [(base, module)] if module else []
            wanted += [(base, f"{module}.{alias.name}".lstrip(".")) for alias in node.names]
        for base, name in wanted:
            yield from _files_of(base, name)


def _files_of(base: Path, name: str) -> Iterator[Path]:
    place = base
    for part in name.split("."):
        place = place / part
        for candidate in (place / "__init__.py", place.with_suffix(".py")):
            if candidate.is_file():
                yield candidate
                break


def _is_harmless(statement: ast.stmt) -> bool:
    """Definitions, docstrings and constants."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return True
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)
    if isinstance(statement, ast.Assign):
        plain = all(isinstance(target, ast.Name) for target in statement.targets)
        return plain and _is_constant(statement.value)
    if isinstance(statement, ast.AnnAssign):
        return isinstance(statement.target, ast.Name) and (
            statement.value is None or _is_constant(statement.value)
        )
    return False


def _is_constant(value: ast.expr) -> bool:
    calls = (ast.Call, ast.Await, ast.Subscript, ast.Attribute, ast.NamedExpr)
    return not any(isinstance(node, calls) for node in ast.walk(value))
