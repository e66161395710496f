"""The launch command of a script in another engine's form: text for the user, nothing is started."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lsprotocol import types

from ranksafe.launch.context import Launcher
from ranksafe.lsp.messages import LAUNCH_FORM, LAUNCH_TEXT_AT
from ranksafe.lsp.options import as_mapping
from ranksafe.lsp.run_request import script_of
from ranksafe.lsp.session import Session
from ranksafe.lsp.targets import as_count

if TYPE_CHECKING:
    from ranksafe.runs.launch_forms import Launch

LAUNCH_COMMAND: Final = "ranksafe.launchCommand"


async def launch_command(
    session: Session, uri: str, form: str | None = None, options: object = None
) -> dict[str, Any]:
    """The text, and the forms there are; it is shown as a document unless ``{"show": false}``.

    Options: ``gpus`` on each node, ``nodes``. Without a form the user is asked.
    """
    from ranksafe.runs.launch_forms import FORMS, launch_text

    script = script_of(session, uri)
    if form is None:
        names = {each.name: key for key, each in FORMS.items()}
        chosen = await session.client.ask(LAUNCH_FORM, list(names), types.MessageType.Info)
        form = names.get(chosen or "")
        if form is None:
            return {"cancelled": True}
    if form not in FORMS:
        raise TypeError(f"one of {', '.join(FORMS)} is expected")
    given = as_mapping(options)
    text = launch_text(form, _launch(session, script, given), session.client.language)
    if given.get("show") is not False:
        await _show(session, script, FORMS[form].suffix, text)
    return {"text": text, "form": form}


def _launch(session: Session, script: Path, given: Mapping[str, Any]) -> Launch:
    from ranksafe.runs.launch_forms import Launch
    from ranksafe.runs.launch_plan import Style, style_of

    context = session.projects.analyzer_for(script).launch
    choices = session.user_state.of(script)
    folder = session.workspace.folder_of(script) or script.parent
    known = {Launcher.ACCELERATE: Style.ACCELERATE, Launcher.TORCHRUN: Style.TORCHRUN}
    style = known.get(context.launcher)
    if style is None:
        style = style_of(script.read_text(encoding="utf-8", errors="replace"), True)
    if choices.config_file is not None:
        style = Style.ACCELERATE
    return Launch(
        script=script.relative_to(folder).as_posix(),
        arguments=choices.arguments,
        style=style,
        gpus=as_count(given.get("gpus")) or context.assumed_gpus,
        nodes=as_count(given.get("nodes")) or 1,
        config_file=None if choices.config_file is None else _relative(choices.config_file, folder),
    )


async def _show(session: Session, script: Path, suffix: str, text: str) -> None:
    from ranksafe.runs.directory import cache_directory

    folder = cache_directory() / "launch"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / (script.stem + suffix)
    path.write_text(text, encoding="utf-8")
    await session.client.show(path, LAUNCH_TEXT_AT.filled(path=path))


def _relative(path: Path, folder: Path) -> str:
    return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else str(path)
