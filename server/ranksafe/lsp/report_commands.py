"""Commands about runs that are over: their reports, their history, failures read from a log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ranksafe.lsp.log_annotations import annotate
from ranksafe.lsp.messages import LOG_ANNOTATED, LOG_WITHOUT_FAILURE, REPORT_AT, RUNS_AT
from ranksafe.lsp.options import as_mapping
from ranksafe.lsp.run_request import Refused
from ranksafe.lsp.show import show

if TYPE_CHECKING:
    from ranksafe.lsp.server import RanksafeServer

OPEN_REPORT: Final = "ranksafe.openReport"
SHOW_RUNS: Final = "ranksafe.showRuns"
ANNOTATE_FROM_LOG: Final = "ranksafe.annotateFromLog"

_Result = TypeVar("_Result")


class ReportCommands:
    """What each command does. None of them starts anything, so none asks for trust."""

    def __init__(self, server: RanksafeServer) -> None:
        self._server = server

    async def open_report(self, run_id: str | None = None) -> dict[str, Any]:
        """Write the report of a run, or of the project's last one, and show it."""
        from ranksafe.runs.records.kept_runs import NoSuchRun, run_named
        from ranksafe.runs.report.history_page import write_report

        folder = self._folder()
        language = self._server.language
        try:
            run = await _apart(lambda: run_named(run_id, folder, by_folder=False))
        except NoSuchRun as error:
            raise Refused(error.message) from error
        path = await _apart(lambda: write_report(run, language))
        if not await show(self._server, path, external=True):
            self._server.inform(REPORT_AT.filled(path=path).in_language(language))
        return {"report": str(path), "runId": run.run_id}

    async def show_runs(self, uri: str | None = None, options: object = None) -> dict[str, Any]:
        """The runs of the project around a document, or around the first open folder.

        ``{"show": false}`` gives the list only, for a client that shows it itself.
        """
        from ranksafe.runs.directory import cache_directory
        from ranksafe.runs.records.kept_runs import project_of, runs_of
        from ranksafe.runs.report.history_page import write_history

        document = self._server.path_of(uri)
        folder = self._folder() if document is None else document.parent
        runs = await _apart(lambda: runs_of(folder))
        answer: dict[str, Any] = {"runs": [run.as_json() for run in runs]}
        if as_mapping(options).get("show") is not False:
            language, page = self._server.language, cache_directory() / "runs.html"
            path = await _apart(lambda: write_history(runs, project_of(folder), page, language))
            answer["page"] = str(path)
            if not await show(self._server, path, external=True):
                self._server.inform(RUNS_AT.filled(path=path).in_language(language))
        return answer

    async def annotate_from_log(self, uri: str) -> dict[str, Any]:
        """Explain a log by its text and draw its failures on the project's files."""
        path = self._server.path_of(uri)
        if path is None:
            raise TypeError("the URI of a file is expected")
        server, folders = self._server, self._server.folders()
        found = await _apart(lambda: annotate(path, folders, server.language))
        server.run_findings.replace(path, found.findings)
        server.publisher.show_changed(server.documents)
        server.publisher.show_unopened(server.unopened_failures())
        message = LOG_ANNOTATED if found.findings else LOG_WITHOUT_FAILURE
        values = {"file": path.name, "count": len(found.findings), "unknown": found.elsewhere}
        server.inform(message.filled(**values).in_language(server.language))
        return {"failures": len(found.findings), "elsewhere": found.elsewhere}

    def _folder(self) -> Path:
        return self._server.first_folder() or Path.cwd()


def handlers(server: RanksafeServer) -> dict[str, Callable[..., Any]]:
    """By command id."""
    commands = ReportCommands(server)
    return {
        OPEN_REPORT: commands.open_report,
        SHOW_RUNS: commands.show_runs,
        ANNOTATE_FROM_LOG: commands.annotate_from_log,
    }


async def _apart(work: Callable[[], _Result]) -> _Result:
    """Files are read and written on a thread of the pool: typing goes on."""
    return await asyncio.get_running_loop().run_in_executor(None, work)
