"""The server: what its parts share, and how they are put together. Read this first, then `ranksafe.lsp.checks`.

One thread does everything but runs; analysis is fast enough for that, and nothing needs a lock.
"""

from __future__ import annotations

import gc
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from ranksafe import __version__
from ranksafe.localization import Language, language_of
from ranksafe.lsp import (
    code_actions,
    code_lenses,
    commands,
    hover,
    notebooks,
    progress,
    pull,
    text_sync,
    workspace,
)
from ranksafe.lsp.checks import Checks
from ranksafe.lsp.documents import OpenDocuments
from ranksafe.lsp.lens_refresh import LensRefresh
from ranksafe.lsp.lines import PositionEncoding
from ranksafe.lsp.options import ClientOptions, read_options
from ranksafe.lsp.project_build import ProjectBuild
from ranksafe.lsp.project_updates import ProjectUpdates
from ranksafe.lsp.proofs import ProofControl
from ranksafe.lsp.publisher import Publisher
from ranksafe.lsp.run_control import RunControl
from ranksafe.lsp.run_findings import RunFinding, RunFindings
from ranksafe.lsp.user_state import UserState

if TYPE_CHECKING:
    from ranksafe.lsp.documents import Document
    from ranksafe.lsp.projects import Projects

logger = logging.getLogger(__name__)

_OWN_DOCUMENTS: Final = (
    types.TEXT_DOCUMENT_DID_OPEN,
    types.TEXT_DOCUMENT_DID_CHANGE,
    types.TEXT_DOCUMENT_DID_CLOSE,
    types.NOTEBOOK_DOCUMENT_DID_OPEN,
    types.NOTEBOOK_DOCUMENT_DID_CHANGE,
    types.NOTEBOOK_DOCUMENT_DID_CLOSE,
)
"""Handled here alone: pygls would keep a second, slower copy of every document."""


class RanksafeServer(LanguageServer):
    """The language server of ranksafe."""

    def __init__(self) -> None:
        super().__init__(
            "ranksafe",
            __version__,
            text_document_sync_kind=types.TextDocumentSyncKind.Incremental,
            notebook_document_sync=notebooks.SYNC_OPTIONS,
        )
        self.options = ClientOptions()
        self.settings = self.options.settings
        self.language: Language = "en"
        self.encoding = PositionEncoding.UTF16
        self.trusted = False
        self.documents = OpenDocuments()
        self.run_findings = RunFindings()
        self.progresses: dict[str, progress.Progress] = {}
        self.user_state = UserState(self.options.state_directory)
        self.checks = Checks(self)
        self.project_updates = ProjectUpdates(self)
        self.project_build = ProjectBuild(self)
        self.publisher = Publisher(self)
        self.lens_refresh = LensRefresh(self)
        self.runs = RunControl(self)
        self.proofs = ProofControl(self)
        self.workspace_events = workspace.WorkspaceEvents(self)
        self._projects: Projects | None = None
        for method in _OWN_DOCUMENTS:
            self.protocol.fm.builtin_features.pop(method)

    @property
    def projects(self) -> Projects:
        """The analyzers. The analysis is imported at first use: the client waits for the initialize reply."""
        if self._projects is None:
            from ranksafe.lsp.projects import Projects

            self._projects = Projects(self)
        return self._projects

    # -- life

    def configure(self, params: types.InitializeParams) -> None:
        """Take over what the client says of itself."""
        self.options = read_options(params.initialization_options)
        self.settings = self.options.settings
        self.language = language_of(self.options.locale or params.locale)
        self.trusted = self.options.trusted
        self.user_state = UserState(self.options.state_directory)
        self.encoding = PositionEncoding(_encoding_name(self.workspace.position_encoding))
        self.publisher.client_pulls = pull.client_can_pull(params.capabilities)
        if self.publisher.client_pulls:
            pull.register(self)

    def ready(self) -> None:
        """Everything that stays was made: leave it out of every later garbage collection."""
        _ = self.projects.registry
        gc.collect()
        gc.freeze()

    def end(self) -> None:
        """End what was started for the user."""
        self.lens_refresh.end()
        self.runs.end_all()
        self.proofs.end_all()
        self.project_build.end()

    def set_trusted(self, trusted: bool) -> None:
        """The user trusts the workspace, or no longer does."""
        self.workspace_events.trust_changed(trusted)

    # -- places

    def path_of(self, uri: object) -> Path | None:
        """The file behind a URI; None for one that is no file."""
        path = to_fs_path(uri) if isinstance(uri, str) else None
        return Path(path) if path else None

    def folders(self) -> list[Path]:
        """The open folders."""
        uris = [folder.uri for folder in self.workspace.folders.values()]
        if not uris and self.workspace.root_uri:
            uris = [self.workspace.root_uri]
        return [path for path in map(self.path_of, uris) if path is not None]

    def first_folder(self) -> Path | None:
        """The first open folder."""
        return next(iter(self.folders()), None)

    def folder_of(self, path: Path | None) -> Path | None:
        """The innermost open folder around a file."""
        if path is None:
            return None
        around = [folder for folder in self.folders() if path.is_relative_to(folder)]
        return max(around, key=lambda folder: len(folder.parts), default=None)

    def is_pulled(self, document: Document) -> bool:
        """Whether the client asks for this document's diagnostics itself."""
        return self.publisher.client_pulls and document.uris == (document.uri,)

    def unopened_failures(self) -> list[RunFinding]:
        """The failures of runs in files that are not open."""
        open_paths = {document.path for document in self.documents}
        return [one for one in self.run_findings.all() if one.path not in open_paths]

    # -- words

    def inform(self, message: str) -> None:
        """Tell the user."""
        self._show(message, types.MessageType.Info)

    def warn(self, message: str) -> None:
        """Tell the user that something is missing or wrong."""
        self._show(message, types.MessageType.Warning)

    def log(self, message: str) -> None:
        """Write into the client's log."""
        self.window_log_message(types.LogMessageParams(types.MessageType.Info, message))

    def lenses_changed(self) -> None:
        """Have the client ask for code lenses again, where it can be told to."""
        self.lens_refresh.changed()

    def report_server_error(self, error: Exception, source: Any) -> None:  # noqa: ARG002
        """A defect of ours: for the log, not for a popup at every key."""
        logger.error("%s", error, exc_info=error)

    def _show(self, message: str, kind: types.MessageType) -> None:
        self.window_show_message(types.ShowMessageParams(kind, message))


def create_server() -> RanksafeServer:
    """A server with every feature registered."""
    server = RanksafeServer()

    @server.feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        server.configure(params)

    @server.feature(types.SHUTDOWN)
    def shutdown(_params: None) -> None:
        server.end()

    for feature in (
        text_sync,
        notebooks,
        code_actions,
        code_lenses,
        hover,
        commands,
        progress,
        workspace,
    ):
        feature.register(server)
    return server


def _encoding_name(encoding: object) -> str:
    return str(getattr(encoding, "value", encoding) or PositionEncoding.UTF16.value)
