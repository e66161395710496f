"""Lenses over the entry of a script."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from lsprotocol import types

from .conftest import DEVICE_MAP, Editor, StartEditor

GUARD_LINE = DEVICE_MAP.splitlines().index('if __name__ == "__main__":')


class SlowGpus:
    """One free GPU, of which an nvidia-smi of the test's own tells only when it may."""

    def __init__(self, folder: Path) -> None:
        self._may_answer = folder / "may-answer"
        program = folder / "bin" / "nvidia-smi"
        program.parent.mkdir()
        program.write_text(
            f"""#!/bin/sh
until [ -e '{self._may_answer}' ]; do sleep 0.05; done
case "$1" in --query-gpu*) echo '0, GPU-a, H100, 4, 81000, 0, Default, Disabled';; esac
"""
        )
        program.chmod(0o755)
        self.environment = {
            "PATH": os.pathsep.join([str(program.parent), os.environ["PATH"]]),
            "XDG_CACHE_HOME": str(folder / "cache"),
            "CUDA_VISIBLE_DEVICES": "0",
        }

    def answer(self) -> None:
        self._may_answer.touch()


@pytest.fixture
def slow_gpus(tmp_path: Path) -> Iterator[SlowGpus]:
    gpus = SlowGpus(tmp_path)
    yield gpus
    gpus.answer()


async def _run_lens(editor: Editor, uri: str) -> tuple[types.CodeLens, types.Command]:
    lenses = await editor.unresolved_lenses(uri)
    commands = [(lens, lens.command) for lens in lenses if lens.command is not None]
    assert len(commands) == len(lenses)
    (run,) = [(lens, command) for lens, command in commands if command.command == "ranksafe.run"]
    return run


@pytest.mark.parametrize(
    ("locale", "uncounted", "counted"),
    [
        ("en", "Run on GPUs", "Run on GPUs (1)"),
        ("zh-cn", "在 GPU 上运行", "在 GPU 上运行（1）"),
    ],
)
async def test_a_run_can_be_started_before_the_gpus_are_counted_and_the_count_comes_later(
    start_editor: StartEditor, slow_gpus: SlowGpus, locale: str, uncounted: str, counted: str
) -> None:
    editor = await start_editor(locale=locale, environment=slow_gpus.environment)
    uri = editor.open("train.py", DEVICE_MAP)
    # What the server sends after an opened file in any case has come.
    await editor.until(lambda: len(editor.lens_refreshes) >= 2)
    before = len(editor.lens_refreshes)
    _, command = await _run_lens(editor, uri)
    assert (command.title, list(command.arguments or ())) == (uncounted, [uri])
    slow_gpus.answer()
    await editor.until(lambda: len(editor.lens_refreshes) > before)
    _, command = await _run_lens(editor, uri)
    assert (command.title, list(command.arguments or ())) == (counted, [uri])


async def test_lenses_resolved_together_wait_for_the_same_count(
    start_editor: StartEditor, slow_gpus: SlowGpus
) -> None:
    editor = await start_editor(environment=slow_gpus.environment)
    uri = editor.open("train.py", DEVICE_MAP)
    lens, _ = await _run_lens(editor, uri)
    both = [asyncio.ensure_future(editor.client.code_lens_resolve_async(lens)) for _ in range(2)]
    # The server has taken both: it answers in order what it answers at once.
    await editor.unresolved_lenses(uri)
    slow_gpus.answer()
    resolved = await asyncio.gather(*both)
    titles = [one.command.title for one in resolved if one.command]
    assert titles == ["Run on GPUs (1)", "Run on GPUs (1)"]


async def test_a_client_that_lost_its_request_for_lenses_is_told_to_ask(
    start_editor: StartEditor,
) -> None:
    editor = await start_editor()
    uri = editor.open("train.py", DEVICE_MAP)
    await editor.until(lambda: editor.lens_refreshes)
    await _run_lens(editor, uri)


async def test_changes_that_come_together_make_few_refreshes(start_editor: StartEditor) -> None:
    editor = await start_editor(options={"trusted": False})
    for trusted in (True, False) * 10:
        editor.client.protocol.notify("ranksafe/trust", {"trusted": trusted})
    await editor.until(lambda: editor.lens_refreshes)
    # With the answer to this the server has taken all of them.
    await editor.unresolved_lenses(editor.uri("train.py"))
    assert len(editor.lens_refreshes) < 5


