"""Imports that are read without parsing: never fewer than Python finds."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from ranksafe.semantics.project.import_scan import imported

REPOSITORY = Path(__file__).parents[2]

CASES = {
    "import slow\n": {(0, "slow")},
    "import slow.parts as s, fast\n": {(0, "slow.parts"), (0, "fast")},
    "import slow.parts\n": {(0, "slow.parts"), (0, "slow")},
    "from .. import far\n": {(2, "far")},
    "from ..far import *\n": {(2, "far.*")},
    "from . far import a as b, c  # (d\n": {(1, "far.a"), (1, "far.c")},
    "from far import (\n    a,  # the first (of two)\n    b as c,\n)\n": {
        (0, "far.a"),
        (0, "far.b"),
    },
    "from far \\\n    import a, \\\n    b\n": {(0, "far.a"), (0, "far.b")},
    "try: import a\nexcept E: from b import c; import d\n": {(0, "a"), (0, "b.c"), (0, "d")},
    "def f():\n\tfrom\tinner import hidden\n": {(0, "inner.hidden")},
    "imported = 1\nfrom_here = 2\nx = 'import a'\n": set(),
    "from here we go\n": set(),
    "from a import (\n": set(),
}


@pytest.mark.parametrize("text", CASES)
def test_what_is_read(text: str) -> None:
    assert set(imported(text)) == CASES[text]


def test_nothing_that_python_imports_is_left_out() -> None:
    for folder in ("server", "rules", "tests"):
        for path in (REPOSITORY / folder).rglob("*.py"):
            text = path.read_text(encoding="utf-8", errors="replace")
            try:
                tree = ast.parse(text)
            except SyntaxError:
                continue
            assert set(_of(tree)) <= set(imported(text)), path


@pytest.mark.parametrize(
    "text",
    [
        "from " + "." * 40_000,
        "from" + " " * 40_000,
        "import " + "a," * 20_000,
        "from a import (" * 20_000,
    ],
)
def test_long_lines_are_read_once(text: str) -> None:
    assert len(list(imported(text))) <= len(text)


def _of(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((0, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = f"{node.module}." if node.module else ""
            yield from ((node.level, f"{module}{alias.name}") for alias in node.names)
