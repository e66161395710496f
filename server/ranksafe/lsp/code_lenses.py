"""Code lenses over a script's entry: start a run, cancel it, read how it ended.

Every lens carries its command from the start, so that a client can draw it without asking again; what takes longer to
know, the number of free GPUs, comes into its title later. The order stays: what is clicked without looking must not
move.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lsprotocol import types

from ranksafe.localization import Translated
from ranksafe.lsp import commands, report_commands
from ranksafe.lsp.analysis import entry_of
from ranksafe.lsp.documents import Document, TextDocument, path_of
from ranksafe.lsp.fit_commands import FIT
from ranksafe.lsp.messages import (
    CANCEL_FIT_LENS,
    CANCEL_LENS,
    ENDED_LENS,
    FIT_LENS,
    FIT_LENS_ON,
    FIT_LOG_LENS,
    FIT_REPORT_LENS,
    FIT_SEARCH_LENS,
    LOG_LENS,
    OUTCOMES,
    PASSED_LENS,
    REHEARSAL_PASSED_LENS,
    REHEARSE_LENS,
    RUN_ENDED,
    RUN_LENS,
    RUN_LENS_CPU,
    RUN_LENS_TARGET,
    RUN_LENS_UNCOUNTED,
    SMOKE_LENS,
)
from ranksafe.lsp.options import as_mapping
from ranksafe.lsp.run_request import SMOKE_STEPS
from ranksafe.lsp.session import Session
from ranksafe.lsp.targets import is_rehearsal, rehearsal_target, simulated_gpus
from ranksafe.lsp.user_state import DEFAULT_TARGET
from ranksafe.source.position import Position, Range

if TYPE_CHECKING:
    from ranksafe.runs.model import RunResult

OPTIONS: Final = types.CodeLensOptions(resolve_provider=True)
CPU_RANKS: Final = 2
CAN_REHEARSE: Final = sys.platform == "linux"
"""Simulated GPUs are there for Linux; elsewhere the lens would lead to a refusal only."""


async def code_lenses(session: Session, params: types.CodeLensParams) -> list[types.CodeLens]:
    """``textDocument/codeLens``: none, as each starts a process, until the workspace is trusted."""
    document = await session.analyses.current(params.text_document.uri)
    if not session.workspace.trusted:
        return []
    return _over_entry(session, document) if isinstance(document, TextDocument) else []


def _over_entry(session: Session, document: TextDocument) -> list[types.CodeLens]:
    path = document.path
    entry = entry_of(document)
    if entry is None or path is None or session.workspace.folder_of(path) is None:
        return []
    if session.runs.running(path) is not None:
        kinds: tuple[str, ...] = ("cancel",)
    elif session.forecasts.running(path) is not None:
        kinds = ("cancel-fit",)
    else:
        about_last = () if session.runs.last_result(path) is None else ("report", "log")
        kinds = (*_starters(session, path), *about_last, *_fit_kinds(session, document))
    line = entry.range.start.line
    return [_lens(session, document, line, {"kind": kind, "uri": document.uri}) for kind in kinds]


def _starters(session: Session, path: Path) -> tuple[str, ...]:
    """The ways to start a script."""
    target = session.user_state.of(path).target
    if is_rehearsal(target):
        return ("rehearse",)
    if not CAN_REHEARSE:
        return ("run", "smoke")
    return ("run", "rehearse", "smoke")


def _fit_kinds(session: Session, document: TextDocument) -> tuple[str, ...]:
    """Last, because their titles grow: what is clicked without looking stays where it is."""
    if not CAN_REHEARSE:
        return ()
    answer = session.forecasts.answer(document.path)
    if answer is None:
        return ("fit",)
    if answer.forecast is None:
        return ("fit",) if answer.is_well else ("fit", "fit-log")
    is_open = not answer.is_searched and not answer.is_well and answer.holds_for(document.text)
    return ("fit", "fit-search", "fit-report") if is_open else ("fit", "fit-report")


def _lens(session: Session, document: Document, line: int, data: dict[str, Any]) -> types.CodeLens:
    start = Position(line, 0)
    place = document.locate(Range(start, start)).range
    return types.CodeLens(range=place, data=data, command=_command_of(session, data))


async def resolve(session: Session, lens: types.CodeLens) -> types.CodeLens:
    """``codeLens/resolve``: the title and command of this moment, with a fresh count of GPUs where it names one."""
    data = as_mapping(lens.data)
    if data.get("kind") == "run":
        await session.free_gpus.wait()
    lens.command = _command_of(session, data)
    return lens


def _command_of(session: Session, data: Mapping[str, Any]) -> types.Command:
    uri, kind = data.get("uri"), data.get("kind")
    if not isinstance(uri, str):
        uri = None
    if kind == "run":
        return _run_command(session, uri)
    if kind == "rehearse":
        target = rehearsal_target(_target_of(session, uri), {})
        title = REHEARSE_LENS.filled(count=simulated_gpus(target))
        return _command(session, title, commands.REHEARSE, uri)
    if kind == "smoke":
        title = SMOKE_LENS.filled(steps=SMOKE_STEPS)
        return _command(session, title, commands.SMOKE_RUN, uri)
    if kind in ("fit", "fit-search", "fit-log", "fit-report", "cancel-fit"):
        return _about_fit(session, kind, uri)
    return _about_run(session, kind, uri)


def _about_fit(session: Session, kind: str, uri: Any) -> types.Command:
    path = path_of(uri)
    if kind == "cancel-fit":
        name = session.forecasts.running(path)
        return _command(session, CANCEL_FIT_LENS, commands.CANCEL_RUN, name)
    if kind == "fit-search":
        return _command(session, FIT_SEARCH_LENS, FIT, uri, {"search": True})
    answer, document = session.forecasts.answer(path), session.documents.get(uri)
    if answer is not None and answer.result is not None:
        if kind == "fit-log":
            return _command(session, FIT_LOG_LENS, commands.OPEN_LOG, answer.result.run_id)
        if kind == "fit-report":
            return _command(
                session, FIT_REPORT_LENS, report_commands.OPEN_REPORT, answer.result.run_id
            )
    text = document.text if isinstance(document, TextDocument) else ""
    title = None if answer is None else answer.title(text)
    return _command(session, title or _fit_question(session, path), FIT, uri)


def _fit_question(session: Session, path: Path | None) -> Translated:
    devices = None if path is None else session.user_state.of(path).fit
    if devices is None:
        return FIT_LENS
    return FIT_LENS_ON.filled(count=devices.gpus, model=devices.model.upper())


def _about_run(session: Session, kind: object, uri: Any) -> types.Command:
    path = path_of(uri)
    last = session.runs.last_result(path) if path is not None else None
    run_id = None if last is None else last.run_id
    if kind == "report" and last is not None:
        return _command(session, _outcome(last), report_commands.OPEN_REPORT, run_id)
    if kind == "log":
        return _command(session, LOG_LENS, commands.OPEN_LOG, run_id)
    return _command(session, CANCEL_LENS, commands.CANCEL_RUN, session.runs.running(path) or None)


def _outcome(result: RunResult) -> Translated:
    seconds = round(result.seconds)
    if result.outcome.value != "succeeded":
        outcome = OUTCOMES.get(result.outcome.value, RUN_ENDED)
        return ENDED_LENS.filled(outcome=outcome, seconds=seconds)
    if is_rehearsal(result.target):
        gpus = simulated_gpus(result.target)
        return REHEARSAL_PASSED_LENS.filled(count=gpus, seconds=seconds)
    return PASSED_LENS.filled(count=len(result.ranks), seconds=seconds)


def _target_of(session: Session, uri: Any) -> str:
    path = path_of(uri)
    return DEFAULT_TARGET if path is None else session.user_state.of(path).target


def _run_command(session: Session, uri: Any) -> types.Command:
    target = _target_of(session, uri)
    if target != DEFAULT_TARGET:
        title = RUN_LENS_TARGET.filled(target=target)
        return _command(session, title, commands.RUN, uri)
    count = session.free_gpus.known()
    if count is None:
        return _command(session, RUN_LENS_UNCOUNTED, commands.RUN, uri)
    if count:
        title = RUN_LENS.filled(count=count)
        return _command(session, title, commands.RUN, uri)
    title = RUN_LENS_CPU.filled(count=CPU_RANKS)
    return _command(session, title, commands.RUN, uri, {"cpuRanks": CPU_RANKS})


def _command(session: Session, title: Translated, name: str, *arguments: Any) -> types.Command:
    given = [argument for argument in arguments if argument is not None]
    text = title.in_language(session.client.language)
    return types.Command(title=text, command=name, arguments=given)
