"""A script that was rehearsed is rehearsed again when it, or a file that it imports, is saved.

In the background and at the lowest priority; the next save ends it. What is unclear, such as other files that are not
saved yet, waits for that next save.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Final

from pygls.uris import from_fs_path

from ranksafe.lsp.messages import CANNOT_RUN
from ranksafe.lsp.run_request import Refused, request_for
from ranksafe.lsp.session import Session

_QUIET_SECONDS: Final = 0.3
"""Editors save several files at once."""


def saved(session: Session, path: Path | None) -> None:
    """A file was saved: rehearse what it has a part in, unless the user wants none of it."""
    wanted = session.workspace.options.rehearse_on_save and session.workspace.trusted
    if path is None or not wanted:
        return
    for script in session.rehearsed:
        if script == path or imports(session, script, path):
            session.runs.cancel_background(script)
            _cancel_due(session, script)
            session.due_rehearsals[script] = asyncio.get_running_loop().call_later(
                _QUIET_SECONDS, _start, session, script
            )


def imports(session: Session, script: Path, path: Path) -> bool:
    """Whether a script imports a file, directly or not."""
    return any(path in index.closure(script) for index in session.projects.indexes_of(path))


def _cancel_due(session: Session, script: Path) -> None:
    timer = session.due_rehearsals.pop(script, None)
    if timer is not None:
        timer.cancel()


def _start(session: Session, script: Path) -> None:
    session.due_rehearsals.pop(script, None)
    task = asyncio.ensure_future(_rehearse(session, script))
    session.tasks.add(task)
    task.add_done_callback(session.tasks.discard)


async def _rehearse(session: Session, script: Path) -> None:
    from ranksafe.runs.errors import RunCancelled, RunNotPossible

    try:
        request = request_for(session, from_fs_path(str(script)) or "", session.rehearsed[script])
        await session.runs.start(replace(request, in_background=True))
    except (Refused, RunNotPossible) as error:
        reason = CANNOT_RUN.filled(reason=error.message)
        session.client.log(f"{script.name}: {reason.in_language(session.client.language)}")
    except RunCancelled:
        return
