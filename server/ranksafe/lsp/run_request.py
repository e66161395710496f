"""May this be run, and how: every condition of a run is checked here, before anything starts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ranksafe.localization import Translated
from ranksafe.lsp.documents import TextDocument, path_of
from ranksafe.lsp.messages import (
    ALREADY_RUNNING,
    NOT_SAVED,
    NOT_TRUSTED,
    NOT_UNDER_FOLDER,
    UNKNOWN_TARGET,
)
from ranksafe.lsp.session import Session
from ranksafe.lsp.targets import as_count, is_here, is_rehearsal, is_target

if TYPE_CHECKING:
    from ranksafe.runs.model import RunRequest

SMOKE_STEPS: Final = 2


class Refused(Exception):
    """A command is not carried out; `message` says why."""

    def __init__(self, message: Translated) -> None:
        super().__init__(message.en)
        self.message = message


def require_trust(session: Session) -> None:
    """Raise Refused until the user trusts the workspace."""
    if not session.workspace.trusted:
        raise Refused(NOT_TRUSTED)


def script_of(session: Session, uri: str) -> Path:
    """The file behind a URI. Raises Refused unless it is a Python file under an open folder, links resolved."""
    path = path_of(uri)
    if path is not None and path.suffix == ".py":
        real = path.resolve()
        if real.is_file() and any(
            real.is_relative_to(folder.resolve()) for folder in session.workspace.folders
        ):
            return path
    raise Refused(NOT_UNDER_FOLDER.filled(file=path.name if path else uri))


def check_target(name: str) -> str:
    """A target's name. Raises Refused for what is not one."""
    if not is_target(name):
        raise Refused(UNKNOWN_TARGET.filled(target=name))
    return name


def request_for(
    session: Session, uri: str, given: Mapping[str, Any], *, smoke: bool = False
) -> RunRequest:
    """What is to be started for a document. Raises Refused."""
    from ranksafe.rehearsal.settings import RehearsalOptions
    from ranksafe.runs.blocking_launches import with_blocking_launches
    from ranksafe.runs.model import RunRequest

    require_trust(session)
    script = script_of(session, uri)
    if session.runs.running(script) is not None or session.forecasts.running(script) is not None:
        raise Refused(ALREADY_RUNNING.filled(file=script.name))
    _require_saved(session, script)
    choices = session.user_state.of(script)
    named = given.get("target")
    target = check_target(named if isinstance(named, str) and named else choices.target)
    if not is_here(target):
        from ranksafe.runs.hosts.ssh import choose_config

        choose_config(session.workspace.options.ssh_config_file)
    if not is_here(target) and target != choices.target:
        from ranksafe.runs.targets import named_targets

        if target not in named_targets():
            raise Refused(UNKNOWN_TARGET.filled(target=target))
    gpus = None if is_rehearsal(target) else as_count(given.get("gpus"))
    cpu_ranks = as_count(given.get("cpuRanks"))
    short_epochs = is_rehearsal(target) and not smoke and given.get("toTheEnd") is not True
    request = RunRequest(
        script=script,
        target=target,
        gpus=cpu_ranks or gpus,
        cpu_ranks=cpu_ranks is not None or given.get("cpuRanks") is True,
        steps=SMOKE_STEPS if smoke else None,
        arguments=choices.arguments,
        config_file=choices.config_file,
        # Elsewhere there is another one: the settings of the host or cluster name it.
        interpreter=session.workspace.options.python if is_here(target) else None,
        working_directory=session.workspace.folder_of(script),
        environment=dict(session.workspace.options.run_environment),
        rehearsal=RehearsalOptions(short_epochs=short_epochs, warm_afterwards=False),
        language=session.client.language,
    )
    return with_blocking_launches(request) if given.get("blockingLaunches") is True else request


def _require_saved(session: Session, script: Path) -> None:
    """The run reads files, the user looks at buffers: they must agree, in every open file of the same folder."""
    folder = session.workspace.folder_of(script)
    unsaved = [
        document.path.name
        for document in session.documents
        if isinstance(document, TextDocument)
        and document.path is not None
        and (document.path == script or session.workspace.folder_of(document.path) == folder)
        and _differs_from_disk(document)
    ]
    if unsaved:
        raise Refused(NOT_SAVED.filled(files=", ".join(unsaved)))


def _differs_from_disk(document: TextDocument) -> bool:
    if document.path is None:
        return False
    try:
        on_disk = document.path.read_bytes().decode("utf-8-sig", errors="replace")
    except OSError:
        return True
    return _normalized(on_disk) != _normalized(document.text)


def _normalized(text: str) -> str:
    """Line ends and a last empty line differ between buffer and file in some editors without any edit."""
    return text.replace("\r\n", "\n").replace("\r", "\n").rstrip("\n")
