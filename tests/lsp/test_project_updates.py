"""Edits that concern other open files, and the index that is built while nobody waits."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lsprotocol import types
from pytest_lsp import LanguageClient

from .conftest import Editor, StartEditor

USER = """\
from helper import LAYERS
from transformers import AutoModelForCausalLM, Trainer

model = AutoModelForCausalLM.from_pretrained("gpt2", device_map=LAYERS)
trainer = Trainer(model=model)

if __name__ == "__main__":
    trainer.train()
"""
CALLER = """\
import torch.distributed as dist
from metrics import total


def log(value):
    if dist.get_rank() == 0:
        print(total(value))
    dist.barrier()
"""
HELPER = """\
import torch.distributed as dist


def total(value):
    dist.all_reduce(value)
    return value
"""
OTHER = "import torch\n\nprint(torch.ones(1))\n"


def whole(text: str) -> types.TextDocumentContentChangeWholeDocument:
    return types.TextDocumentContentChangeWholeDocument(text)


async def start(start_editor: StartEditor, tmp_path: Path, **more: Any) -> Editor:
    return await start_editor(
        options={"settings": {"select": ["RS201"]}},
        environment={"XDG_CACHE_HOME": str(tmp_path / "cache")},
        **more,
    )


async def test_an_edit_in_the_helper_changes_what_its_open_user_shows(
    start_editor: StartEditor, tmp_path: Path
) -> None:
    editor = await start(start_editor, tmp_path)
    helper = editor.open("helper.py", 'LAYERS = "auto"\n')
    other = editor.open("other.py", OTHER)
    user = editor.open("train.py", USER)
    await editor.shown_with(user, "RS201")
    shown = len([one for one in editor.published if one.uri == other])

    editor.change(helper, whole("LAYERS = None\n"))
    await editor.shown_with(user)
    editor.change(helper, whole('LAYERS = "au'))
    version = editor.change(helper, whole('LAYERS = "auto"\n'))
    await editor.version_shown(helper, version)
    await editor.shown_with(user, "RS201")
    assert len([one for one in editor.published if one.uri == other]) == shown

    # What was not saved is forgotten with the editor's copy.
    editor.change(helper, whole("LAYERS = None\n"))
    await editor.shown_with(user)
    editor.close(helper)
    await editor.shown_with(user, "RS201")


async def test_a_long_helper_is_read_in_turns_and_counts_all_the_same(
    start_editor: StartEditor, tmp_path: Path
) -> None:
    rest = "".join(f"x{number} = {number}\n" for number in range(20_000))
    editor = await start(start_editor, tmp_path)
    helper = editor.open("helper.py", f'LAYERS = "auto"\n{rest}')
    user = editor.open("train.py", USER)
    await editor.shown_with(user, "RS201")
    other = editor.open("other.py", OTHER)
    await editor.version_shown(other, 1)
    editor.type(helper, 0, 9, " None  # ")
    # Read meanwhile, and edited: the last text counts.
    editor.type(helper, 0, 0, "# ")
    await editor.shown_with(user)
    editor.change(helper, whole(f'LAYERS = "auto"\n{rest}'))
    await editor.shown_with(user, "RS201")
    editor.change(helper, whole(f"LAYERS = None\n{rest}"))
    await editor.shown_with(user)
    editor.close(helper)
    await editor.shown_with(user, "RS201")


async def test_a_file_that_comes_and_goes_on_disk_counts(
    start_editor: StartEditor, tmp_path: Path
) -> None:
    editor = await start(start_editor, tmp_path)
    user = editor.open("train.py", USER)
    assert not await editor.version_shown(user, 1)
    path = editor.write("helper.py", 'from deep.values import WHERE\nLAYERS = "auto"\n')
    _changed(editor, path)
    await editor.shown_with(user, "RS201")
    path.unlink()
    _changed(editor, path)
    await editor.shown_with(user)


async def test_of_a_folder_that_goes_the_name_is_enough(
    start_editor: StartEditor, tmp_path: Path
) -> None:
    editor = await start(start_editor, tmp_path)
    user = editor.open("train.py", USER.replace("from helper", "from parts.helper"))
    assert not await editor.version_shown(user, 1)
    path = editor.write("parts/helper.py", 'from deep.values import WHERE\nLAYERS = "auto"\n')
    _changed(editor, path)
    await editor.shown_with(user, "RS201")
    shutil.rmtree(path.parent)
    _changed(editor, path.parent)
    await editor.shown_with(user)


async def test_a_deadlock_names_its_place_in_a_file_that_changes_on_disk(
    start_editor: StartEditor, tmp_path: Path
) -> None:
    editor = await start_editor(
        options={"settings": {"select": ["RS401"]}},
        environment={"XDG_CACHE_HOME": str(tmp_path / "cache")},
    )
    helper = editor.write("metrics.py", HELPER)
    user = editor.open("train.py", CALLER)

    (finding,) = await editor.shown_with(user, "RS401")
    assert _texts_at(finding, helper) == ["dist.all_reduce(value)"]
    editor.write("metrics.py", HELPER.replace("    dist", '    print("value")\n\n    dist'))
    _changed(editor, helper)
    moved = await editor.until(lambda: _at_place(editor.shown(user), helper, finding))

    # What was in an editor and is closed stands on the disk again.
    opened = editor.open("metrics.py", helper.read_text())
    version = editor.change(opened, whole("# longer\n" * 9 + HELPER))
    await editor.version_shown(opened, version)
    editor.write("metrics.py", "# longer\n" * 9 + HELPER)
    editor.close(opened)
    await editor.until(lambda: _at_place(editor.shown(user), helper, finding, moved[0]))


async def test_a_client_that_pulls_is_told_to_ask_again(
    start_editor: StartEditor, tmp_path: Path
) -> None:
    from .conftest import pull_capabilities

    editor = await start(start_editor, tmp_path, capabilities=pull_capabilities())
    refreshes = _refreshes(editor.client)
    helper = editor.open("helper.py", "LAYERS = None\n")
    user = editor.open("train.py", USER)
    assert not (await editor.pull(user)).items
    editor.change(helper, whole('LAYERS = "auto"\n'))
    await editor.until(lambda: refreshes)
    (finding,) = (await editor.pull(user)).items
    assert finding.code == "RS201"


async def test_a_large_project_is_read_with_progress_and_kept(
    start_editor: StartEditor, tmp_path: Path
) -> None:
    root = tmp_path / "project"
    for number in range(400):
        path = root / f"part_{number % 9}" / f"module_{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"import torch\nLIMIT = {number}\n")
    editor = await start(start_editor, tmp_path)
    user = editor.open("train.py", USER)
    editor.write("helper.py", 'LAYERS = "auto"\n')
    steps = await editor.until(lambda: _finished(editor.client))
    assert isinstance(steps[0], types.WorkDoneProgressBegin)
    assert steps[0].cancellable
    assert "project" in steps[0].title
    percentages = [
        step.percentage for step in steps if not isinstance(step, types.WorkDoneProgressEnd)
    ]
    assert percentages == sorted(percentages)
    _changed(editor, root / "helper.py")
    await editor.shown_with(user, "RS201")
    stores = tmp_path / "cache" / "ranksafe" / "projects"
    await editor.until(lambda: list(stores.glob("*.sqlite3")))


def _changed(editor: Editor, path: Path) -> None:
    kind = types.FileChangeType.Changed
    changes = [types.FileEvent(path.as_uri(), kind)]
    editor.client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams(changes))


def _refreshes(client: LanguageClient) -> list[None]:
    refreshes: list[None] = []
    client.protocol.fm.features.pop(types.WORKSPACE_DIAGNOSTIC_REFRESH, None)

    @client.feature(types.WORKSPACE_DIAGNOSTIC_REFRESH)
    def refresh(*_: object) -> None:
        refreshes.append(None)

    return refreshes


def _finished(client: LanguageClient) -> Sequence[Any] | None:
    for steps in client.progress_reports.values():
        if steps and isinstance(steps[-1], types.WorkDoneProgressEnd):
            return list(steps)
    return None


def _texts_at(finding: types.Diagnostic, path: Path) -> list[str]:
    """What a finding's places in a file underline there."""
    lines = path.read_text().splitlines()
    places = [
        one.location.range
        for one in finding.related_information or ()
        if one.location.uri == path.as_uri()
    ]
    return [lines[one.start.line][one.start.character : one.end.character] for one in places]


def _at_place(
    shown: Sequence[types.Diagnostic], helper: Path, *before: types.Diagnostic
) -> Sequence[types.Diagnostic]:
    """What is shown and was not before, once it names the right place; in between, it may name that of an older text."""
    return [
        one
        for one in shown
        if one not in before and _texts_at(one, helper) == ["dist.all_reduce(value)"]
    ]


async def test_a_caller_that_becomes_one_of_several_processes_counts(
    start_editor: StartEditor, tmp_path: Path
) -> None:
    editor = await start_editor(
        options={"settings": {"select": ["RS602"]}},
        environment={"XDG_CACHE_HOME": str(tmp_path / "cache")},
    )
    saving = "import torch\n\n\ndef save(model, path):\n    torch.save(model, path)\n"
    training = "from files import save\n\n\ndef main(model, args):\n    save(model, args.output)\n"
    helper = editor.open("files.py", saving)
    user = editor.open("train.py", training)
    assert not await editor.version_shown(helper, 1)
    together = "import torch.distributed as dist\n" + training.replace(
        "    save(", '    dist.init_process_group("nccl")\n    save('
    )
    editor.change(user, whole(together))
    await editor.shown_with(helper, "RS602")
    editor.change(user, whole(training))
    await editor.shown_with(helper)
