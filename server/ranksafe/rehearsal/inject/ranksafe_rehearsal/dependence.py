"""Which names and lines of a file the value of an expression may come from: a slice through its statements.

Flow-insensitive: a name comes from every statement of its scope that binds or changes it, under every condition that
the statement stands in. Paths count as names, which connect who makes a file and who reads it. Of
a call of a function of the file only those arguments count that what it returns comes from.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Optional

_LONGEST_FILE = 20_000
_MOST_SCOPES = 60
_MOST_ROUNDS = 200
_PATH_SIGNS = frozenset("./\\")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Call(NamedTuple):
    """A call of a function by its name, or of a method of ``self``."""

    function: str
    given: dict[object, set[str]]
    """What each argument reads, by position or keyword."""


class Statement:
    """A simple statement, or the head of a compound one."""

    def __init__(self, lines: range, under: Sequence[Statement], *parts: Optional[ast.AST]) -> None:
        self.lines = lines
        self.under = tuple(under)
        """The conditions that it stands in; for a handler, what it handles."""
        names = _Names()
        for part in parts:
            if part is not None:
                names.visit(part)
        self.binds, self.changes, self.reads = names.binds, names.changes, names.reads
        self.calls = names.calls
        self.returns = any(isinstance(each, ast.Return) for each in parts) or names.yields


class Scope:
    """A function's body, or the file's."""

    def __init__(self, node: ast.AST) -> None:
        self.node = node
        self.statements: list[Statement] = []
        self.parameters: tuple[str, ...] = ()
        if isinstance(node, _FUNCTIONS):
            given = node.args
            listed = [*given.posonlyargs, *given.args, *given.kwonlyargs]
            rest = [one for one in (given.vararg, given.kwarg) if one is not None]
            self.parameters = tuple(one.arg for one in (*listed, *rest))
        _collect(getattr(node, "body", []), (), self.statements)

    def at(self, line: int) -> list[Statement]:
        """The statements on a line, the shortest first."""
        found = [each for each in self.statements if line in each.lines]
        return sorted(found, key=lambda each: len(each.lines))


class Slice(NamedTuple):
    """What an expression may come from, within one file."""

    names: set[str]
    """``self.x`` for attributes, quoted for paths."""
    lines: set[int]
    parameters: set[str]
    """Of the function that the expression stands in: it also comes from the caller."""


class Source:
    """A parsed file."""

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.module = Scope(tree)
        self.functions = [Scope(node) for node in ast.walk(tree) if isinstance(node, _FUNCTIONS)]
        imported = _Names()
        for node in ast.walk(tree):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                imported.visit(node)
        # torch.manual_seed() changes no value that is called torch.
        for scope in (self.module, *self.functions):
            for each in scope.statements:
                each.binds |= each.changes - imported.binds
        self._named: dict[str, Optional[Scope]] = {}
        for scope in self.functions:
            name = getattr(scope.node, "name", "")
            self._named[name] = None if name in self._named else scope
        self._resolved: set[int] = set()
        for scope in (self.module, *self.functions):
            self._resolve(scope)

    def _resolve(self, scope: Scope) -> None:
        """Add to what the statements read what their calls make of their arguments."""
        if id(scope) in self._resolved:
            return
        self._resolved.add(id(scope))
        for each in scope.statements:
            for call in each.calls:
                each.reads |= self._read_by(call)

    def _read_by(self, call: Call) -> set[str]:
        function = self._named.get(call.function)
        everything = {name for reads in call.given.values() for name in reads}
        if function is None or "**" in call.given:
            return everything
        self._resolve(function)
        asked: set[str] = set()
        for each in function.statements:
            if each.returns:
                asked |= each.reads.union(*(condition.reads for condition in each.under))
        reached = _reach(function.statements, asked, set())
        own = {name for each in function.statements for name in each.binds}
        found = reached - own - set(function.parameters)
        places = [name for name in function.parameters if name not in ("self", "cls")]
        for key, reads in call.given.items():
            name = key if isinstance(key, str) else dict(enumerate(places)).get(key)  # type: ignore[call-overload]
            if name not in places or name in reached:
                found |= reads
        return found

    def scope_of(self, line: int) -> Scope:
        """The innermost function around a line, or the file."""
        around = [
            each
            for each in self.functions
            if _span(each.node).start <= line < _span(each.node).stop
        ]
        return max(around, key=lambda each: _span(each.node).start, default=self.module)

    def loop_at(self, line: int) -> range:
        """The lines of the loop that begins on a line, or the line."""
        loops = [
            _span(node)
            for node in ast.walk(self.tree)
            if isinstance(node, (ast.For, ast.AsyncFor, ast.While)) and line in _head(node)
        ]
        return max(loops, key=len, default=range(line, line + 1))

    def slice(self, line: int, wanted: Optional[set[str]] = None) -> Slice:
        """Where the values on ``line`` come from; ``wanted``: only those of these names."""
        scope = self.scope_of(line)
        here = scope.at(line)[:1]
        reads = (
            set(wanted) if wanted is not None else {name for each in here for name in each.reads}
        )
        lines = {line}
        for each in here:
            for condition in each.under:
                reads |= condition.reads
        names = set(reads)
        work = [(scope, reads)]
        done: set[tuple[int, frozenset[str]]] = set()
        while work and len(done) < _MOST_SCOPES:
            inside, asked = work.pop()
            key = (id(inside), frozenset(asked))
            if key in done:
                continue
            done.add(key)
            reached = _reach(inside.statements, asked, lines)
            names |= reached
            work.extend(self._elsewhere(inside, reached))
        return Slice(names, lines, names.intersection(scope.parameters))

    def _elsewhere(self, inside: Scope, names: set[str]) -> Iterator[tuple[Scope, set[str]]]:
        """_Names that other scopes of the file bind: globals, and attributes of ``self``."""
        own = {name for each in inside.statements for name in each.binds} | set(inside.parameters)
        if inside is not self.module:
            yield self.module, names - own
        attributes = {name for name in names if name.startswith("self.")}
        for scope in self.functions if attributes else ():
            bound = {name for each in scope.statements for name in each.binds} & attributes
            if bound and scope is not inside:
                yield scope, bound


class _Names(ast.NodeVisitor):
    """What a piece of code binds or changes, and what it reads."""

    def __init__(self) -> None:
        self.binds: set[str] = set()
        self.changes: set[str] = set()
        """Objects that are stored into, or whose methods are called."""
        self.reads: set[str] = set()
        self.calls: list[Call] = []
        self.yields = False

    @property
    def all_reads(self) -> set[str]:
        """Also what the arguments of calls read."""
        return self.reads.union(*(reads for call in self.calls for reads in call.given.values()))

    def visit_Yield(self, node: ast.Yield) -> None:
        self.yields = True
        self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        (self.reads if isinstance(node.ctx, ast.Load) else self.binds).add(node.id)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        stored = not isinstance(node.ctx, ast.Load)
        if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
            (self.binds if stored else self.reads).add(f"self.{node.attr}")
        elif stored:
            self._change(node)
        else:
            self.visit(node.value)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if not isinstance(node.ctx, ast.Load):
            self._change(node)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Attribute):  # a method may change its object
            self._change(node.func.value)
        name = _called(node.func)
        if not name or any(isinstance(each, ast.Starred) for each in node.args):
            self.generic_visit(node)
            return
        self.visit(node.func)
        given: dict[object, ast.expr] = dict(enumerate(node.args))
        given.update({keyword.arg or "**": keyword.value for keyword in node.keywords})
        self.calls.append(Call(name, {key: self._apart(value) for key, value in given.items()}))

    def _apart(self, node: ast.expr) -> set[str]:
        """What an argument reads; what it binds and changes is bound and changed here."""
        names = _Names()
        names.visit(node)
        self.binds |= names.binds
        self.changes |= names.changes
        self.yields = self.yields or names.yields
        return names.all_reads

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str) and not _PATH_SIGNS.isdisjoint(node.value):
            self.reads.add(repr(node.value))

    def visit_arg(self, node: ast.arg) -> None:
        self.binds.add(node.arg)

    def visit_alias(self, node: ast.alias) -> None:
        self.binds.add(node.asname or node.name.partition(".")[0])

    def _change(self, node: ast.AST) -> None:
        while isinstance(node, (ast.Attribute, ast.Subscript)):
            value = node.value
            if isinstance(node, ast.Attribute) and isinstance(value, ast.Name):
                if value.id in ("self", "cls"):
                    self.changes.add(f"self.{node.attr}")
                    return
            node = value
        if isinstance(node, ast.Name):
            self.changes.add(node.id)
            self.reads.add(node.id)


def source_of(filename: str) -> Optional[Source]:
    """The parsed file; None where it cannot be read or is too long."""
    if filename not in _sources:
        lines = linecache.getlines(filename)
        try:
            known = Source(ast.parse("".join(lines))) if 0 < len(lines) <= _LONGEST_FILE else None
        except (SyntaxError, ValueError, RecursionError):
            known = None
        _sources[filename] = known
    return _sources[filename]


_sources: dict[str, Optional[Source]] = {}


def read_between(source: Source, line: int, columns: tuple[int, int]) -> set[str]:
    """The names that the smallest expression around these columns of a line reads (UTF-8 bytes from 0)."""
    best: Optional[ast.AST] = None
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.expr) or node.lineno != line:
            continue
        if node.col_offset == columns[0] and getattr(node, "end_col_offset", None) == columns[1]:
            best = node
            break
    if best is None:
        return set()
    names = _Names()
    names.visit(best)
    return names.all_reads


def arguments_of(source: Source, line: int, function: str) -> Optional[dict[object, set[str]]]:
    """What a call of ``function`` on a line hands over: names that each argument reads, by position or keyword.

    None where the line has no such call, or more than one, or one whose arguments cannot be told apart.
    """
    calls = [
        node
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call)
        and node.lineno <= line <= (node.end_lineno or node.lineno)
        and _last_name(node.func) == function
    ]
    if len(calls) != 1 or any(isinstance(each, ast.Starred) for each in calls[0].args):
        return None
    given: dict[object, ast.AST] = dict(enumerate(calls[0].args))
    given.update({keyword.arg: keyword.value for keyword in calls[0].keywords})
    if None in given:
        return None
    found: dict[object, set[str]] = {}
    for key, node in given.items():
        names = _Names()
        names.visit(node)
        found[key] = names.all_reads
    return found


def subscripted(source: Source, line: int, key: object) -> set[str]:
    """The names that are subscripted with this constant on a line."""
    return {
        node.value.id
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Subscript)
        and node.lineno <= line <= (node.end_lineno or node.lineno)
        and isinstance(node.value, ast.Name)
        and isinstance(node.slice, ast.Constant)
        and node.slice.value == key
    }


def _called(node: ast.expr) -> str:
    """The name of a function, or of a method of ``self``; empty for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return node.attr if node.value.id in ("self", "cls") else ""
    return ""


