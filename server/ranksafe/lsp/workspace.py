"""What the client has open, and under which settings: plain data that every feature reads."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ranksafe.checker.configuration import AnalysisKeys
from ranksafe.lsp.documents import OpenDocuments
from ranksafe.lsp.options import ClientOptions
from ranksafe.lsp.run_findings import RunFinding, RunFindings
from ranksafe.lsp.testimony import Testimonies


@dataclass(slots=True)
class Workspace:
    """The folders, the documents and the settings of one client."""

    options: ClientOptions = field(default_factory=ClientOptions)
    settings: AnalysisKeys = field(default_factory=AnalysisKeys)
    trusted: bool = False
    folders: list[Path] = field(default_factory=list)
    documents: OpenDocuments = field(default_factory=OpenDocuments)
    run_findings: RunFindings = field(default_factory=RunFindings)
    testimonies: Testimonies = field(default_factory=Testimonies)

    @property
    def first_folder(self) -> Path | None:
        """The first open folder."""
        return next(iter(self.folders), None)

    def folder_of(self, path: Path | None) -> Path | None:
        """The innermost open folder around a file."""
        if path is None:
            return None
        around = [folder for folder in self.folders if path.is_relative_to(folder)]
        return max(around, key=lambda folder: len(folder.parts), default=None)

    def unopened_failures(self) -> list[RunFinding]:
        """The failures of runs in files that are not open."""
        open_paths = {document.path for document in self.documents}
        return [one for one in self.run_findings.all() if one.path not in open_paths]
