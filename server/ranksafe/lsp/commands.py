"""``workspace/executeCommand``: every command of ranksafe, registered once, here (DESIGN, invariant 7).

A command that cannot be carried out says why in a message and answers ``{"refused": reason}``: an error response would
be shown by some clients as a defect of the server.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ranksafe.lsp import report_commands
from ranksafe.lsp.launch_command import LAUNCH_COMMAND, LaunchCommand
from ranksafe.lsp.messages import (
    CANNOT_RUN,
    LOG_AT,
    NO_LOG,
    NO_RULE,
    NO_RUN,
    PAGE_AT,
    WRONG_ARGUMENTS,
)
from ranksafe.lsp.options import as_mapping
from ranksafe.lsp.run_request import (
    Refused,
    check_target,
    rehearsal_target,
    request_for,
    require_trust,
    script_of,
)
from ranksafe.lsp.show import show

if TYPE_CHECKING:
    from ranksafe.lsp.server import RanksafeServer

RUN: Final = "ranksafe.run"
SMOKE_RUN: Final = "ranksafe.smokeRun"
REHEARSE: Final = "ranksafe.rehearse"
PROVE: Final = "ranksafe.prove"
CANCEL_RUN: Final = "ranksafe.cancelRun"
SET_ARGUMENTS: Final = "ranksafe.setArguments"
SET_TARGET: Final = "ranksafe.setTarget"
SET_CONFIG_FILE: Final = "ranksafe.setConfigFile"
TRUST_WORKSPACE: Final = "ranksafe.trustWorkspace"
OPEN_LOG: Final = "ranksafe.openLog"
OPEN_RULE: Final = "ranksafe.openRule"

_Handler = Callable[..., Awaitable[Any]]


class Commands:
    """What each command does."""

    def __init__(self, server: RanksafeServer) -> None:
        self._server = server

    async def run(self, uri: str, options: object = None) -> dict[str, Any]:
        """Run a document's script on all free GPUs, or as the options say."""
        return await self._start(uri, as_mapping(options), smoke=False)

    async def smoke_run(self, uri: str, options: object = None) -> dict[str, Any]:
        """Run a document's script for a few optimizer steps."""
        return await self._start(uri, as_mapping(options), smoke=True)

    async def rehearse(self, uri: str, options: object = None) -> dict[str, Any]:
        """Run a document's script on simulated GPUs: ``{"gpus": N}``, else as many as were chosen for it."""
        given = as_mapping(options)
        script = script_of(self._server, uri)
        target = rehearsal_target(self._server.user_state.of(script).target, given)
        return await self._start(uri, {**given, "target": target}, smoke=False)

    async def prove(self, code: str) -> dict[str, Any]:
        """Run the proof of a rule."""
        return await self._server.proofs.prove(code)

    async def cancel_run(self, run_id: str | None = None) -> dict[str, Any]:
        """End a run, or all of them."""
        cancelled = self._server.runs.cancel(run_id)
        if not cancelled:
            raise Refused(NO_RUN)
        return {"cancelled": True}

    async def set_arguments(self, uri: str, arguments: object) -> dict[str, Any]:
        """Remember a script's arguments."""
        require_trust(self._server)
        if not isinstance(arguments, (list, tuple)) or not all(
            isinstance(argument, str) for argument in arguments
        ):
            raise TypeError("a list of strings is expected")
        script = script_of(self._server, uri)
        self._server.user_state.remember(script, arguments=tuple(arguments))
        return {"arguments": list(arguments)}

    async def set_target(self, uri: str, target: str | None = None) -> dict[str, Any]:
        """Remember where a script runs; without a target: which the user has."""
        require_trust(self._server)
        script = script_of(self._server, uri)
        if target is None:
            from ranksafe.runs.targets import named_targets

            return {"targets": named_targets()}
        self._server.user_state.remember(script, target=check_target(target))
        self._server.lenses_changed()
        return {"target": target}

    async def set_config_file(self, uri: str, path: str | None = None) -> dict[str, Any]:
        """Remember the accelerate configuration of a script; None: none of its own."""
        require_trust(self._server)
        script = script_of(self._server, uri)
        file = Path(path).expanduser() if path else None
        if file is not None and not file.is_absolute():
            file = script.parent / file
        self._server.user_state.remember(script, config_file=file, without_config_file=file is None)
        return {"configFile": str(file) if file else None}

    async def trust_workspace(self) -> dict[str, Any]:
        """The user's consent to run what is in the open folders, for this session."""
        self._server.set_trusted(True)
        return {"trusted": True}

    async def open_log(self, run_id: str | None = None) -> dict[str, Any]:
        """Show the log of a run, or of the last one."""
        log = self._server.runs.log_of(run_id)
        if log is None or not log.is_file():
            raise Refused(NO_LOG)
        if not await show(self._server, log):
            self._server.inform(LOG_AT.filled(path=log).in_language(self._server.language))
        return {"log": str(log)}

    async def open_rule(self, code: str) -> dict[str, Any]:
        """Show the page of a rule, in the user's language."""
        rule = self._server.checks.rule(code)
        if rule is None:
            raise Refused(NO_RULE.filled(code=code))
        page = rule.readme_path(self._server.language)
        if not await show(self._server, page):
            message = PAGE_AT.filled(code=code, path=page)
            self._server.inform(message.in_language(self._server.language))
        return {"page": str(page)}

    async def _start(self, uri: str, options: Mapping[str, Any], *, smoke: bool) -> dict[str, Any]:
        request = request_for(self._server, uri, options, smoke=smoke)
        return {"runId": await self._server.runs.start(request)}