async def test_the_entry_carries_the_lenses_of_a_run(start_editor: StartEditor) -> None:
    editor = await start_editor()
    uri = editor.open("train.py", DEVICE_MAP)
    await editor.shown_with(uri, "RS201")
    lenses = await editor.lenses(uri)
    at_entry = [lens for lens in lenses if lens.range.start.line == GUARD_LINE]
    commands = [lens.command.command for lens in at_entry if lens.command]
    assert sorted(commands) == sorted(STARTERS)
    titles = {lens.command.command: lens.command.title for lens in at_entry if lens.command}
    assert "2" in titles["ranksafe.run"]
    assert titles["ranksafe.rehearse"] == "Rehearse on 2 GPUs"
    assert titles["ranksafe.smokeRun"] == "Smoke run (2 steps)"


async def test_a_finding_carries_no_lens(start_editor: StartEditor) -> None:
    editor = await start_editor()
    uri = editor.open("train.py", DEVICE_MAP)
    await editor.shown_with(uri, "RS201")
    assert {one.range.start.line for one in await editor.lenses(uri)} == {GUARD_LINE}


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
        (
            "import torch\n\nmodel = torch.nn.Linear(2, 2)\nfor batch in []:\n    for row in batch:\n"
            "        loss = model(row).sum()\n        loss.backward()\n",
            3,
        ),
        (
            "from transformers import Trainer\n\ndef train(model):\n    trainer = Trainer(model=model)\n"
            "    trainer.train()\n\ndef main():\n    train(None)\n\nif True:\n    train(None)\n",
            9,
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
    assert {lens.range.start.line for lens in await editor.lenses(uri)} == {4}
    editor.type(uri, 2, 0, "x = (1,\n")
    assert {lens.range.start.line for lens in await editor.lenses(uri)} == {5}


async def _commands(editor: Editor, uri: str) -> list[tuple[str, str]]:
    lenses = await editor.lenses(uri)
    return [(lens.command.command, lens.command.title) for lens in lenses if lens.command]


STARTERS = ["ranksafe.run", "ranksafe.rehearse", "ranksafe.smokeRun", "ranksafe.fit"]


async def test_the_order_is_the_same_where_no_gpu_is(start_editor: StartEditor) -> None:
    editor = await start_editor(environment={"CUDA_VISIBLE_DEVICES": "", "PATH": "/nowhere"})
    uri = editor.open("train.py", DEVICE_MAP)
    for _ in range(50):
        commands = await _commands(editor, uri)
        assert [command for command, _ in commands] == STARTERS
        if "no CUDA device" in commands[0][1]:
            break
        await asyncio.sleep(0.1)
    assert commands[0][1] == "Run on 2 CPU ranks (no CUDA device)"


async def test_the_order_is_the_same_where_a_gpu_is_free(
    start_editor: StartEditor, slow_gpus: SlowGpus
) -> None:
    slow_gpus.answer()
    editor = await start_editor(environment=slow_gpus.environment)
    uri = editor.open("train.py", DEVICE_MAP)
    await editor.until(lambda: len(editor.lens_refreshes) >= 2)
    assert [command for command, _ in await _commands(editor, uri)] == STARTERS


async def test_a_chosen_number_of_simulated_gpus_is_on_the_lens(start_editor: StartEditor) -> None:
    editor = await start_editor(locale="zh-cn")
    uri = editor.open("train.py", DEVICE_MAP)
    assert await editor.execute("ranksafe.setTarget", uri, "simulated:4") == {
        "target": "simulated:4"
    }
    assert await _commands(editor, uri) == [
        ("ranksafe.rehearse", "在 4 个模拟 GPU 上预演"),
        ("ranksafe.fit", "能放下吗？"),
    ]


async def test_another_target_is_on_the_run_lens(start_editor: StartEditor) -> None:
    editor = await start_editor()
    uri = editor.open("train.py", DEVICE_MAP)
    await editor.execute("ranksafe.setTarget", uri, "ssh:gpu-box")
    assert ("ranksafe.run", "Run on ssh:gpu-box") in await _commands(editor, uri)
