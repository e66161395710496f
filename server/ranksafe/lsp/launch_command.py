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
from ranksafe.lsp.show import show

if TYPE_CHECKING:
    from ranksafe.lsp.server import RanksafeServer
    from ranksafe.runs.launch_forms import Launch

LAUNCH_COMMAND: Final = "ranksafe.launchCommand"


class LaunchCommand:
    """The command, and what it reads from the user's choices and from the launch context."""

    def __init__(self, server: RanksafeServer) -> None:
        self._server = server

    async def launch_command(
        self, uri: str, form: str | None = None, options: object = None
    ) -> dict[str, Any]:
        """The text, and the forms there are; it is shown as a document unless ``{"show": false}``.

        Options: ``gpus`` on each node, ``nodes``. Without a form the user is asked.
        """
        from ranksafe.runs.launch_forms import FORMS, launch_text

        server = self._server
        script = script_of(server, uri)
        if form is None:
            form = await self._ask([(key, each.name) for key, each in FORMS.items()])
            if form is None:
                return {"cancelled": True}
        if form not in FORMS:
            raise TypeError(f"one of {', '.join(FORMS)} is expected")
        given = as_mapping(options)
        text = launch_text(form, self._launch(script, given), server.language)
        if given.get("show") is not False:
            await self._show(script, FORMS[form].suffix, text)
        return {"text": text, "form": form}

    def _launch(self, script: Path, given: Mapping[str, Any]) -> Launch:
        from ranksafe.runs.launch_forms import Launch
        from ranksafe.runs.launch_plan import Style, style_of

        server = self._server
        context = server.projects.analyzer_for(script).launch
        choices = server.user_state.of(script)
        folder = server.folder_of(script) or script.parent
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
            gpus=_count(given.get("gpus")) or context.assumed_gpus,
            nodes=_count(given.get("nodes")) or 1,
            config_file=None
            if choices.config_file is None
            else _relative(choices.config_file, folder),
        )

    async def _ask(self, forms: list[tuple[str, str]]) -> str | None:
        params = types.ShowMessageRequestParams(
            type=types.MessageType.Info,
            message=LAUNCH_FORM.in_language(self._server.language),
            actions=[types.MessageActionItem(title=name) for _, name in forms],
        )
        answer = await self._server.window_show_message_request_async(params)
        chosen = answer.title if answer is not None else None
        return next((key for key, name in forms if name == chosen), None)

    async def _show(self, script: Path, suffix: str, text: str) -> None:
        from ranksafe.runs.directory import cache_directory

        folder = cache_directory() / "launch"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = folder / (script.stem + suffix)
        path.write_text(text, encoding="utf-8")
        if not await show(self._server, path):
            message = LAUNCH_TEXT_AT.filled(path=path)
            self._server.inform(message.in_language(self._server.language))


def _relative(path: Path, folder: Path) -> str:
    return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else str(path)


def _count(value: object) -> int | None:
    is_count = isinstance(value, int) and not isinstance(value, bool) and value > 0
    return value if is_count and isinstance(value, int) else None
