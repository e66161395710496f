"""ranksafe finds in real code what it found before; `make corpus` asks that of all packages, this of a few."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.corpus.findings import VERDICTS, check, read_verdicts
from tests.corpus.packages import PACKAGES, copy_installed, count_lines, read_packages

INSTALLED = [package for package in read_packages() if package.installed]
MOST_PER_THOUSAND_LINES = 0.2


@pytest.mark.torch
def test_installed_packages_have_the_findings_that_were_judged(tmp_path: Path) -> None:
    chosen = os.environ.get("RANKSAFE_TEST_TORCH_PYTHON")
    if not chosen:
        pytest.skip("needs torch: RANKSAFE_TEST_TORCH_PYTHON=$(python tools/environments.py torch)")
    for package in INSTALLED:
        copy_installed(package, Path(chosen), tmp_path)
    lines = count_lines(tmp_path)
    assert lines > 10_000
    found = check(INSTALLED, tmp_path)
    names = {package.requirement for package in INSTALLED}
    known = [verdict for verdict in read_verdicts() if verdict.package in names]
    assert sorted((*item.place, item.level) for item in found) == sorted(
        (*item.place, item.level) for item in known
    )
    assert 1000 * len(found) / lines <= MOST_PER_THOUSAND_LINES


def test_there_are_packages_enough() -> None:
    kinds = [package.kind for package in read_packages()]
    assert kinds.count("trains") >= 40
    assert kinds.count("other") >= 20


def test_every_package_is_pinned_and_there_once() -> None:
    packages = read_packages()
    assert all(package.name and package.version for package in packages)
    assert len({package.requirement for package in packages}) == len(packages)


def test_every_verdict_says_why_and_belongs_to_a_package() -> None:
    packages = {package.requirement: package for package in read_packages()}
    verdicts = read_verdicts()
    for finding in verdicts:
        assert finding.verdict in ("true", "harmless", "false"), finding
        assert len(finding.reason.split()) >= 5, finding
        assert packages[finding.package].wants(finding.file), finding
    assert len({finding.place for finding in verdicts}) == len(verdicts)


@pytest.mark.parametrize("file", [PACKAGES, VERDICTS], ids=lambda file: file.name)
def test_lists_have_one_object_a_line(file: Path) -> None:
    for line in file.read_text(encoding="utf-8").splitlines():
        assert isinstance(json.loads(line), dict)
