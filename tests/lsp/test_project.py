"""Findings that depend on other files, and the edits beside the file with the finding."""

from __future__ import annotations

import json

from lsprotocol import types

from .conftest import DEVICE_MAP, Editor, StartEditor

TRAINS = """\
from transformers import Trainer

if __name__ == "__main__":
    trainer = Trainer(model=None)
    trainer.train()
"""

MODEL = """\
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return self.layer(x).to("cuda:0")
"""

USER = """\
from torch import nn
from model import Model

if __name__ == "__main__":
    model = nn.DataParallel(Model())
    model(1)
"""


async def test_a_file_that_wraps_the_model_elsewhere_decides_when_it_is_saved(
    start_editor: StartEditor,
) -> None:
    editor = await start_editor(options={"settings": {"select": ["RS210"]}})
    model = editor.open("model.py", MODEL)
    assert not await editor.version_shown(model, 1)
    user = editor.open("user.py", "import torch\n")
    await editor.version_shown(user, 1)
    editor.write("user.py", USER)
    editor.change(user, types.TextDocumentContentChangeWholeDocument(USER))
    editor.client.text_document_did_save(
        types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(user))
    )
    await editor.shown_with(model, "RS210")


async def test_a_file_that_changes_on_disk_decides_too(start_editor: StartEditor) -> None:
    editor = await start_editor(options={"settings": {"select": ["RS210"]}})
    model = editor.open("model.py", MODEL)
    assert not await editor.version_shown(model, 1)
    editor.write("user.py", USER)
    change = types.FileEvent(editor.uri("user.py"), types.FileChangeType.Created)
    editor.client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([change]))
    await editor.shown_with(model, "RS210")


async def test_a_launch_configuration_is_written_and_joins_those_that_are_there(
    start_editor: StartEditor,
) -> None:
    editor, uri, line = await _unguarded_script(start_editor)

    created, written = await _launch_edit(editor, uri, line)
    assert isinstance(created, types.CreateFile)
    assert isinstance(written, types.TextDocumentEdit)
    text = _only(written).new_text
    (configuration,) = json.loads(text)["configurations"]
    assert configuration["module"] == "accelerate.commands.launch"
    assert configuration["args"] == ["${workspaceFolder}/train.py"]

    editor.write(".vscode/launch.json", text.replace("train.py", "other.py"))
    (written,) = await _launch_edit(editor, uri, line)
    assert isinstance(written, types.TextDocumentEdit)
    joined = json.loads(_only(written).new_text)["configurations"]
    assert [one["args"] for one in joined] == [
        ["${workspaceFolder}/other.py"],
        ["${workspaceFolder}/train.py"],
    ]


async def test_a_launch_configuration_that_is_there_is_not_written_again(
    start_editor: StartEditor,
) -> None:
    editor, uri, line = await _unguarded_script(start_editor)
    _, written = await _launch_edit(editor, uri, line)
    assert isinstance(written, types.TextDocumentEdit)
    editor.write(".vscode/launch.json", _only(written).new_text)
    (action,) = [one for one in await editor.actions(uri, line) if "launch.json" in one.title]
    assert (await editor.client.code_action_resolve_async(action)).edit is None


async def test_the_launch_can_be_tried_at_once(start_editor: StartEditor) -> None:
    editor, uri, line = await _unguarded_script(start_editor)
    actions = await editor.actions(uri, line)
    commands = [action.command.command for action in actions if action.command]
    assert commands[0] == "ranksafe.run"


async def test_a_hundred_files_open_at_once_are_all_served(start_editor: StartEditor) -> None:
    editor = await start_editor()
    uris = [editor.open(f"train_{number}.py", DEVICE_MAP) for number in range(100)]
    for uri in uris:
        await editor.shown_with(uri, "RS201")


async def _unguarded_script(start_editor: StartEditor) -> tuple[Editor, str, int]:
    """An editor with a script that RS101 is about, and the line of the finding."""
    editor = await start_editor(options={"settings": {"select": ["RS101"]}})
    uri = editor.open("train.py", TRAINS)
    (finding,) = await editor.shown_with(uri, "RS101")
    return editor, uri, finding.range.start.line


async def _launch_edit(editor, uri: str, line: int) -> list[object]:  # type: ignore[no-untyped-def]
    actions = await editor.actions(uri, line)
    (action,) = [one for one in actions if "launch.json" in one.title]
    resolved = await editor.client.code_action_resolve_async(action)
    return list(resolved.edit.document_changes)


def _only(change: types.TextDocumentEdit) -> types.TextEdit:
    (edit,) = change.edits
    assert isinstance(edit, types.TextEdit)
    return edit
