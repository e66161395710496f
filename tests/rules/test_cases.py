"""Every case of every rule: what is reported where, and what the fix changes."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest
from ranksafe.checker.analysis import DocumentAnalysis
from ranksafe.checker.registry import Registry

from tests.rules.case_file import Case, CaseSource, Expected, ExpectedFix, read_cases
from tests.rules.checking import CaseProject, changed_lines
from tests.rules.conftest import REGISTRY

CASES = [
    pytest.param(folder.metadata.code, case, id=f"{folder.metadata.code}: {case.heading}")
    for folder in REGISTRY.rules
    if folder.cases_path.is_file()
    for case in read_cases(folder.cases_path)
]


@pytest.mark.parametrize(("code", "case"), CASES)
def test_case(code: str, case: Case, registry: Registry, tmp_path: Path) -> None:
    assert case.sources, "a case needs a python fence"
    files = {source.name: source.text for source in case.sources}
    assert len(files) == len(case.sources), "two files of one name"
    project = CaseProject(tmp_path, files, registry, case.launch)
    for source in case.sources:
        analysis = project.analyse(source.name, source.text)
        assert reported(analysis, source, code) == sorted(source.expected)
        for expected in source.fixes:
            check_fix(project, source, code, expected, analysis)


def reported(analysis: DocumentAnalysis, source: CaseSource, code: str) -> list[Expected]:
    """The findings of the case's rule, and of other rules where the case names them."""
    codes = {code, *(expected.code for expected in source.expected)}
    return sorted(
        Expected(finding.range.start.line + 1, finding.code, finding.level.label)
        for finding in analysis.findings
        if finding.code in codes
    )


def check_fix(
    project: CaseProject,
    source: CaseSource,
    code: str,
    expected: ExpectedFix,
    before: DocumentAnalysis,
) -> None:
    fixed = project.fixed(source.name, source.text, code, expected.key)
    assert changed_lines(source.text, fixed) == (expected.removed, expected.added)
    ast.parse(fixed)
    after = project.analyse(source.name, fixed)
    offers = (
        {expected.key}
        if expected.key
        else {
            finding.fixes[0].key
            for finding in before.findings
            if finding.code == code and finding.fixes
        }
    )
    left = [
        finding
        for finding in after.findings
        if finding.code == code and any(offer.key in offers for offer in finding.fixes)
    ]
    assert not left, "the finding is still there after its fix"
    new = Counter(item.code for item in after.findings) - Counter(
        item.code for item in before.findings
    )
    assert not new, f"the fix brought new findings: {dict(new)}"
    assert project.fixed(source.name, fixed, code, expected.key) == fixed