def register(server: RanksafeServer) -> None:
    """Register every command."""
    commands = Commands(server)
    handlers: dict[str, _Handler] = {
        RUN: commands.run,
        REHEARSE: commands.rehearse,
        SMOKE_RUN: commands.smoke_run,
        PROVE: commands.prove,
        CANCEL_RUN: commands.cancel_run,
        SET_ARGUMENTS: commands.set_arguments,
        SET_TARGET: commands.set_target,
        SET_CONFIG_FILE: commands.set_config_file,
        TRUST_WORKSPACE: commands.trust_workspace,
        OPEN_LOG: commands.open_log,
        OPEN_RULE: commands.open_rule,
        LAUNCH_COMMAND: LaunchCommand(server).launch_command,
        **report_commands.handlers(server),
    }
    for name, handler in handlers.items():
        server.command(name)(_answering(server, name, handler))


def _answering(server: RanksafeServer, name: str, handler: _Handler) -> Callable[..., Any]:
    """The handler with its refusals told to the user."""

    async def answer(*arguments: Any) -> Any:
        from ranksafe.runs.errors import RunCancelled, RunNotPossible

        try:
            return await _checked(handler, arguments)
        except RunCancelled:
            # Who cancelled knows.
            return {"cancelled": True}
        except Refused as refused:
            message = refused.message
        except RunNotPossible as error:
            message = CANNOT_RUN.filled(reason=error.message)
        except (TypeError, ValueError, OSError) as error:
            message = WRONG_ARGUMENTS.filled(command=name, reason=error)
        text = message.in_language(server.language)
        server.warn(text)
        return {"refused": text}

    # pygls hands the server itself to a first parameter whose type it fits, and takes no Any before Python 3.11.
    answer.__annotations__.clear()
    return answer


async def _checked(handler: _Handler, arguments: tuple[object, ...]) -> Any:
    """Call with the client's arguments: the first is always text, or may be left out where the command allows it."""
    if arguments and not isinstance(arguments[0], str) and arguments[0] is not None:
        raise TypeError("the first argument must be a string")
    call = functools.partial(handler, *arguments)
    return await call()
