"""Proofs that the editor asked for: the failing program of a rule and its fixed twin, run one after the other."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ranksafe.lsp.messages import NO_RULE, PROOFS_MISSING, PROVE_TITLE
from ranksafe.lsp.progress import Progress
from ranksafe.lsp.run_request import Refused, require_trust
from ranksafe.lsp.session import Session
from ranksafe.lsp.workspace import Workspace

if TYPE_CHECKING:
    from ranksafe.runs.model import RunEvent
    from ranksafe.runs.proof import ProofReport


async def prove(session: Session, code: str) -> dict[str, Any]:
    """Run the proof of a rule and tell the outcome; the report as plain data. Raises Refused."""
    require_trust(session)
    rule = session.projects.registry.by_code(code)
    if rule is None:
        raise Refused(NO_RULE.filled(code=code))
    if not rule.has_proof:
        raise Refused(PROOFS_MISSING.filled(code=code))
    interpreter = _interpreter(session.workspace)
    progress = Progress(session.client, PROVE_TITLE.filled(code=code))
    await progress.begin()
    stop = threading.Event()
    session.proofs.add(stop)
    progress.on_cancel(stop.set)
    try:
        report = await _run(session, code, interpreter, progress, stop)
    except BaseException:
        progress.end("")
        raise
    finally:
        session.proofs.discard(stop)
    progress.end(report.summary.in_language(session.client.language))
    session.client.inform(report.summary)
    return report.to_json(session.client.language)


async def _run(
    session: Session, code: str, interpreter: Path, progress: Progress, stop: threading.Event
) -> ProofReport:
    from ranksafe.runs.proof import prove

    loop = asyncio.get_running_loop()

    def on_event(event: RunEvent) -> None:
        loop.call_soon_threadsafe(progress.report, event.text)

    def work() -> ProofReport:
        return prove(
            code,
            session.projects.registry,
            interpreter,
            on_event,
            language=session.client.language,
            should_stop=stop.is_set,
        )

    return await loop.run_in_executor(None, work)


def _interpreter(workspace: Workspace) -> Path:
    """The user's choice, else as for a run of a script in the first folder. Raises RunNotPossible."""
    from ranksafe.runs.interpreter import find_interpreter
    from ranksafe.runs.model import RunRequest

    chosen = workspace.options.python
    script = (workspace.first_folder or workspace.options.state_directory) / "proof.py"
    return find_interpreter(RunRequest(script, interpreter=chosen, environment=dict(os.environ)))
