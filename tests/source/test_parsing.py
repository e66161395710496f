"""A long text that is parsed in pieces has the tree that it has as a whole."""

from __future__ import annotations

import ast
import random
from pathlib import Path

import pytest
from ranksafe.pausing import Pausable
from ranksafe.source import parsing
from ranksafe.source.parsing import has_too_long_statement, parse_python

from tests.hardening.measured import ROOT
from tests.hardening.shapes import text_of

FILES = sorted((ROOT / "server" / "ranksafe").rglob("*.py"))
ODD = {
    "strings over cuts": "x = '''\nimport os\nclass A:\n'''\n" * 40
    + "def f():\n    '''\nx\n'''\n" * 40,
    "brackets over cuts": "x = (\n1,\nimported,\n)\n" * 40,
    "clauses": "if a:\n    b\nelif c:\n    d\nelse:\n    e\n" * 40,
    "a long block with a clause": "for a in b:\n" + "    c\n" * 90 + "else:\n    d\n" + "e\n" * 90,
    "a long block, then a bracket": "class A:\n" + "    b = 1\n" * 90 + "(c)\n" + "    \nd\n" * 90,
    "blocks in each other": "class A:\n  def b():\n    for c in d:\n"
    + "      with e:\n       f\n" * 90,
    "decorators": "@a\n@b(\nc)\ndef d():\n    @e\n    def f(): pass\n" * 40,
    "continued lines": "x = \\\nimported\n" * 90,
    "carriage returns": "x = 1\r\ny = '''a\r\nb'''\rz = 2\n" * 40,
    "tabs": "class A:\n" + "\tdef f():\n\t\tx\n\t    \n" * 90,
    "umlauts": "ä = 'ü'; ö = 'é'\nclass Ä:\n" + "    ß = 'ö'; é = ü\n" * 90,
    "form feeds": "\fx = 1\n" * 90,
    "a form feed in an indentation": "def f(a,\n    b):\n  \f 'c"
    + "d" * 90
    + "'\n"
    + "    y\n" * 90,
    "no end": "x\n" * 90 + "def f():\n" + "  y\n" * 90 + "  z",
    "NUL": "x\n" * 90 + "\0",
    "nothing but comments": "# a\n" * 90,
}


def told(text: str, *, whole: bool = False) -> object:
    """The tree with all places, or the error."""
    try:
        tree = ast.parse(text) if whole else parse_python(text)
        return ast.dump(tree, include_attributes=True)
    except (SyntaxError, ValueError) as error:
        return type(error), getattr(error, "msg", None), getattr(error, "lineno", None)


@pytest.fixture(params=[20, 90, 700])
def _pieces(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "_PIECE", request.param)


@pytest.mark.usefixtures("_pieces")
@pytest.mark.parametrize("name", ODD)
def test_odd_texts(name: str) -> None:
    assert told(ODD[name]) == told(ODD[name], whole=True)


@pytest.mark.usefixtures("_pieces")
@pytest.mark.parametrize("file", FILES[::50], ids=lambda file: file.stem)
def test_files_with_lines_that_are_broken(file: Path) -> None:
    text = file.read_text("utf-8")
    assert told(text) == told(text, whole=True)
    choose = random.Random(file.name)
    for _ in range(3):
        lines = text.splitlines(keepends=True)
        at = choose.randrange(len(lines))
        lines[at] = choose.choice(["", "(", "    ", '"""', lines[at].strip()]) + lines[at].lstrip()
        broken = "".join(lines)
        assert told(broken) == told(broken, whole=True)


@pytest.mark.parametrize(
    "shape", ["functions", "methods", "one function with branches", "one dictionary"]
)
def test_others_come_between_the_pieces(shape: str) -> None:
    text = text_of(shape, 3_000)
    trees: list[ast.Module] = []
    work = Pausable(lambda: trees.append(parse_python(text)))
    turns = 1
    while not work.go_on(0):
        turns += 1
    assert (turns > 3) is (shape != "one dictionary"), "one statement is not cut"
    assert ast.dump(trees[0]) == ast.dump(ast.parse(text))


@pytest.mark.parametrize("half", ["x = [", "x = f(1,", 'x = """', "x = 1 + \\"])
def test_a_half_typed_line_makes_no_long_statement(
    half: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parsing, "LONGEST_STATEMENT", 400)
    lines = "def f(a):\n    # of it\n    a.b(\n        1,\n    )\n" * 100
    for end in ("\n", "\r\n", "\r"):
        text = f"{lines}{half}\n{lines}".replace("\n", end)
        assert not has_too_long_statement(text)
        assert has_too_long_statement(f"{text}x = [{end}{f'    f(1),{end}' * 50}]")
