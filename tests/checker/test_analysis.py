"""What an editor sees of an analysis while text is being typed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from ranksafe.checker.analysis import Analyzer, DocumentAnalysis
from ranksafe.checker.configuration import Configuration
from ranksafe.checker.finding import Finding, Level
from ranksafe.checker.registry import Registry
from ranksafe.checker.rule import Rule, RuleMetadata, Symptom
from ranksafe.checker.rule_folder import RuleFolder
from ranksafe.launch.context import LaunchContext
from ranksafe.localization import Translated
from ranksafe.semantics.module import Module

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


def test_a_function_that_nothing_calls_any_more_has_no_findings() -> None:
    text = PROGRAM.removesuffix("main()\n") + "if __name__ == '__main__':\n    main()\n"
    call = text.split("\n").index("    main()")
    function = range(text.split("\n").index("def main():"), call - 1)

    def in_function() -> list[int]:
        lines = (item.range.start.line for item in analysis.findings)
        return [line for line in lines if line in function]

    analysis = opened(text)
    before = in_function()
    assert before
    text = edited(analysis, text, call, "    pass")
    assert not in_function()
    edited(analysis, text, call, "    main()")
    assert in_function() == before


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


METHODS = """\
import torch


class Net(torch.nn.Module):
    def forward(self, x):
        return self.half(x)

    def half(self, x):
        y = x / 2
        return y
"""


class CallsOfMethods(Rule):
    """Asks whether ``self.half`` is a method, and looks into it on request."""

    metadata = RuleMetadata(
        code="RS979",
        name="calls-of-methods",
        summary=Translated("Calls", "调用"),
        level=Level.INFORMATION,
        symptom=Symptom.CRASHES,
        since="0.1.0",
    )
    listens_to = (ast.Call,)

    def __init__(self, looks_inside: bool) -> None:
        self.looks_inside = looks_inside
        self.asked = 0

    def check(self, node: ast.AST, module: Module, launch: LaunchContext) -> Iterator[Finding]:
        self.asked += 1
        cls = module.class_named("train.Net")
        assert cls is not None
        if self.looks_inside:
            assert module.method(cls, "half") is not None
        else:
            assert module.has_method(cls, "half")
        yield from ()


@pytest.mark.parametrize(
    ("looks_inside", "line", "new", "is_asked_again"),
    [
        (False, 8, "        y = x / 4", False),
        (True, 8, "        y = x / 4", True),
        (False, 7, "    def half(self, x, by=2):", True),
    ],
)
def test_a_caller_is_checked_again_when_what_was_read_of_a_method_is_edited(
    looks_inside: bool, line: int, new: str, is_asked_again: bool
) -> None:
    rule = CallsOfMethods(looks_inside)
    folders = [RuleFolder(rule, Path("calls"), "calls")]
    analyzer = Analyzer(Registry(folders=folders), Configuration(), LaunchContext())
    analysis = analyzer.open(Path("train.py"), METHODS)
    assert rule.asked == 1
    edited(analysis, METHODS, line, new)
    assert rule.asked == (2 if is_asked_again else 1)
