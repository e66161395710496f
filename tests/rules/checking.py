"""Analyse and fix the files of a case as the command line and the server do."""

from __future__ import annotations

from difflib import ndiff
from pathlib import Path

from ranksafe.checker.analysis import Analyzer, DocumentAnalysis
from ranksafe.checker.configuration import Configuration
from ranksafe.checker.finding import Applicability, Finding, FixOffer
from ranksafe.checker.registry import Registry
from ranksafe.fixes.apply import apply_edits
from ranksafe.fixes.build import edits_for
from ranksafe.launch.context import LaunchContext
from ranksafe.semantics.project.index import ProjectIndex

_MOST_FIXES = 20


class CaseProject:
    """The files of one case, written to a folder."""

    def __init__(
        self, folder: Path, files: dict[str, str], registry: Registry, launch: LaunchContext
    ) -> None:
        self.folder = folder
        self.registry = registry
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        project = ProjectIndex(folder)
        self._analyzer = Analyzer(registry, Configuration(preview=True), launch, project)

    def analyse(self, name: str, text: str) -> DocumentAnalysis:
        """The analysis of a text that stands in a file of the project."""
        analysis = self._analyzer.open(self.folder / name, text)
        assert not analysis.rule_errors, "\n".join(analysis.rule_errors.values())
        return analysis

    def fixed(self, name: str, text: str, code: str, key: str | None) -> str:
        """The text after the chosen fix of every finding of the rule."""
        refused: set[str] = set()
        for _ in range(_MOST_FIXES):
            analysis = self.analyse(name, text)
            chosen = _first(analysis, code, key, refused)
            if chosen is None:
                return text
            finding, offer = chosen
            assert analysis.module is not None
            edits = edits_for(finding, offer, analysis.module, self.registry)
            assert edits is not None, f"{code}: the fix {offer.key!r} gave no edit"
            text = apply_edits(text, list(edits))
        raise AssertionError(f"{code}: fixes go on for ever")


def _first(
    analysis: DocumentAnalysis, code: str, key: str | None, refused: set[str]
) -> tuple[Finding, FixOffer] | None:
    for finding in analysis.findings:
        if finding.code != code:
            continue
        for offer in finding.fixes:
            if offer.applicability is Applicability.DISPLAY:
                continue
            if key is None or offer.key == key:
                return finding, offer
    return None


def changed_lines(before: str, after: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The lines that went and the lines that came, in order."""
    removed, added = [], []
    for line in ndiff(before.splitlines(), after.splitlines()):
        if line.startswith("- "):
            removed.append(line[2:].rstrip())
        elif line.startswith("+ "):
            added.append(line[2:].rstrip())
    return tuple(removed), tuple(added)
