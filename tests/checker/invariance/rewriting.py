"""Other ways to write the same: each function finds the places in a program where its way is possible."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.checker.invariance.changes import Change, Edit, Source, Span
from tests.checker.invariance.renaming import FUNCTIONS, Function

_NAMED = "named_part"
_SIMPLE = (ast.Assign, ast.AnnAssign, ast.Expr, ast.Return)
_CONVENTIONAL_TESTS = frozenset({"__name__", "TYPE_CHECKING"})
"""Every tool knows the tests that ask these by their form."""


def named_tests(source: Source) -> list[Change]:
    """``if a < b:`` becomes ``c = a < b`` and ``if c:``."""
    changes = []
    for number, node in enumerate(_ifs(source)):
        if not isinstance(node.test, (ast.Name, ast.Constant)):
            changes.append(_named(source, node, node.test, f"{_NAMED}_{number}"))
    return changes


def named_arguments(source: Source) -> list[Change]:
    """``f(a + b)`` becomes ``c = a + b`` and ``f(c)``: the first argument that is not just a name."""
    changes = []
    for number, statement in enumerate(node for node in source.nodes if isinstance(node, _SIMPLE)):
        value = statement.value
        if isinstance(source.parents[statement], ast.ClassDef) or not begins_a_line(
            source, statement
        ):
            continue
        if isinstance(value, ast.Call) and _is_dotted(value.func):
            arguments = [*value.args, *(keyword.value for keyword in value.keywords)]
            part = next((item for item in arguments if not _is_plain(item)), None)
            if part is not None and not isinstance(part, ast.Starred):
                name = f"{_NAMED}_{number}"
                changes.append(_named(source, statement, part, name))
    return changes


def _named(source: Source, statement: ast.stmt, part: ast.expr, name: str) -> Change:
    span = source.span(part)
    before = Span(
        source.whole_lines(statement.lineno, statement.lineno).start, source.start(statement)
    )
    indent = source.written(before)
    insert = Edit(
        Span(before.start, before.start), (f"{indent}{name} = (", span, ")\n"), part.lineno
    )
    # A generator may share its brackets with the call around it.
    use = f"({name})" if isinstance(part, ast.GeneratorExp) else name
    return Change(
        f"`{source.written(span)}` is called `{name}`", (insert, Edit(span, (use,), part.lineno))
    )


def whole_parts(source: Source) -> list[Change]:
    """``a // b`` becomes ``(a - a % b) // b``."""
    changes = []
    for node in source.nodes:
        if (
            isinstance(node, ast.BinOp)
            and isinstance(node.op, ast.FloorDiv)
            and _has_place(source, node)
        ):
            if _is_repeatable(node.left) and _is_repeatable(node.right):
                left, right = source.span(node.left), source.span(node.right)
                divisor = f"({source.written(right)})"
                pieces = ("(", left, " - ", left, f" % {divisor})")
                edit = Edit(left, pieces, node.lineno)
                changes.append(
                    Change(f"`{source.written(source.span(node))}` is written out", (edit,))
                )
    return changes


def swapped_arms(source: Source) -> list[Change]:
    """``if a: b else: c`` becomes ``if not a: c else: b``; without an ``else`` it gets one."""
    changes = []
    for node in _ifs(source):
        test, first_line = source.span(node.test), source.line(node.lineno)
        head_end = source.line_at(test.end)
        body_start, body_end = node.body[0].lineno, _last_line(node.body)
        after_test = source.text[test.end :].partition("\n")[0].partition("#")[0].strip()
        if body_start <= head_end or after_test not in (":", "):"):
            continue
        indent = first_line[: len(first_line) - len(first_line.lstrip())]
        body = source.whole_lines(head_end + 1, body_end)
        if node.orelse:
            else_start, else_end = _else_line(source, body_end), _last_line(node.orelse)
            if else_start is None or node.orelse[0].lineno <= else_start:
                continue
            otherwise = source.whole_lines(else_start + 1, else_end)
            arms: tuple[str | Span, ...] = (otherwise, f"{indent}else:\n", body)
            end = otherwise.end
        else:
            arms = (f"{indent}    pass\n{indent}else:\n", body)
            end = body.end
        if not source.text[:end].endswith("\n"):
            continue
        head = source.whole_lines(node.lineno, head_end)
        edit = Edit(Span(head.start, end), (f"{indent}if not (", test, "):\n", *arms), node.lineno)
        changes.append(Change(f"`if {source.written(test)}` has its arms swapped", (edit,)))
    return changes


