"""``workspace/executeCommand``: every command of ranksafe, registered once, here.

A command that cannot be carried out says why in a message and answers ``{"refused": reason}``: an error response would
be shown by some clients as a defect of the server.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final

from ranksafe.lsp.debugging import DEBUG_RANK, debug_rank
from ranksafe.lsp.fit_commands import FIT, SET_FIT_DEVICES, fit, set_fit_devices
from ranksafe.lsp.launch_command import LAUNCH_COMMAND, launch_command
from ranksafe.lsp.messages import (
    CANNOT_RUN,
    CLUSTERS_AT,
    LOG_AT,
    NO_LOG,
    NO_RULE,
    NO_RUN,
    PAGE_AT,
    WRONG_ARGUMENTS,
)
from ranksafe.lsp.options import as_mapping
from ranksafe.lsp.proofs import prove
from ranksafe.lsp.report_commands import (
    ANNOTATE_FROM_LOG,
    OPEN_REPORT,
    SHOW_RUNS,
    SHOW_STACKS,
    annotate_from_log,
    open_report,
    show_runs,
    show_stacks,
)
from ranksafe.lsp.run_request import Refused, check_target, request_for, require_trust, script_of
from ranksafe.lsp.session import Session
from ranksafe.lsp.targets import is_rehearsal, rehearsal_target
from ranksafe.lsp.workspace_events import set_trusted

RUN: Final = "ranksafe.run"
SMOKE_RUN: Final = "ranksafe.smokeRun"
REHEARSE: Final = "ranksafe.rehearse"
PROVE: Final = "ranksafe.prove"
CANCEL_RUN: Final = "ranksafe.cancelRun"
SET_ARGUMENTS: Final = "ranksafe.setArguments"
SET_TARGET: Final = "ranksafe.setTarget"
ADD_TARGET: Final = "ranksafe.addTarget"
SET_CONFIG_FILE: Final = "ranksafe.setConfigFile"
TRUST_WORKSPACE: Final = "ranksafe.trustWorkspace"
OPEN_LOG: Final = "ranksafe.openLog"
OPEN_RULE: Final = "ranksafe.openRule"
_SETTINGS_WITHIN: Final = 5.0
"""Seconds; a client may never answer."""


async def run(session: Session, uri: str, options: object = None) -> dict[str, Any]:
    """Run a document's script on all free GPUs, or as the options say."""
    return await _start(session, uri, as_mapping(options), smoke=False)


async def smoke_run(session: Session, uri: str, options: object = None) -> dict[str, Any]:
    """Run a document's script for a few optimizer steps."""
    return await _start(session, uri, as_mapping(options), smoke=True)


async def rehearse(session: Session, uri: str, options: object = None) -> dict[str, Any]:
    """Run a document's script on simulated GPUs: ``{"gpus": N}``, else as many as were chosen for it."""
    given = as_mapping(options)
    script = script_of(session, uri)
    target = rehearsal_target(session.user_state.of(script).target, given)
    return await _start(session, uri, {**given, "target": target}, smoke=False)


async def cancel_run(session: Session, run_id: str | None = None) -> dict[str, Any]:
    """End a run or a forecast, or all of them."""
    ended = [session.runs.cancel(run_id), session.forecasts.cancel(run_id)]
    if not any(ended):
        raise Refused(NO_RUN)
    return {"cancelled": True}


async def set_arguments(session: Session, uri: str, arguments: object) -> dict[str, Any]:
    """Remember a script's arguments."""
    require_trust(session)
    if not isinstance(arguments, (list, tuple)) or not all(
        isinstance(argument, str) for argument in arguments
    ):
        raise TypeError("a list of strings is expected")
    script = script_of(session, uri)
    session.user_state.remember(script, arguments=tuple(arguments))
    return {"arguments": list(arguments)}


async def set_target(session: Session, uri: str, target: str | None = None) -> dict[str, Any]:
    """Remember where a script runs; without a target: which the user has."""
    require_trust(session)
    script = script_of(session, uri)
    if target is None:
        from ranksafe.runs.hosts.ssh import choose_config
        from ranksafe.runs.targets import named_targets

        choose_config(session.workspace.options.ssh_config_file)
        return {"targets": named_targets()}
    session.user_state.remember(script, target=check_target(target))
    session.lens_refresh.changed()
    return {"target": target}


