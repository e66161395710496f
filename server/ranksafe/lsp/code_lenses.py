"""Code lenses: start, cancel and read a run over a script's entry, prove a rule over its finding.

Every lens carries its command from the start, so that a client can draw it without asking again; what takes longer to
know, the number of free GPUs, comes into its title later.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lsprotocol import types

from ranksafe.lsp import commands, report_commands
from ranksafe.lsp.documents import Document, TextDocument
from ranksafe.lsp.free_gpus import FreeGpus
from ranksafe.lsp.messages import (
    CANCEL_LENS,
    LOG_LENS,
    PROVE_LENS,
    REHEARSE_LENS,
    REPORT_LENS,
    RUN_LENS,
    RUN_LENS_CPU,
    RUN_LENS_TARGET,
    RUN_LENS_UNCOUNTED,
    SMOKE_LENS,
)
from ranksafe.lsp.options import as_mapping
from ranksafe.lsp.run_request import SMOKE_STEPS, is_rehearsal, rehearsal_target
from ranksafe.lsp.user_state import DEFAULT_TARGET
from ranksafe.source.position import Position, Range

if TYPE_CHECKING:
    from ranksafe.lsp.server import RanksafeServer

CPU_RANKS: Final = 2
CAN_REHEARSE: Final = sys.platform == "linux"
"""Simulated GPUs are there for Linux; elsewhere the lens would lead to a refusal only."""


class Lenses:
    """Builds and resolves lenses."""

    def __init__(self, server: RanksafeServer) -> None:
        self._server = server
        self._gpus = FreeGpus(server.lenses_changed)

    def of(self, document: Document, uri: str) -> list[types.CodeLens]:
        """The lenses of a file or notebook cell; none, as each starts a process, until the workspace is trusted."""
        if not self._server.trusted:
            return []
        lenses = self._over_entry(document) if isinstance(document, TextDocument) else []
        return lenses + self._over_findings(document, uri)

    def _over_entry(self, document: TextDocument) -> list[types.CodeLens]:
        path = document.path
        entry = self._server.checks.entry_of(document)
        if entry is None or path is None or self._server.folder_of(path) is None:
            return []
        if self._server.runs.running(path) is not None:
            kinds: tuple[str, ...] = ("cancel",)
        else:
            kinds = (*self._starters(path), *self._log(path))
        line = entry.range.start.line
        return [self._lens(document, line, {"kind": kind, "uri": document.uri}) for kind in kinds]

    def _starters(self, path: Path) -> tuple[str, ...]:
        """The ways to start a script; a rehearsal first where there is no CUDA device to run on."""
        target = self._server.user_state.of(path).target
        if is_rehearsal(target):
            return ("rehearse",)
        if not CAN_REHEARSE:
            return ("run", "smoke")
        if target == DEFAULT_TARGET and self._gpus.known() == 0:
            return ("rehearse", "run", "smoke")
        return ("run", "rehearse", "smoke")

    def _log(self, path: Path) -> tuple[str, ...]:
        return () if self._server.runs.last_log(path) is None else ("report", "log")

    def _lens(self, document: Document, line: int, data: dict[str, Any]) -> types.CodeLens:
        start = Position(line, 0)
        place = document.locate(Range(start, start)).range
        return types.CodeLens(range=place, data=data, command=self._command_of(data))

    def _over_findings(self, document: Document, uri: str) -> list[types.CodeLens]:
        lenses: dict[tuple[int, str], types.CodeLens] = {}
        for finding in document.findings:
            if document.locate(finding.range).uri != uri:
                continue
            rule = self._server.checks.rule(finding.code)
            if rule is not None and rule.has_proof:
                line = finding.range.start.line
                data = {"kind": "prove", "uri": uri, "code": finding.code}
                lenses.setdefault((line, finding.code), self._lens(document, line, data))
        return list(lenses.values())

    async def resolve(self, lens: types.CodeLens) -> types.CodeLens:
        """Give a lens the title and command of this moment, with a fresh count of GPUs where it names one."""
        data = as_mapping(lens.data)
        if data.get("kind") == "run":
            await self._gpus.wait()
        lens.command = self._command_of(data)
        return lens

    def _command_of(self, data: Mapping[str, Any]) -> types.Command:
        uri, kind = data.get("uri"), data.get("kind")
        if kind == "run":
            return self._run_command(uri)
        if kind == "rehearse":
            return self._rehearse_command(uri)
        if kind == "smoke":
            title = SMOKE_LENS.filled(steps=SMOKE_STEPS)
            return self._command(title.in_language, commands.SMOKE_RUN, uri)
        if kind == "prove":
            code = data.get("code")
            title = PROVE_LENS.filled(code=code)
            return self._command(title.in_language, commands.PROVE, code)
        return self._about_run(kind, uri)

    def _about_run(self, kind: object, uri: Any) -> types.Command:
        path = self._server.path_of(uri)
        run_id = self._server.runs.last_log(path) if path is not None else None
        if kind == "report":
            return self._command(REPORT_LENS.in_language, report_commands.OPEN_REPORT, run_id)
        if kind == "log":
            return self._command(LOG_LENS.in_language, commands.OPEN_LOG, run_id)
        return self._command(
            CANCEL_LENS.in_language, commands.CANCEL_RUN, self._server.runs.running(path) or None
        )

    def _rehearse_command(self, uri: Any) -> types.Command:
        target = rehearsal_target(self._target_of(uri), {})
        title = REHEARSE_LENS.filled(count=target.rpartition(":")[2])
        return self._command(title.in_language, commands.REHEARSE, uri)

    def _target_of(self, uri: Any) -> str:
        path = self._server.path_of(uri)
        return DEFAULT_TARGET if path is None else self._server.user_state.of(path).target

    def _run_command(self, uri: Any) -> types.Command:
        target = self._target_of(uri)
        if target != DEFAULT_TARGET:
            title = RUN_LENS_TARGET.filled(target=target)
            return self._command(title.in_language, commands.RUN, uri)
        count = self._gpus.known()
        if count is None:
            return self._command(RUN_LENS_UNCOUNTED.in_language, commands.RUN, uri)
        if count:
            title = RUN_LENS.filled(count=count)
            return self._command(title.in_language, commands.RUN, uri)
        title = RUN_LENS_CPU.filled(count=CPU_RANKS)
        return self._command(title.in_language, commands.RUN, uri, {"cpuRanks": CPU_RANKS})

    def _command(self, title: Any, name: str, *arguments: Any) -> types.Command:
        given = [argument for argument in arguments if argument is not None]
        return types.Command(title=title(self._server.language), command=name, arguments=given)


def register(server: RanksafeServer) -> None:
    """Answer ``textDocument/codeLens`` and ``codeLens/resolve``."""
    lenses = Lenses(server)

    @server.feature(types.TEXT_DOCUMENT_CODE_LENS, types.CodeLensOptions(resolve_provider=True))
    def code_lenses(params: types.CodeLensParams) -> list[types.CodeLens]:
        uri = params.text_document.uri
        document = server.documents.get(uri)
        if document is None:
            return []
        server.checks.ensure(document)
        return lenses.of(document, uri)

    @server.feature(types.CODE_LENS_RESOLVE)
    async def resolve(params: types.CodeLens) -> types.CodeLens:
        return await lenses.resolve(params)
