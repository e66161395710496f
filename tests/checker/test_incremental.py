"""However a file was edited, its findings at rest are those of a fresh analysis of the same text."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from ranksafe.checker.analysis import DocumentAnalysis

from tests.checker.incremental import noisy_analyzer, parses, random_edit
from tests.checker.real_files import real_files

RELEVANT_HEADER = "import torch\nfrom torch import nn\nfrom transformers import Trainer\n"


def analysed(analysis: DocumentAnalysis) -> str:
    """What was analysed, still naming a library: the line that did may be the broken one that was left out."""
    return analysis.text_analysed + ("\n# torch" if analysis.blanked else "")


def edit_and_compare(path: Path, edits: int, seed: int) -> tuple[int, int]:
    """Edit a file ``edits`` times; returns how many states were compared and how many of these did not parse."""
    rng = random.Random(seed)
    analyzer = noisy_analyzer()
    original = path.read_text("utf-8")
    if "torch" not in original:
        original = RELEVANT_HEADER + original
    text = original
    analysis = analyzer.open(path, text)
    broken = 0
    for number in range(edits):
        if number and number % 8 == 0:
            analysis.change(original, 0, text.count("\n"))
            text = original
        edit = random_edit(text, rng)
        text = edit.text
        analysis.change(text, edit.first, edit.last)
        assert not analysis.rule_errors, next(iter(analysis.rule_errors.values()))
        analysis.settle()
        intact = parses(text)
        broken += not intact
        # What is broken is known from the edit; everything else must be as in a fresh analysis of the rest.
        fresh = analyzer.open(path, text if intact else analysed(analysis))
        assert analysis.findings == fresh.findings, (
            f"{path.name}: edit {number} ({edit.kind}, line {edit.first + 1})"
        )
    return edits, broken


@pytest.mark.parametrize("path", real_files(8, largest=30_000), ids=lambda path: path.name)
def test_edited_file_has_the_findings_of_a_fresh_analysis(path: Path) -> None:
    edit_and_compare(path, edits=30, seed=len(path.name))


@pytest.mark.long
def test_ten_thousand_edits() -> None:
    """All rules and rank flow; `test_edits_over_files` edits several files of a project."""
    compared = broken = 0
    files = real_files(40, largest=30_000)
    for number, path in enumerate(files):
        edits = 10_000 // len(files) + 1
        done, unparsable = edit_and_compare(path, edits, seed=number)
        compared += done
        broken += unparsable
    print(f"{compared} edits over {len(files)} files, {broken} states did not parse")
    assert compared >= 10_000
    assert len(files) >= 30
    assert broken >= 0.3 * compared


STATEMENTS = st.sampled_from(
    [
        "import torch",
        "from torch import nn as nn",
        "from transformers import Trainer as T",
        "kw = dict(device_map='auto')",
        "kw['device_map'] = 'balanced'",
        "model = load()",
        "if world > 1:\n    kw = {}",
        "trainer = T(model=model)",
        "def load():\n    return AutoModel.from_pretrained('x', **kw)",
        "class Net(nn.Module):\n    def __init__(self):\n        self.model = nn.Linear(1, 1)\n\n"
        "    def forward(self, x):\n        return self.helper(x)\n\n    def helper(self, x):\n        return self.model(x)",
        "class Net(Base):\n    x = 1",
        "if __name__ == '__main__':\n    trainer.train()",
        "assert world == 1",
        "# a comment",
        "",
    ]
)


PROGRAMS = st.lists(STATEMENTS, max_size=7)
CHANGES = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 3), STATEMENTS), max_size=6)


@settings(max_examples=300, deadline=None, derandomize=True)
@example(
    start=[
        "def load():\n    return AutoModel.from_pretrained('x', **kw)",
        "model = load()",
        "def load():\n    return AutoModel.from_pretrained('x', **kw)",
    ],
    changes=[(0, 0, "model = load()")],
)
@given(start=PROGRAMS, changes=CHANGES)
def test_statements_put_in_and_taken_out(
    start: list[str], changes: list[tuple[int, int, str]]
) -> None:
    edit_program_and_compare(start, changes)


@pytest.mark.long
@settings(max_examples=6000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(start=PROGRAMS, changes=CHANGES)
def test_many_statements_put_in_and_taken_out(
    start: list[str], changes: list[tuple[int, int, str]]
) -> None:
    edit_program_and_compare(start, changes)


def edit_program_and_compare(start: list[str], changes: list[tuple[int, int, str]]) -> None:
    """Small programs whose statements depend on each other: every dependency must be noticed."""
    analyzer = noisy_analyzer()
    lines = "\n".join(["import torch", *start]).split("\n")
    analysis = analyzer.open(Path("train.py"), "\n".join(lines))
    for position, removed, statement in changes:
        first = min(position, len(lines) - 1)
        last = min(first + max(removed - 1, 0), len(lines) - 1)
        kept_after = lines[last + 1 :] if removed else lines[first:]
        lines = [*lines[:first], *statement.split("\n"), *kept_after]
        text = "\n".join(lines)
        analysis.change(text, first, last)
        analysis.settle()
        assert analysis.findings == analyzer.open(Path("train.py"), analysed(analysis)).findings
        assert analysis.text_analysed == text or not parses(text)
