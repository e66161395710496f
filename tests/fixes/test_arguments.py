"""Arguments, items and parameters go and come with their commas, lines and comments."""

from __future__ import annotations

import ast

import pytest
from ranksafe.fixes import arguments
from ranksafe.semantics.module import Module
from ranksafe.source.position import Edit

from tests.fixes.conftest import Edited


def outermost_call(module: Module) -> ast.Call:
    node = next(iter(module.nodes(ast.Expr)))
    assert isinstance(node, ast.Expr)
    assert isinstance(node.value, ast.Call)
    return node.value


def drop(module: Module) -> Edit | None:
    return arguments.remove_keyword(module, outermost_call(module), "gone")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('f(a, gone="x")', "f(a)"),
        ('f(gone="x")', "f()"),
        ('f(gone="x",)', "f()"),
        ('f(gone="x", b=1)', "f(b=1)"),
        ('f(a, gone=("x"), )', "f(a, )"),
        ("f(a if (b) else (c), gone=g(h(1), [2]), *d, **e)", "f(a if (b) else (c), *d, **e)"),
        ('f("中文🤗", gone="🤗", b=1)', 'f("中文🤗", b=1)'),
        ('(g)(x)(a, gone="x")', "(g)(x)(a)"),
        ('f(\n    a,\n    gone="x",  # all of it\n    b=1,\n)\n', "f(\n    a,\n    b=1,\n)\n"),
        ('f(\n    a,  # why, (a)\n    gone="x"\n)\n', "f(\n    a,  # why, (a)\n)\n"),
        ('f(\r\n    a,\r\n    gone="x",\r\n)\r\n', "f(\r\n    a,\r\n)\r\n"),
        ('f(a, # no, comment\n  gone="x")', "f(a)"),
        ('f(a,\n  gone="x", b=2)', "f(a,\n  b=2)"),
        ("f(a, gone=[\n    1,\n    2,\n], b=3)", "f(a, b=3)"),
    ],
)
def test_remove_keyword(edited: Edited, before: str, after: str) -> None:
    assert edited(before, drop) == after


def test_remove_keyword_that_is_not_there(edited: Edited) -> None:
    assert edited("f(a, **kw)", drop) is None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('k = {"gone": 1}', "k = {}"),
        ('k = {"a": 1, "gone": ("x")}', 'k = {"a": 1}'),
        ('k = {**x, "gone": 1, "b": 2}', 'k = {**x, "b": 2}'),
        ('k = {\n  "a": 1,\n  "gone": 2,  # c\n}', 'k = {\n  "a": 1,\n}'),
        ("k = dict(a=1, gone=2)", "k = dict(a=1)"),
        ('k = {"a": 1}\nk["gone"] = 2\nf(**k)', 'k = {"a": 1}\nf(**k)'),
        ('k = {"a": 1}\nif k:\n    k["gone"] = 2\n', 'k = {"a": 1}\nif k:\n    pass\n'),
        ("f(a, gone)", None),
        ("gone = 2", None),
    ],
)
def test_remove_argument_value(edited: Edited, before: str, after: str | None) -> None:
    def build(module: Module) -> Edit | None:
        for node in module.nodes(ast.Constant):
            assert isinstance(node, ast.Constant)
            parent = module.parent(node)
            is_item = isinstance(parent, ast.Dict) and any(
                isinstance(key, ast.Constant) and key.value == "gone" and value is node
                for key, value in zip(parent.keys, parent.values, strict=True)
            )
            is_keyword = isinstance(parent, ast.keyword) and parent.arg == "gone"
            if is_item or is_keyword or isinstance(parent, ast.Assign):
                return arguments.remove_argument_value(module, node)
        name = next(node for node in module.nodes(ast.Name))
        return arguments.remove_argument_value(module, name)  # type: ignore[arg-type]

    assert edited(before, build) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f()", "f(new=1)"),
        ("f(a)", "f(a, new=1)"),
        ("f(a,)", "f(a, new=1,)"),
        ("f(a, **kw)", "f(a, **kw, new=1)"),
        ("f(x for x in y)", "f((x for x in y), new=1)"),
        ("f((x for x in y))", "f((x for x in y), new=1)"),
        ("f(\n    a,\n    b=1,\n)\n", "f(\n    a,\n    b=1,\n    new=1,\n)\n"),
        ("f(\n    a,\n    b=1\n)\n", "f(\n    a,\n    b=1,\n    new=1\n)\n"),
        ("f(a,\n  b)", "f(a,\n  b,\n  new=1)"),
    ],
)
def test_add_argument(edited: Edited, before: str, after: str) -> None:
    def build(module: Module) -> Edit:
        return arguments.add_argument(module, outermost_call(module), "new=1")

    assert edited(before, build) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("def f(): pass", "def f(n=None): pass"),
        ("def f(self, a, b=(False)): pass", "def f(self, a, b=(False), n=None): pass"),
        ("def f(self, *args, **kw): pass", "def f(self, *args, n=None, **kw): pass"),
        ("def f(self, *, a): pass", "def f(self, *, a, n=None): pass"),
        ("def f(**kw): pass", "def f(n=None, **kw): pass"),
        ("def f(a, /, b, **kw): pass", "def f(a, /, b, n=None, **kw): pass"),
        (
            "async def f(a: dict[str, int] = {}) -> None: pass",
            "async def f(a: dict[str, int] = {}, n=None) -> None: pass",
        ),
        (
            "def f(\n    self,\n    a=3,\n): pass",
            "def f(\n    self,\n    a=3,\n    n=None,\n): pass",
        ),
        ("@d(1)\ndef f(self): pass", "@d(1)\ndef f(self, n=None): pass"),
    ],
)
def test_add_parameter(edited: Edited, before: str, after: str) -> None:
    def build(module: Module) -> Edit:
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
        function = next(node for kind in kinds for node in module.nodes(kind))
        assert isinstance(function, kinds)
        return arguments.add_parameter(module, function, "n=None")

    assert edited(before, build) == after
