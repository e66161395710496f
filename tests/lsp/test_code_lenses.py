"""Lenses over the entry of a script and over findings that can be proved."""

from __future__ import annotations

import pytest

from .conftest import DEVICE_MAP, DEVICE_MAP_LINE, StartEditor

GUARD_LINE = DEVICE_MAP.splitlines().index('if __name__ == "__main__":')


async def test_the_entry_carries_the_lenses_of_a_run(start_editor: StartEditor) -> None:
    editor = await start_editor()
    uri = editor.open("train.py", DEVICE_MAP)
    await editor.shown_with(uri, "RS201")
    lenses = await editor.lenses(uri)
    at_entry = [lens for lens in lenses if lens.range.start.line == GUARD_LINE]
    commands = [lens.command.command for lens in at_entry if lens.command]
    assert commands == ["ranksafe.run", "ranksafe.smokeRun"]
    titles = [lens.command.title for lens in at_entry if lens.command]
    assert "2" in titles[0]
    assert titles[1] == "Smoke run (2 steps)"


async def test_a_finding_whose_rule_has_a_proof_can_be_proved(start_editor: StartEditor) -> None:
    editor = await start_editor(locale="zh-cn")
    uri = editor.open("train.py", DEVICE_MAP)
    await editor.shown_with(uri, "RS201")
    (lens,) = [one for one in await editor.lenses(uri) if one.range.start.line == DEVICE_MAP_LINE]
    assert lens.command is not None
    assert (lens.command.command, list(lens.command.arguments or ())) == (
        "ranksafe.prove",
        ["RS201"],
    )
    assert lens.command.title == "验证 RS201"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "from transformers import Trainer\n\ntrainer = Trainer(model=None)\ntrainer.train()\n",
            3,
        ),
        (
            "from accelerate import Accelerator\naccelerator = Accelerator()\n"
            "model = accelerator.prepare(None)\n",
            2,
        ),
    ],
)
async def test_without_a_guard_the_training_call_is_the_entry(
    start_editor: StartEditor, text: str, line: int
) -> None:
    editor = await start_editor()
    uri = editor.open("train.py", text)
    await editor.version_shown(uri, 1)
    lines = {
        lens.range.start.line
        for lens in await editor.lenses(uri)
        if lens.command and lens.command.command == "ranksafe.run"
    }
    assert lines == {line}


async def test_a_module_has_no_lens(start_editor: StartEditor) -> None:
    editor = await start_editor()
    uri = editor.open("layers.py", "import torch\n\nclass Layer(torch.nn.Module):\n    pass\n")
    await editor.version_shown(uri, 1)
    assert await editor.lenses(uri) == []


async def test_an_untrusted_workspace_shows_findings_and_no_lens(
    start_editor: StartEditor,
) -> None:
    editor = await start_editor(options={"trusted": False})
    uri = editor.open("train.py", DEVICE_MAP)
    await editor.shown_with(uri, "RS201")
    assert await editor.lenses(uri) == []
    editor.client.protocol.notify("ranksafe/trust", {"trusted": True})
    await editor.shown_with(uri, "RS201")
    assert await editor.lenses(uri)


async def test_the_lens_moves_with_a_half_typed_file(start_editor: StartEditor) -> None:
    editor = await start_editor()
    uri = editor.open("train.py", DEVICE_MAP)
    await editor.shown_with(uri, "RS201")
    editor.type(uri, 0, 0, "x = (\n")
    lines = {
        lens.range.start.line
        for lens in await editor.lenses(uri)
        if lens.command and lens.command.command == "ranksafe.run"
    }
    assert lines == {GUARD_LINE + 1}


async def test_a_half_typed_script_that_no_rule_concerns_keeps_its_lens(
    start_editor: StartEditor,
) -> None:
    editor = await start_editor()
    text = "import torch\n\nvalue = 1\n\nif __name__ == '__main__':\n    print(torch)\n"
    uri = editor.open("train.py", text)
    assert [lens.range.start.line for lens in await editor.lenses(uri)] == [4, 4]
    editor.type(uri, 2, 0, "x = (1,\n")
    assert [lens.range.start.line for lens in await editor.lenses(uri)] == [5, 5]