def keyword_arguments(source: Source) -> list[Change]:
    """``f(a, b)`` becomes ``f(x=a, y=b)`` where ``f`` is a function of the file."""
    functions = _plain_functions(source)
    changes = []
    for node in source.nodes:
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        if not _has_place(source, node):
            continue
        function = functions.get(node.func.id)
        if (
            function is None
            or not node.args
            or any(isinstance(item, ast.Starred) for item in node.args)
        ):
            continue
        names = [item.arg for item in function.args.args]
        if function.args.posonlyargs or len(node.args) > len(names):
            continue
        starts = [source.start(item) for item in node.args]
        if any(source.text[:start].rstrip()[-1] not in "(," for start in starts[1:]):
            continue  # An argument in brackets of its own.
        if source.text[source.span(node.func).end : starts[0]].strip() != "(":
            continue
        edits = tuple(
            Edit(Span(start, start), (f"{name}=",), source.line_at(start))
            for start, name in zip(starts, names, strict=False)
        )
        changes.append(Change(f"`{source.written(source.span(node))}` has keywords", edits))
    return changes


def _ifs(source: Source) -> Iterator[ast.If]:
    """Those whose test can be taken out: no ``elif``, none on one line, none that tools know by its form."""
    for node in source.nodes:
        if isinstance(node, ast.If) and begins_a_line(source, node):
            words = {item.id for item in ast.walk(node.test) if isinstance(item, ast.Name)}
            if not words & _CONVENTIONAL_TESTS:
                yield node


def begins_a_line(source: Source, statement: ast.stmt) -> bool:
    """Whether it begins a line; ``elif`` does not, and neither does what follows a colon or a semicolon."""
    before = source.line(statement.lineno).encode()[: statement.col_offset]
    return not before.strip() and not source.text[source.start(statement) :].startswith("elif")


def _plain_functions(source: Source) -> dict[str, Function]:
    """The undecorated functions at the top of the file whose names mean nothing else."""
    functions = [node for node in source.tree.body if isinstance(node, FUNCTIONS)]
    bound = [node.name for node in source.nodes if isinstance(node, (*FUNCTIONS, ast.ClassDef))]
    bound += [node.arg for node in source.nodes if isinstance(node, ast.arg)]
    bound += [
        node.id
        for node in source.nodes
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    ]
    return {
        function.name: function
        for function in functions
        if not function.decorator_list and bound.count(function.name) == 1
    }


def _else_line(source: Source, body_end: int) -> int | None:
    """The line of the ``else:`` after a body, where nothing else stands on it."""
    number = body_end + 1
    while source.line(number).strip().startswith("#") or not source.line(number).strip():
        number += 1
    return number if source.line(number).partition("#")[0].strip() == "else:" else None


def _last_line(body: list[ast.stmt]) -> int:
    last = body[-1].end_lineno
    assert last is not None
    return last


def _has_place(source: Source, node: ast.AST) -> bool:
    """Python before 3.12 misplaces what stands inside some f-strings."""
    return not any(isinstance(outer, ast.JoinedStr) for outer in source.around(node))


def _is_dotted(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def _is_plain(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) or _is_dotted(node)


def _is_repeatable(node: ast.expr) -> bool:
    """Whether reading it twice gives the same: a name, a number, a length."""
    if isinstance(node, ast.Call):
        is_len = isinstance(node.func, ast.Name) and node.func.id == "len"
        return is_len and len(node.args) == 1 and _is_dotted(node.args[0])
    return _is_plain(node)
