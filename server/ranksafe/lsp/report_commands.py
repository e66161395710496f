"""Commands that tell of runs: where their ranks are, their reports, their history, failures read from a log.

None of them starts anything, so none asks for trust.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

from ranksafe.lsp.documents import path_of
from ranksafe.lsp.log_annotations import annotate
from ranksafe.lsp.messages import (
    LOG_ANNOTATED,
    LOG_WITHOUT_FAILURE,
    NO_RUN,
    REPORT_AT,
    RUNS_AT,
    STACKS_AT,
)
from ranksafe.lsp.options import as_mapping
from ranksafe.lsp.run_request import Refused
from ranksafe.lsp.session import Session

OPEN_REPORT: Final = "ranksafe.openReport"
SHOW_RUNS: Final = "ranksafe.showRuns"
SHOW_STACKS: Final = "ranksafe.showStacks"
ANNOTATE_FROM_LOG: Final = "ranksafe.annotateFromLog"

_Result = TypeVar("_Result")


async def open_report(session: Session, run_id: str | None = None) -> dict[str, Any]:
    """Write the report of a run, or of the project's last one, and show it."""
    from ranksafe.runs.records.kept_runs import NoSuchRun, run_named
    from ranksafe.runs.report.history_page import write_report

    folder = _folder(session)
    language = session.client.language
    try:
        run = await _apart(lambda: run_named(run_id, folder, by_folder=False))
    except NoSuchRun as error:
        raise Refused(error.message) from error
    path = await _apart(lambda: write_report(run, language))
    await session.client.show(path, REPORT_AT.filled(path=path), external=True)
    return {"report": str(path), "runId": run.run_id}


async def show_runs(
    session: Session, uri: str | None = None, options: object = None
) -> dict[str, Any]:
    """The runs of the project around a document, or around the first open folder.

    ``{"show": false}`` gives the list only, for a client that shows it itself; ``{"run": ID}`` that run alone.
    """
    from ranksafe.runs.directory import cache_directory
    from ranksafe.runs.records.kept_runs import project_of, runs_of
    from ranksafe.runs.report.history_page import write_history

    document = path_of(uri)
    folder = _folder(session) if document is None else document.parent
    runs = await _apart(lambda: runs_of(folder))
    wanted = as_mapping(options).get("run")
    language = session.client.language
    answer: dict[str, Any] = {
        "runs": [run.as_json(language) for run in runs if wanted in (None, run.run_id)]
    }
    if as_mapping(options).get("show") is not False:
        page = cache_directory() / "runs.html"
        path = await _apart(lambda: write_history(runs, project_of(folder), page, language))
        answer["page"] = str(path)
        await session.client.show(path, RUNS_AT.filled(path=path), external=True)
    return answer


async def show_stacks(session: Session, run_id: str | None = None) -> dict[str, Any]:
    """Show where every rank of a run that goes on is; of several runs, which there are, for the client to ask."""
    from ranksafe.runs.directory import cache_directory
    from ranksafe.runs.explain.locate import UserCode
    from ranksafe.runs.watch.stacks import look_at, with_files_of_here
    from ranksafe.runs.watch.stacks_text import described

    runs = session.runs.going_on()
    if not runs or (run_id is not None and run_id not in runs):
        raise Refused(NO_RUN)
    if run_id is None and len(runs) > 1:
        return {"runs": [{"runId": key, "script": str(path)} for key, path in runs.items()]}
    chosen = run_id or next(iter(runs))
    directory = cache_directory() / "runs" / chosen
    language = session.client.language

    def ask() -> Path:
        looks, edited = with_files_of_here(look_at(directory), directory)
        user_code = UserCode([Path("/")], anywhere=True)
        pieces = [sentence.in_language(language) for sentence in edited]
        pieces += ["\n".join(described(look, user_code, language)) for look in looks]
        file = directory / "stacks.txt"
        file.write_text("\n\n".join(pieces) + "\n", encoding="utf-8")
        return file

    file = await _apart(ask)
    await session.client.show(file, STACKS_AT.filled(path=file))
    return {"stacks": str(file), "runId": chosen}


async def annotate_from_log(session: Session, uri: str) -> dict[str, Any]:
    """Explain a log by its text and draw its failures on the project's files."""
    path = path_of(uri)
    if path is None:
        raise TypeError("the URI of a file is expected")
    folders = session.workspace.folders
    found = await _apart(lambda: annotate(path, folders, session.client.language))
    session.workspace.run_findings.replace(path, found.findings)
    session.publisher.show_failures()
    message = LOG_ANNOTATED if found.findings else LOG_WITHOUT_FAILURE
    values = {"file": path.name, "count": len(found.findings), "unknown": found.elsewhere}
    session.client.inform(message.filled(**values))
    return {"failures": len(found.findings), "elsewhere": found.elsewhere}


def _folder(session: Session) -> Path:
    return session.workspace.first_folder or Path.cwd()


async def _apart(work: Callable[[], _Result]) -> _Result:
    """Files are read and written on a thread of the pool: typing goes on."""
    return await asyncio.get_running_loop().run_in_executor(None, work)
