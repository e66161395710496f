"""Settings, configuration files, trust and folders, and their changes while the server runs."""

from __future__ import annotations

from lsprotocol import types

from .conftest import (
    DEVICE_MAP,
    DEVICE_MAP_LINE,
    QUIET,
    Editor,
    StartEditor,
    pull_capabilities,
    push_capabilities,
)

_TRAINER = """\
from transformers import AutoModelForCausalLM, Trainer

trainer = Trainer(model=AutoModelForCausalLM.from_pretrained("gpt2"), train_dataset=load())
trainer.train()
"""


async def test_settings_come_when_the_server_asks_for_them(start_editor: StartEditor) -> None:
    editor = await start_editor(configuration={"ignore": ["RS201"]})
    uri = editor.open("train.py", DEVICE_MAP)
    await editor.shown_with(uri)
    editor.client.set_configuration({"ranksafe": QUIET | {"gpus": 4}})
    _settings_changed(editor, None)
    await editor.shown_with(uri, "RS201")


async def test_settings_are_taken_from_the_notification_of_a_client_that_cannot_be_asked(
    start_editor: StartEditor,
) -> None:
    capabilities = push_capabilities()
    assert capabilities.workspace is not None
    capabilities.workspace.configuration = None
    editor = await start_editor(capabilities=capabilities)
    uri = editor.open("train.py", DEVICE_MAP)
    await editor.shown_with(uri, "RS201")
    _settings_changed(editor, {"ranksafe": QUIET | {"ignore": ["RS201"]}})
    await editor.shown_with(uri)


async def test_settings_hold_for_text_that_cannot_be_read_now(start_editor: StartEditor) -> None:
    editor = await start_editor()
    uri = editor.open("train.py", DEVICE_MAP)
    await editor.shown_with(uri, "RS201")
    end = len(DEVICE_MAP.splitlines()[DEVICE_MAP_LINE])
    version = editor.type(uri, DEVICE_MAP_LINE, end, " b[rank0: een yield(")
    assert [one.code for one in await editor.version_shown(uri, version)] == ["RS201"]
    # Of these one looks at the file all the same.
    editor.client.set_configuration({"ranksafe": {"select": ["RS101", "RS001"]}})
    _settings_changed(editor, None)
    await editor.until(lambda: all(one.code != "RS201" for one in editor.shown(uri)))


async def test_settings_of_the_wrong_type_count_as_not_set(start_editor: StartEditor) -> None:
    editor = await start_editor(
        configuration={"ignore": 3, "gpus": -1, "launcher": "mpirun", "x": {}}
    )
    uri = editor.open("train.py", DEVICE_MAP)
    await editor.shown_with(uri, "RS201")


async def test_a_configuration_file_is_watched(start_editor: StartEditor) -> None:
    editor = await start_editor()
    uri = editor.open("train.py", DEVICE_MAP)
    await editor.shown_with(uri, "RS201")
    await editor.until(
        lambda: (
            types.WORKSPACE_DID_CHANGE_WATCHED_FILES in [one.method for one in editor.registrations]
        )
    )
    editor.write("ranksafe.toml", 'ignore = ["RS201"]\n')
    _file_changed(editor, "ranksafe.toml")
    await editor.shown_with(uri)


async def test_a_version_that_is_asked_for_counts_at_once(start_editor: StartEditor) -> None:
    editor = await start_editor(options={"settings": {"select": ["RS101"]}})
    editor.write("requirements.txt", "transformers\n")
    uri = editor.open("examples/train.py", _TRAINER)
    await editor.shown_with(uri, "RS101")
    editor.write("requirements.txt", "transformers==4.39.3\n")
    _file_changed(editor, "requirements.txt")
    await editor.shown_with(uri)


async def test_a_pulling_client_is_told_of_a_changed_configuration(
    start_editor: StartEditor,
) -> None:
    editor = await start_editor(capabilities=pull_capabilities())
    uri = editor.open("train.py", DEVICE_MAP)
    report = await editor.pull(uri)
    asked = editor.client.diagnostic_refresh_count
    editor.write("pyproject.toml", '[tool.ranksafe]\nignore = ["RS201"]\n')
    _file_changed(editor, "pyproject.toml")
    await editor.until(lambda: editor.client.diagnostic_refresh_count > asked)
    assert list((await editor.pull(uri, report.result_id)).items) == []


async def test_what_is_wrong_in_a_configuration_file_is_said_once(
    start_editor: StartEditor,
) -> None:
    editor = await start_editor(locale="zh-cn")
    editor.write("ranksafe.toml", 'gpus = "many"\nignore = ["RS3", "RS77"]\n')
    editor.open("a.py", DEVICE_MAP)
    uri = editor.open("b.py", DEVICE_MAP)
    await editor.shown_with(uri, "RS201")
    assert [text for text in editor.messages if "gpus" in text] == [
        "ranksafe.toml：`gpus` 必须是不小于 1 的整数"
    ]
    assert len([text for text in editor.messages if "RS77" in text]) == 1


async def test_each_folder_has_its_own_configuration(start_editor: StartEditor) -> None:
    editor = await start_editor(folders=("one", "two"))
    editor.write("../two/ranksafe.toml", 'ignore = ["RS201"]\n')
    first = editor.open("train.py", DEVICE_MAP)
    await editor.shown_with(first, "RS201")
    path = editor.write("../two/train.py", DEVICE_MAP).resolve()
    item = types.TextDocumentItem(path.as_uri(), "python", 1, DEVICE_MAP)
    editor.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
    assert not await editor.version_shown(path.as_uri(), 1)


async def test_folders_come_and_go(start_editor: StartEditor) -> None:
    editor = await start_editor()
    uri = editor.open("train.py", DEVICE_MAP)
    await editor.shown_with(uri, "RS201")
    assert await editor.lenses(uri)
    folder = types.WorkspaceFolder(editor.folder.as_uri(), "project")
    change = types.WorkspaceFoldersChangeEvent(added=[], removed=[folder])
    editor.client.workspace_did_change_workspace_folders(
        types.DidChangeWorkspaceFoldersParams(change)
    )
    answer = await editor.execute("ranksafe.run", uri)
    assert "open folder" in answer["refused"]


async def test_a_file_outside_every_folder_is_checked_all_the_same(
    start_editor: StartEditor,
) -> None:
    editor = await start_editor(folders=())
    uri = editor.open("train.py", DEVICE_MAP)
    await editor.shown_with(uri, "RS201")


async def test_a_document_that_is_no_file_is_checked_too(start_editor: StartEditor) -> None:
    editor = await start_editor()
    uri = "untitled:Untitled-1"
    item = types.TextDocumentItem(uri, "python", 1, DEVICE_MAP)
    editor.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
    await editor.shown_with(uri, "RS201")


def _settings_changed(editor: Editor, settings: object) -> None:
    editor.client.workspace_did_change_configuration(
        types.DidChangeConfigurationParams(settings)  # type: ignore[arg-type]
    )


def _file_changed(editor: Editor, name: str) -> None:
    change = types.FileEvent(editor.uri(name), types.FileChangeType.Created)
    editor.client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([change]))
