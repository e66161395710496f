"""One file checked: what its findings depend on, what keeps it from being checked, and its result."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from ranksafe.checker.analysis import RELEVANT, Analyzer, DocumentAnalysis
from ranksafe.checker.comments import MARKER
from ranksafe.checker.configuration import Configuration
from ranksafe.checker.finding import Finding, Level
from ranksafe.checker.registry import Registry
from ranksafe.cli.options import AnalysisOptions
from ranksafe.cli.reading import SourceFile, UnreadableSource, decode_source
from ranksafe.cli.results import FileResult, Repair, Reported
from ranksafe.fixes.apply import module_of
from ranksafe.fixes.build import edits_for
from ranksafe.fixes.newer_syntax import is_newer_syntax
from ranksafe.launch.context import LaunchContext
from ranksafe.localization import Translated
from ranksafe.semantics.facts import OF_SEVERAL_PROCESSES
from ranksafe.semantics.project.files import read_text
from ranksafe.semantics.project.index import ProjectIndex
from ranksafe.semantics.project.summary_store import Batch, projects_folder
from ranksafe.source.notebook import is_notebook
from ranksafe.source.syntax_errors import syntax_problem

_TEXTS_KEPT: Final = 500
"""Of a project's other files, which many files ask about: some ten megabytes."""
_RELEVANT = re.compile(f"{RELEVANT.pattern}|{MARKER}".encode("ascii"))

SYNTAX_ERROR = "syntax-error"
"""Stands where a rule's code stands; it can be neither selected nor ignored."""
_SYNTAX_ERROR = Translated("does not parse: {reason}", "无法解析：{reason}")
_NEWER = Translated(
    "newer syntax than that of Python {version}, with which ranksafe runs: {reason}",
    "语法比运行 ranksafe 的 Python {version} 更新：{reason}",
)
_REST_CHECKED = Translated(
    "{problem}; the file was checked without these statements",
    "{problem}；检查该文件时跳过了这些语句",
)
_NOTHING_CHECKED = Translated("{problem}; the file was not checked", "{problem}；未检查该文件")


@dataclass(frozen=True, slots=True)
class Context:
    """All that a file's findings depend on besides its text."""

    configuration: Configuration
    launch: LaunchContext
    root: Path
    """The project's folder: its other files may matter."""

    @property
    def key(self) -> str:
        """The same for contexts that give the same findings."""
        launch = self.launch
        versions = sorted(launch.versions.items())
        return (
            f"{self.configuration!r} {launch.gpus} {launch.launcher.value} {versions} {self.root}"
        )


def context_of(path: Path, options: AnalysisOptions) -> Context:
    """The context of a file."""
    root = options.root_of(path)
    return Context(options.configuration_of(path), options.launch_of(path), root)


@dataclass(frozen=True, slots=True)
class Job:
    """One file to analyse."""

    path: Path
    data: bytes
    context: Context


class Checker:
    """Checks files in this process; makes one analyzer for each context.

    ``keeps``: whether what is found out about a project is kept for the next time. ``at_rest``: nobody writes into the
    files meanwhile, so that each is read once.
    """

    def __init__(
        self, registry: Registry, *, with_edits: bool, keeps: bool = False, at_rest: bool = False
    ) -> None:
        self.registry = registry
        self.at_rest = at_rest
        self.with_edits = with_edits
        self.keeps = keeps
        self._stores = projects_folder(os.environ) if keeps else None
        self._analyzers: dict[str, Analyzer] = {}
        self._projects: dict[Path, ProjectIndex] = {}

    def analyse(self, path: Path | None, text: str, context: Context) -> DocumentAnalysis:
        """The analysis of one text."""
        key = context.key
        analyzer = self._analyzers.get(key)
        if analyzer is None:
            project = self._project(context.root)
            analyzer = Analyzer(self.registry, context.configuration, context.launch, project)
            self._analyzers[key] = analyzer
        return analyzer.open(path, text)

    def _project(self, root: Path) -> ProjectIndex:
        if root not in self._projects:
            read = lru_cache(maxsize=_TEXTS_KEPT)(read_text) if self.at_rest else read_text
            self._projects[root] = ProjectIndex(root, read, store_folder=self._stores)
        return self._projects[root]

    def look_ahead(self, roots: Iterable[Path]) -> None:
        """Import the rules, and find out about projects what nearly every file asks, before other processes take this
        one over."""
        _ = self.registry.rules
        for root in roots:
            project = self._project(root)
            project.trains_with_trainer("")
            for word in OF_SEVERAL_PROCESSES:
                project.users_mention(root, word)

    def found_out(self) -> dict[Path, Batch]:
        """What was found out about projects since this was asked last, for another checker to keep."""
        batches = {root: project.store.drain() for root, project in self._projects.items()}
        return {root: batch for root, batch in batches.items() if batch is not None}

    def take_over(self, batches: Mapping[Path, Batch]) -> None:
        """Add what another checker has found out."""
        for root, batch in batches.items():
            self._project(root).store.add(batch)

    def keep(self) -> None:
        """Write what was found out for the next time."""
        for project in self._projects.values():
            project.store.flush()

    def check(self, job: Job) -> FileResult:
        """The result for one file."""
        try:
            source = decode_source(job.path, job.data)
        except UnreadableSource as error:
            return FileResult(job.path, problem=error.message)
        return self.check_source(source, job.context)

    def check_source(self, source: SourceFile, context: Context) -> FileResult:
        """The result for a text that stands, or will stand, in its file."""
        analysis = self.analyse(source.path, source.text, context)
        reported = [self._reported(finding, analysis) for finding in analysis.findings]
        error = syntax_error(analysis)
        if error is not None:
            reported.append(Reported(error))
            reported.sort(key=lambda item: item.finding.range)
        result = FileResult(
            source.path,
            tuple(reported),
            given_up=analysis.given_up,
            failed_rules=tuple(
                (code, _error_and_place(error)) for code, error in analysis.rule_errors.items()
            ),
            cells=source.cells or (),
        )
        analysis.close()
        return result

    def _reported(self, finding: Finding, analysis: DocumentAnalysis) -> Reported:
        if not self.with_edits or not finding.fixes:
            return Reported(finding)
        offer = finding.fixes[0]
        edits = edits_for(finding, offer, module_of(analysis), self.registry)
        return Reported(finding, Repair(offer, edits or ()))


def _error_and_place(traceback: str) -> str:
    *_, (file, line) = re.findall(r'^  File "(.+)", line (\d+)', traceback, re.MULTILINE)
    return f"{traceback.strip().splitlines()[-1]} ({file}:{line})"


def is_relevant(path: Path, data: bytes) -> bool:
    """Whether a file's content can have findings at all; asked before it is even decoded."""
    return is_notebook(path) or _RELEVANT.search(data) is not None


def syntax_error(analysis: DocumentAnalysis) -> Finding | None:
    """What keeps a file from being checked as a whole, as a finding; None where all of it was checked."""
    problem = None if analysis.status == "complete" else syntax_problem(analysis.source.text)
    if problem is None:
        return None
    is_newer = not problem.is_depth and is_newer_syntax(analysis.source.text)
    said = (_NEWER if is_newer else _SYNTAX_ERROR).filled(
        version=f"{sys.version_info.major}.{sys.version_info.minor}", reason=problem.reason
    )
    left_out = _NOTHING_CHECKED if analysis.status == "stale" else _REST_CHECKED
    level = Level.INFORMATION if is_newer else Level.ERROR
    return Finding(SYNTAX_ERROR, SYNTAX_ERROR, level, left_out.filled(problem=said), problem.range)
