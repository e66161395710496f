"""What an editor sees of an analysis while text is being typed."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from ranksafe.checker.analysis import DocumentAnalysis

from tests.checker.incremental import noisy_analyzer, parses

PROGRAM = """\
import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        return torch.relu(x)

    def other(self, x):
        return torch.sum(x)


def main():
    net = Net()
    print(net)


main()
"""


def opened(text: str) -> DocumentAnalysis:
    return noisy_analyzer().open(Path("train.py"), text)


def lines_of(analysis: DocumentAnalysis, code: str) -> list[int]:
    return [item.range.start.line for item in analysis.findings if item.code == code]


def edited(analysis: DocumentAnalysis, text: str, line: int, new: str) -> str:
    lines = text.split("\n")
    lines[line] = new
    changed = "\n".join(lines)
    analysis.change(changed, line, line)
    return changed


def test_file_without_relevant_library_is_not_parsed() -> None:
    analysis = opened("import os\nprint(os.getcwd())\n")
    assert analysis.findings == ()
    assert analysis.module is None


def test_file_becomes_relevant_while_typing() -> None:
    analysis = opened("import os\nprint(1)\n")
    analysis.change("import torch\nprint(1)\n", 0, 0)
    assert lines_of(analysis, "RS980") == [1]


def test_half_typed_call_keeps_all_other_findings() -> None:
    analysis = opened(PROGRAM)
    before = lines_of(analysis, "RS980")
    edited(analysis, PROGRAM, 13, "    net = Net(")
    assert analysis.status == "partial"
    assert analysis.blanked == frozenset({13})
    assert lines_of(analysis, "RS980") == [line for line in before if line != 13]


def test_findings_below_an_inserted_line_move_with_their_text() -> None:
    analysis = opened(PROGRAM)
    analysis.change(
        PROGRAM.replace("    net = Net()\n", "    net = Net()\n    net.eval()\n"), 13, 13
    )
    assert lines_of(analysis, "RS980") == [6, 9, 13, 14, 15, 18]


def test_related_places_move_too() -> None:
    analysis = opened(PROGRAM)
    analysis.change("\n\n" + PROGRAM, 0, 0)
    (finding,) = [item for item in analysis.findings if item.code == "RS981"]
    assert [item.range.start.line for item in finding.related] == [7, 10]


def test_renaming_an_import_changes_what_others_mean() -> None:
    analysis = opened(PROGRAM)
    edited(analysis, PROGRAM, 1, "from mylib import nn")
    (finding,) = [item for item in analysis.findings if item.code == "RS981"]
    assert "mylib.nn.Module" in finding.message.en


def test_hopeless_text_raises_nothing() -> None:
    for text in (
        "import torch\n\0\n",
        "import torch\n" + "(" * 5000,
        "import torch\n'''",
        ")]} torch",
    ):
        assert opened(text).status in ("complete", "partial", "stale")


def test_text_that_cannot_be_read_at_all_keeps_the_last_findings() -> None:
    analysis = opened(PROGRAM)
    before = analysis.findings
    edited(analysis, PROGRAM, 14, "    print(\0)")
    assert analysis.findings
    assert set(lines_of(analysis, "RS981")) == {
        item.range.start.line for item in before if item.code == "RS981"
    }


LOOP = """\
import torch


def train(loader):
    for batch in loader:
        loss = step(batch)
        loss.backward(); report(loss)
    if done: finish()
    return loss
"""


def test_a_key_parses_the_statement_it_was_typed_in_alone() -> None:
    analysis = noisy_analyzer().open(Path("train.py"), LOOP)
    assert analysis.module is not None
    before = analysis.module.units[1].nodes[0]
    text = LOOP.replace("step(batch)", "step(batch, 2)")
    analysis.change(text, 5, 5)
    after = analysis.module.units[1].nodes[0]
    assert isinstance(before, ast.FunctionDef)
    assert isinstance(after, ast.FunctionDef)
    # What is around the statement is another node, what is beside it the same.
    assert after is not before
    assert after.body[0] is not before.body[0]
    assert after.body[1:] == before.body[1:]
    assert analysis.findings == noisy_analyzer().open(Path("train.py"), text).findings


@pytest.mark.parametrize(
    ("line", "old", "new"),
    [
        (5, "        loss = step(batch)", "        loss = step(batch); x = 1"),
        (5, "        loss = step(batch)", "\t       loss = step(batch)"),
        (5, "        loss = step(batch)", "        loss = step(batch) \\"),
        (5, "        loss = step(batch)", "        if x: loss = step(batch)"),
        (5, "        loss = step(batch)", '        loss = """step(batch)'),
        (6, "report(loss)", "report(loss, 1)"),
        (7, "finish()", "finish(1)"),
    ],
)
def test_what_is_not_one_statement_alone_is_parsed_with_the_rest(
    line: int, old: str, new: str
) -> None:
    analysis = noisy_analyzer().open(Path("train.py"), LOOP)
    text = LOOP.replace(old, new)
    analysis.change(text, line, line)
    analysis.settle()
    fresh = noisy_analyzer().open(Path("train.py"), analysis.text_analysed)
    assert analysis.findings == fresh.findings
    assert (analysis.status == "complete") == parses(text)
