"""Proofs that the editor asked for: the failing program of a rule and its fixed twin, run one after the other."""

from __future__ import annotations

import asyncio
import os
import threading
from typing import TYPE_CHECKING, Any

from ranksafe.lsp.messages import NO_RULE, PROOFS_MISSING, PROVE_TITLE
from ranksafe.lsp.progress import Progress
from ranksafe.lsp.run_request import Refused, require_trust

if TYPE_CHECKING:
    from pathlib import Path

    from ranksafe.lsp.server import RanksafeServer
    from ranksafe.runs.model import RunEvent
    from ranksafe.runs.proof import ProofReport


class ProofControl:
    """The proofs that go on."""

    def __init__(self, server: RanksafeServer) -> None:
        self._server = server
        self._stops: set[threading.Event] = set()

    async def prove(self, code: str) -> dict[str, Any]:
        """Run the proof of a rule and tell the outcome; the report as plain data. Raises Refused."""
        server = self._server
        require_trust(server)
        rule = server.checks.rule(code)
        if rule is None:
            raise Refused(NO_RULE.filled(code=code))
        if not rule.has_proof:
            raise Refused(PROOFS_MISSING.filled(code=code))
        interpreter = self._interpreter()
        progress = Progress(server, PROVE_TITLE.filled(code=code))
        await progress.begin()
        stop = threading.Event()
        self._stops.add(stop)
        progress.on_cancel(stop.set)
        try:
            report = await self._run(code, interpreter, progress, stop)
        except BaseException:
            progress.end("")
            raise
        finally:
            self._stops.discard(stop)
        summary = report.summary.in_language(server.language)
        progress.end(summary)
        server.inform(summary)
        return report.to_json(server.language)

    def end_all(self) -> None:
        """End every proof: the server goes away."""
        for stop in tuple(self._stops):
            stop.set()

    async def _run(
        self, code: str, interpreter: Path, progress: Progress, stop: threading.Event
    ) -> ProofReport:
        from ranksafe.runs.proof import prove

        loop = asyncio.get_running_loop()
        server = self._server

        def on_event(event: RunEvent) -> None:
            loop.call_soon_threadsafe(progress.report, event.text)

        def work() -> ProofReport:
            return prove(
                code,
                server.projects.registry,
                interpreter,
                on_event,
                language=server.language,
                should_stop=stop.is_set,
            )

        return await loop.run_in_executor(None, work)

    def _interpreter(self) -> Path:
        """The user's choice, else as for a run of a script in the first folder. Raises RunNotPossible."""
        from ranksafe.runs.interpreter import find_interpreter
        from ranksafe.runs.model import RunRequest

        server = self._server
        folder = server.first_folder()
        script = (folder or server.options.state_directory) / "proof.py"
        request = RunRequest(
            script, interpreter=server.options.python, environment=dict(os.environ)
        )
        return find_interpreter(request)
