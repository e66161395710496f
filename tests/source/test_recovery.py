"""Half-typed code loses its broken statement and nothing else."""

from __future__ import annotations

import ast

import pytest
from ranksafe.source.recovery import edited_lines, parse_tolerantly

BEFORE = "import torch\nfirst = torch.zeros(1)\n"
AFTER = "\n\ndef later(x):\n    return torch.relu(x)\n"


def calls(tree: ast.Module) -> set[tuple[int, str]]:
    return {
        (node.lineno, ast.unparse(node.func))
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
    }


@pytest.mark.parametrize(
    "broken",
    [
        "model = Net(",
        "model.",
        "if x",
        "if x:",
        "for i in range(",
        "def f(a, b",
        "def f(a):",
        "class A",
        "class A:",
        "from torch import",
        "x = [1, 2",
        "x = {'a': ",
        "x = 'abc",
        "@decorator(",
        "with open(p) as",
        "return )",
        "try:",
        "    indented = 1",
        "x = = 2",
        "lambda: (",
    ],
)
def test_statement_being_typed_is_left_out(broken: str) -> None:
    text = BEFORE + broken + AFTER
    for edited in ((2, 2), None):
        parsed = parse_tolerantly(text, edited_lines(text, *edited) if edited else ())
        assert parsed is not None
        found = calls(parsed.tree)
        assert {(2, "torch.zeros"), (6, "torch.relu")} <= found, edited
        assert all(line in (2, 3, 6) for line, _ in found)


def test_body_under_a_broken_header_is_kept() -> None:
    text = "import torch\ndef f(x:\n    a = torch.abs(x)\n    return a\ntorch.seed()\n"
    parsed = parse_tolerantly(text, edited_lines(text, 1, 1))
    assert parsed is not None
    assert calls(parsed.tree) == {(3, "torch.abs"), (5, "torch.seed")}


@pytest.mark.parametrize(
    "header",
    [
        "   if chief:",
        "    if chief",
        "    if chief):",
        "    for a in b c:",
        "    def f(a, :",
        "    with open(a) as:",
        "    else if chief:",
    ],
)
def test_a_block_goes_with_its_header_where_no_edit_is_known(header: str) -> None:
    text = (
        "import torch\ndef f(a):\n    if a:\n        torch.exp(a)\n"
        f"{header}\n        torch.abs(a)\n\n        torch.sin(a)\n    torch.seed()\n"
    )
    parsed = parse_tolerantly(text)
    assert parsed is not None
    assert calls(parsed.tree) == {(4, "torch.exp"), (9, "torch.seed")}
    assert parsed.blanked >= {4, 5, 7}


def test_open_triple_quote_costs_only_its_line_when_the_edit_is_known() -> None:
    text = BEFORE + 'doc = """half' + AFTER
    parsed = parse_tolerantly(text, edited_lines(text, 2, 2))
    assert parsed is not None
    assert (6, "torch.relu") in calls(parsed.tree)


def test_try_without_except_keeps_its_body() -> None:
    text = "import torch\ntry:\n    torch.seed()\ntorch.abs(1)\n"
    parsed = parse_tolerantly(text)
    assert parsed is not None
    assert calls(parsed.tree) == {(3, "torch.seed"), (4, "torch.abs")}


def test_several_breaks_are_all_left_out() -> None:
    text = "import torch\na.\ntorch.abs(1)\nb = = 1\ntorch.exp(1)\nc = )\ntorch.sin(1)\n"
    parsed = parse_tolerantly(text)
    assert parsed is not None
    assert {name for _, name in calls(parsed.tree)} == {"torch.abs", "torch.exp", "torch.sin"}


def test_intact_text_is_parsed_as_it_is() -> None:
    parsed = parse_tolerantly("x = 1\n")
    assert parsed is not None
    assert parsed.blanked == frozenset()
    assert parsed.lines is None