def _last_name(node: ast.AST) -> str:
    return str(getattr(node, "attr", None) or getattr(node, "id", ""))


def _reach(statements: Sequence[Statement], asked: set[str], lines: set[int]) -> set[str]:
    """All names that the asked ones may come from; their lines are added to ``lines``."""
    names = set(asked)
    left = list(statements)
    for _ in range(_MOST_ROUNDS):
        hit = [each for each in left if not names.isdisjoint(each.binds)]
        if not hit:
            break
        left = [each for each in left if names.isdisjoint(each.binds)]
        for each in hit:
            for one in (each, *each.under):
                names |= one.reads
                lines.update(one.lines)
    return names


def _span(node: ast.AST) -> range:
    first: int = node.lineno  # type: ignore[attr-defined]
    return range(first, (getattr(node, "end_lineno", None) or first) + 1)


def _head(node: ast.AST) -> range:
    """A compound statement without its body."""
    body = getattr(node, "body", None)
    first = _span(node).start
    return range(first, max(first + 1, body[0].lineno)) if body else _span(node)


def _collect(body: Sequence[ast.AST], under: tuple[Statement, ...], found: list[Statement]) -> None:
    for node in body:
        if isinstance(node, _FUNCTIONS):
            found.append(Statement(_head(node), under, ast.Name(node.name, ast.Store())))
        elif isinstance(node, ast.ClassDef):
            found.append(
                Statement(_head(node), under, ast.Name(node.name, ast.Store()), *node.bases)
            )
            _collect(node.body, under, found)
        elif isinstance(node, ast.Try):
            _collect_try(node, under, found)
        elif isinstance(node, (ast.If, ast.While)):
            head = Statement(_head(node), under, node.test)
            found.append(head)
            _collect([*node.body, *node.orelse], (*under, head), found)
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            found.append(Statement(_head(node), under, node.target, node.iter))
            _collect([*node.body, *node.orelse], under, found)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            found.append(Statement(_head(node), under, *node.items))
            _collect(node.body, under, found)
        elif hasattr(node, "lineno"):
            found.append(Statement(_span(node), under, node))


def _collect_try(node: ast.Try, under: tuple[Statement, ...], found: list[Statement]) -> None:
    tried: list[Statement] = []
    _collect(node.body, under, tried)
    found.extend(tried)
    for handler in node.handlers:
        _collect(handler.body, (*under, *tried), found)
    _collect([*node.orelse, *node.finalbody], under, found)