async def add_target(session: Session, name: str, options: object = None) -> dict[str, Any]:
    """Note a host (``ssh:HOST``) or a cluster (``slurm:NAME``, option ``login``) in the user's own file, from where
    every editor and the command line take it. A cluster has more to be said: its file is shown."""
    from ranksafe.runs.errors import RunNotPossible
    from ranksafe.runs.targets import add_target

    require_trust(session)
    login = as_mapping(options).get("login")
    try:
        path = add_target(check_target(name), login if isinstance(login, str) else None)
    except RunNotPossible as error:
        raise Refused(error.message) from error
    if name.startswith("slurm:"):
        await session.client.show(path, CLUSTERS_AT.filled(path=path))
    return {"target": name, "file": str(path)}


async def set_config_file(session: Session, uri: str, path: str | None = None) -> dict[str, Any]:
    """Remember the accelerate configuration of a script; None: none of its own."""
    require_trust(session)
    script = script_of(session, uri)
    file = Path(path).expanduser() if path else None
    if file is not None and not file.is_absolute():
        file = script.parent / file
    session.user_state.remember(script, config_file=file, without_config_file=file is None)
    return {"configFile": str(file) if file else None}


async def trust_workspace(session: Session) -> dict[str, Any]:
    """The user's consent to run what is in the open folders, for this session."""
    set_trusted(session, True)
    return {"trusted": True}


async def open_log(session: Session, run_id: str | None = None) -> dict[str, Any]:
    """Show the log of a run, or of the last one."""
    log = session.runs.log_of(run_id) or session.forecasts.log_of(run_id)
    if log is None or not log.is_file():
        raise Refused(NO_LOG)
    await session.client.show(log, LOG_AT.filled(path=log))
    return {"log": str(log)}


async def open_rule(session: Session, code: str) -> dict[str, Any]:
    """Show the page of a rule, in the user's language."""
    if not isinstance(code, str):
        raise TypeError("the code of a rule is expected")
    rule = session.projects.registry.by_code(code)
    if rule is None:
        raise Refused(NO_RULE.filled(code=code))
    page = rule.readme_path(session.client.language)
    await session.client.show(page, PAGE_AT.filled(code=code, path=page))
    return {"page": str(page)}


async def _start(
    session: Session, uri: str, options: Mapping[str, Any], *, smoke: bool
) -> dict[str, Any]:
    request = request_for(session, uri, options, smoke=smoke)
    session.runs.cancel_background(request.script)
    run_id = await session.runs.start(request)
    if is_rehearsal(request.target):
        session.rehearsed[request.script] = {**options, "target": request.target}
    return {"runId": run_id}


HANDLERS: Final[Mapping[str, Callable[..., Awaitable[Any]]]] = {
    RUN: run,
    REHEARSE: rehearse,
    SMOKE_RUN: smoke_run,
    FIT: fit,
    SET_FIT_DEVICES: set_fit_devices,
    DEBUG_RANK: debug_rank,
    PROVE: prove,
    CANCEL_RUN: cancel_run,
    SET_ARGUMENTS: set_arguments,
    SET_TARGET: set_target,
    ADD_TARGET: add_target,
    SET_CONFIG_FILE: set_config_file,
    TRUST_WORKSPACE: trust_workspace,
    OPEN_LOG: open_log,
    OPEN_RULE: open_rule,
    LAUNCH_COMMAND: launch_command,
    OPEN_REPORT: open_report,
    SHOW_RUNS: show_runs,
    SHOW_STACKS: show_stacks,
    ANNOTATE_FROM_LOG: annotate_from_log,
}


async def execute(session: Session, name: str, *arguments: Any) -> Any:
    """Carry out a command; a refusal is told to the user."""
    from ranksafe.runs.errors import RunCancelled, RunNotPossible

    try:
        if arguments and not isinstance(arguments[0], str) and arguments[0] is not None:
            raise TypeError("the first argument must be a string")
        # A run that is asked for at once must not start with fewer GPUs than the user has set.
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(session.settings_known.wait(), _SETTINGS_WITHIN)
        return await HANDLERS[name](session, *arguments)
    except RunCancelled:
        # Who cancelled knows.
        return {"cancelled": True}
    except Refused as refused:
        message = refused.message
    except RunNotPossible as error:
        message = CANNOT_RUN.filled(reason=error.message)
    except (TypeError, ValueError, OSError) as error:
        message = WRONG_ARGUMENTS.filled(command=name, reason=error)
    session.client.warn(message)
    return {"refused": message.in_language(session.client.language)}
