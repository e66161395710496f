"""However a case was edited, what each rule says of it at rest is what a fresh analysis of the same text says."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from ranksafe.checker.rule_folder import RuleFolder

from tests.checker.incremental import parses, random_edit
from tests.rules.case_file import Case, read_cases
from tests.rules.checking import CaseProject
from tests.rules.conftest import REGISTRY

EDITED_TOGETHER = 5
"""After so many edits the text is put back: what is left of a case by then says little."""


def test_two_cases_of_each_rule(folder: RuleFolder, tmp_path: Path) -> None:
    for number, case in enumerate(_cases(folder)[:2]):
        edit_and_compare(case, tmp_path / str(number), edits=5, seed=folder.metadata.code)


@pytest.mark.long
def test_every_case_under_many_edits(folder: RuleFolder, tmp_path: Path) -> None:
    for number, case in enumerate(_cases(folder)):
        edit_and_compare(case, tmp_path / str(number), edits=25, seed=f"{folder.metadata.code}+")


def _cases(folder: RuleFolder) -> list[Case]:
    return read_cases(folder.cases_path) if folder.cases_path.is_file() else []


def edit_and_compare(case: Case, folder: Path, edits: int, seed: str) -> None:
    """Edit each file of a case ``edits`` times, the others as they stand on the disk."""
    files = {source.name: source.text for source in case.sources}
    project = CaseProject(folder, files, REGISTRY, case.launch)
    for name, original in files.items():
        rng = random.Random(f"{seed} {case.heading} {name}")
        text, analysis = original, project.analyse(name, original)
        for number in range(edits):
            if number % EDITED_TOGETHER == 0:
                analysis.change(original, 0, text.count("\n"))
                text = original
            edit = random_edit(text, rng)
            text = edit.text
            analysis.change(text, edit.first, edit.last)
            assert not analysis.rule_errors, next(iter(analysis.rule_errors.values()))
            analysis.settle()
            if not parses(text):
                continue  # Words of broken lines count for rules that ask for words; a fresh analysis has no such lines.
            fresh = project.analyse(name, text)
            assert analysis.findings == fresh.findings, (
                f"{case.heading}, {name}: edit {number} ({edit.kind}, line {edit.first + 1})\n{text}"
            )
