"""A project of a few files under edit: documents open in an editor, the others on disk.

The editor tells of an edit as the language server takes it over: the document itself at once, the project when the
typing has paused on a text that parses; then the open documents that may have other findings are analysed anew.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from ranksafe.checker.analysis import DocumentAnalysis
from ranksafe.checker.finding import Finding
from ranksafe.semantics.project.changes import Change
from ranksafe.semantics.project.index import ProjectIndex

from tests.checker.incremental import noisy_analyzer, parses, random_edit

Work = Callable[[], None]


@dataclass
class EditedProject:
    """Files below one folder, a long-lived index over them and the analyses of the open documents."""

    root: Path
    random: random.Random
    originals: dict[str, str]
    texts: dict[Path, str] = field(default_factory=dict)
    """What stands in the open documents."""
    told: dict[Path, str] = field(default_factory=dict)
    """What the project knows of them: the last text that parsed, or was saved."""
    analyses: dict[Path, DocumentAnalysis] = field(default_factory=dict)
    analysed: dict[Path, str] = field(default_factory=dict)
    """What each analysis has been given last; an edit may be on its way to it."""
    last: str = ""
    """What was done last."""

    def __post_init__(self) -> None:
        for name, text in self.originals.items():
            self.path(name).parent.mkdir(parents=True, exist_ok=True)
            self.path(name).write_text(text, encoding="utf-8")
        self.index = ProjectIndex(self.root)
        self.analyzer = noisy_analyzer(self.index)
        for name in self.originals:
            self.open(name)

    def path(self, name: str) -> Path:
        return self.root / name

    # -- what may happen

    def step(self) -> None:
        """One edit to one of the files, as an editor or another program makes it."""
        name = self.random.choice(list(self.originals))
        is_open = self.path(name) in self.texts
        does = self.random.choices(
            (self.type, self.restore, self.save, self.close if is_open else self.open, self.disk),
            (10, 3, 2, 1 if is_open else 6, 1 if is_open else 6),
        )[0]
        self.last = f"{does.__name__} {name}"
        does(name)

    def open(self, name: str) -> None:
        """Open what stands on disk."""
        path = self.path(name)
        text = path.read_text(encoding="utf-8")
        self.texts[path] = text
        self._tell(path, text)

        def analyse() -> None:
            self._analyse(path, text)

        self._do(path, analyse)

    def close(self, name: str) -> None:
        """Close a document; what was not saved is lost."""
        path = self.path(name)
        for known in (self.texts, self.told, self.analyses, self.analysed):
            known.pop(path, None)
        self._affect([self.index.update(path, None)])

    def type(self, name: str) -> None:
        """A random edit in a document."""
        path = self.path(name)
        if path not in self.texts:
            self.open(name)
        edit = random_edit(self.texts[path], self.random)
        self.last += f": {edit.kind} in line {edit.first + 1}"
        self._change(path, edit.text, edit.first, edit.last)

    def restore(self, name: str) -> None:
        """Undo everything."""
        path = self.path(name)
        if path in self.texts:
            self._change(path, self.originals[name], 0, self.texts[path].count("\n"))
        else:
            self.disk(name, self.originals[name])

    def save(self, name: str) -> None:
        """Write a document as it stands, parsing or not."""
        path = self.path(name)
        if path in self.texts:
            path.write_text(self.texts[path], encoding="utf-8")
            self._tell(path, self.texts[path])

    def disk(self, name: str, text: str | None = None) -> None:
        """Another program writes a file; of one that is open the editor's text goes on to count."""
        path = self.path(name)
        if text is None:
            text = random_edit(path.read_text(encoding="utf-8"), self.random).text
        path.write_text(text, encoding="utf-8")
        if path in self.texts:
            self._tell(path, self.told[path])
        else:
            self._affect([self.index.update(path, None)])

    # -- what follows from it

    def _change(self, path: Path, text: str, first: int, last: int) -> None:
        self.texts[path] = text

        def analyse() -> None:
            self.analysed[path] = text
            self.analyses[path].change(text, first, last)
            self.analyses[path].settle()

        def tell() -> None:
            if self.analyses[path].status == "complete":
                self._tell(path, text)

        self._do(path, analyse, tell)

    def _tell(self, path: Path, text: str) -> None:
        self.told[path] = text
        change = self.index.update(path, text)
        if change.summary:
            self._analyse_again(path)
        self._affect([change])

    def _affect(self, changes: list[Change]) -> None:
        for path in self.index.affected(changes, self.texts):
            self._analyse_again(path)

    def _analyse_again(self, path: Path) -> None:
        def analyse() -> None:
            # One that has not been opened yet will see the change.
            if path in self.analyses:
                self._analyse(path, self.analysed[path])

        self._do(path, analyse)

    def _analyse(self, path: Path, text: str) -> None:
        self.analysed[path] = text
        self.analyses[path] = self.analyzer.open(path, text)

    def _do(self, path: Path, work: Work, then: Work = lambda: None) -> None:
        """Do what concerns the analysis of one document, at once."""
        work()
        then()

    # -- what is compared

    def found(self) -> dict[Path, tuple[Finding, ...]]:
        """The findings of the open documents."""
        return {path: analysis.findings for path, analysis in self.analyses.items()}

    def found_afresh(self) -> dict[Path, tuple[Finding, ...]]:
        """What an editor would find that has just been started with the same documents open."""
        index = ProjectIndex(self.root)
        for path, text in self.told.items():
            index.update(path, text)
        analyzer = noisy_analyzer(index)
        found = {}
        for path, analysis in self.analyses.items():
            text = self.texts[path]
            if not parses(text):
                # What is broken is known from the edit; a fresh analysis could only guess it.
                text = analysis.text_analysed + ("\n# torch" if analysis.blanked else "")
            found[path] = analyzer.open(path, text).findings
        return found
