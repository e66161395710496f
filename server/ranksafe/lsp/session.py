"""What the server knows of its one client: plain data, and the parts that keep their own state.

A part knows those it was made with, which stand above it here, and never the session. Every handler is a function of
the session and of what the client sent.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ranksafe.lsp.analysis import Analyses
from ranksafe.lsp.checks import Checks
from ranksafe.lsp.connection import Connection
from ranksafe.lsp.forecasts import Forecasts
from ranksafe.lsp.free_gpus import FreeGpus
from ranksafe.lsp.lens_refresh import LensRefresh
from ranksafe.lsp.project_build import ProjectBuild
from ranksafe.lsp.project_updates import ProjectUpdates
from ranksafe.lsp.projects import Projects
from ranksafe.lsp.publisher import Publisher
from ranksafe.lsp.run_control import RunControl
from ranksafe.lsp.turns import Turns
from ranksafe.lsp.user_state import UserState
from ranksafe.lsp.workspace import Workspace


class Session:
    """One client from ``initialize`` to ``exit``."""

    def __init__(self, client: Connection) -> None:
        self.client = client
        self.workspace = Workspace()
        self.documents = self.workspace.documents
        self.user_state = UserState(self.workspace.options.state_directory)
        self.projects = Projects(client, self.workspace)
        self.publisher = Publisher(client, self.workspace, self.projects)
        self.lens_refresh = LensRefresh(client)
        self.free_gpus = FreeGpus(self.lens_refresh.changed)
        self.turns = Turns()
        self.analyses = Analyses(self.documents, self.projects, self.turns)
        self.checks = Checks(self.documents, self.analyses, self.publisher, self.lens_refresh)
        self.project_updates = ProjectUpdates(
            self.documents, self.projects, self.analyses, self.checks, self.turns
        )
        self.project_build = ProjectBuild(client, self.projects, self.checks)
        self.runs = RunControl(
            client,
            self.workspace.run_findings,
            self.workspace.testimonies,
            self.publisher,
            self.lens_refresh,
        )
        self.forecasts = Forecasts(
            client, self.workspace.run_findings, self.publisher, self.lens_refresh
        )
        self.rehearsed: dict[Path, Mapping[str, Any]] = {}
        """How each script was rehearsed last: the options of the command."""
        self.due_rehearsals: dict[Path, asyncio.TimerHandle] = {}
        """Saved a moment ago."""
        self.tasks: set[asyncio.Task[None]] = set()
        """What nobody waits for."""
        self.proofs: set[threading.Event] = set()
        """The proofs that go on; set: give up."""
        self.settings_known = asyncio.Event()
        """The client has been asked for the user's settings."""
        self.put_off: asyncio.TimerHandle | None = None
        """Until then changed configuration files are not read: others may change at once."""

    def end(self) -> None:
        """End what was started for the user."""
        self.analyses.end()
        self.turns.end()
        self.lens_refresh.end()
        for timer in self.due_rehearsals.values():
            timer.cancel()
        self.runs.end_all()
        self.forecasts.end_all()
        for stop in tuple(self.proofs):
            stop.set()
        self.project_build.end()
