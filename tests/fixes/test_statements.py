"""Statements come, go and change with the indentation and the line ends of where they stand."""

from __future__ import annotations

import ast

import libcst
import pytest
from ranksafe.fixes import statements
from ranksafe.semantics.module import Module
from ranksafe.source.position import Edit

from tests.fixes.conftest import Edited

BLOCK = '''class A:
    def f(self):
        """doc"""
        x = 1  # c
        if x: y = 2
        else:
            z = """a
b"""
'''


def assigned(module: Module, name: str) -> ast.Assign:
    for node in module.nodes(ast.Assign):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return node
    raise AssertionError(name)


def test_lines_of_the_file_keep_their_ends(edited: Edited) -> None:
    source = "z = f(\r\n    a,\r\n)\r\n"

    def build(module: Module) -> Edit | None:
        statement = assigned(module, "z")
        return statements.replace_statement(
            module, statement, f"if b:\n    {module.text_of(statement)}"
        )

    assert edited(source, build) == "if b:\r\n    z = f(\r\n    a,\r\n)\r\n"


def test_insert_before(edited: Edited) -> None:
    def build(module: Module) -> Edit | None:
        return statements.insert_before(module, assigned(module, "z"), "if a:\n    b()")

    after = edited(BLOCK, build)
    assert after == BLOCK.replace(
        "            z", "            if a:\n                b()\n            z"
    )


def test_insert_after_a_string_of_several_lines(edited: Edited) -> None:
    def build(module: Module) -> Edit | None:
        return statements.insert_after(module, assigned(module, "z"), "b()")

    assert edited(BLOCK, build) == BLOCK + "            b()\n"


def test_insert_after_the_last_line_without_an_end(edited: Edited) -> None:
    def build(module: Module) -> Edit | None:
        return statements.insert_after(module, assigned(module, "x"), "b()")

    assert edited("x = 1\r\nif x:\r\n  y = 1", build) == "x = 1\r\nb()\r\nif x:\r\n  y = 1"


def test_insert_at_the_start_of_a_function(edited: Edited) -> None:
    def build(module: Module) -> Edit | None:
        function = next(iter(module.nodes(ast.FunctionDef)))
        assert isinstance(function, ast.FunctionDef)
        return statements.insert_at_start(module, function, "b()")

    assert edited(BLOCK, build) == BLOCK.replace("        x", "        b()\n        x", 1)
    assert edited("def f():\n  x = 1\n", build) == "def f():\n  b()\n  x = 1\n"


def test_a_statement_that_shares_its_line_is_left_alone(edited: Edited) -> None:
    def before(module: Module) -> Edit | None:
        return statements.insert_before(module, assigned(module, "y"), "b()")

    def after(module: Module) -> Edit | None:
        return statements.insert_after(module, assigned(module, "y"), "b()")

    def remove(module: Module) -> Edit | None:
        return statements.remove_statement(module, assigned(module, "y"))

    def replace(module: Module) -> Edit | None:
        return statements.replace_statement(module, assigned(module, "y"), "a()\nb()")

    assert [edited(BLOCK, build) for build in (before, after, remove, replace)] == [None] * 4


@pytest.mark.parametrize(
    ("before", "name", "after"),
    [
        ("x = 1\ny = 2\n", "x", "y = 2\n"),
        ("if a:\n    x = (\n        1\n    )\n", "x", "if a:\n    pass\n"),
        ("if a:\n    x = 1\n    y = 2  # c\n", "y", "if a:\n    x = 1\n"),
    ],
)
def test_remove(edited: Edited, before: str, name: str, after: str) -> None:
    def build(module: Module) -> Edit | None:
        return statements.remove_statement(module, assigned(module, name))

    assert edited(before, build) == after


def test_decorators_belong_to_their_function(edited: Edited) -> None:
    def build(module: Module) -> Edit | None:
        function = next(iter(module.nodes(ast.FunctionDef)))
        assert isinstance(function, ast.FunctionDef)
        return statements.insert_before(module, function, "x = 1")

    assert edited("@d\n@e(1)\ndef f(): pass\n", build) == "x = 1\n@d\n@e(1)\ndef f(): pass\n"


def test_replace(edited: Edited) -> None:
    def build(module: Module) -> Edit | None:
        return statements.replace_statement(module, assigned(module, "x"), "a = 1\nb = 2")

    expected = BLOCK.replace("        x = 1  # c", "        a = 1\n        b = 2  # c")
    assert edited(BLOCK, build) == expected


class _Renamed(libcst.CSTTransformer):
    def leave_Name(self, original_node: libcst.Name, updated_node: libcst.Name) -> libcst.Name:
        return (
            updated_node.with_changes(value="new") if original_node.value in "xz" else updated_node
        )


@pytest.mark.parametrize("name", ["x", "z"])
def test_rewrite_with_libcst_keeps_everything_else(edited: Edited, name: str) -> None:
    def build(module: Module) -> Edit | None:
        return statements.rewrite_statement(
            module, assigned(module, name), lambda tree: tree.visit(_Renamed())
        )

    assert edited(BLOCK, build) == BLOCK.replace(f" {name} = ", " new = ")


def test_rewrite_that_changes_nothing_is_no_edit(edited: Edited) -> None:
    def build(module: Module) -> Edit | None:
        return statements.rewrite_statement(module, assigned(module, "x"), lambda tree: tree)

    assert edited(BLOCK, build) is None
