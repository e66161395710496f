"""Does it fit? Asked in an editor: real forecasts, of a real torch."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from lsprotocol import types
from ranksafe.checker.finding import Level
from ranksafe.localization import Translated
from ranksafe.lsp.fit_findings import Answer, findings_of_answer
from ranksafe.lsp.run_findings import RunFinding, RunFindings
from ranksafe.rehearsal.settings import RehearsalOptions
from ranksafe.runs.fit import as_forecast, forecast_of
from ranksafe.runs.fit_arguments import Exposed
from ranksafe.runs.model import (
    Frame,
    MemoryLine,
    MemoryPeak,
    Outcome,
    RunRequest,
    RunResult,
)
from ranksafe.source.position import Position, Range

from .conftest import DEVICE_MAP, Editor, StartEditor, pull_capabilities

TORCH_PYTHON = os.environ.get("RANKSAFE_TEST_TORCH_PYTHON")
OPTIONS = {"python": TORCH_PYTHON}

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="simulated GPUs are there for Linux only"
)
needs_torch = pytest.mark.skipif(
    TORCH_PYTHON is None and os.environ.get("CI") != "true",
    reason="RANKSAFE_TEST_TORCH_PYTHON names no Python with torch and accelerate",
)

LAYERS = """\
import argparse

import torch
from torch import nn

WIDTH = 4096


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=131072)
    parser.add_argument("--gradient-accumulation-steps", type=int, default=1)
    arguments = parser.parse_args()
    model = nn.Sequential(*(nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    for _ in range(3):
        for _ in range(arguments.gradient_accumulation_steps):
            batch = torch.randn(arguments.batch_size, WIDTH, device="cuda")
            loss = model(batch).square().sum()
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main()
"""
ON_T4 = {"gpus": 1, "deviceModel": "t4"}


def _line(text: str) -> int:
    return next(number for number, line in enumerate(LAYERS.splitlines()) if text in line)


async def _lenses(editor: Editor, uri: str) -> dict[str, str]:
    lenses = await editor.lenses(uri)
    return {lens.command.title: lens.command.command for lens in lenses if lens.command}


def _found(editor: Editor, uri: str) -> list[types.Diagnostic]:
    return [one for one in editor.shown(uri) if one.source == "ranksafe fit"]


def _ends(editor: Editor) -> list[str]:
    reports = editor.client.progress_reports.values()
    ends = (one for each in reports for one in each if isinstance(one, types.WorkDoneProgressEnd))
    return [one.message or "" for one in ends]


async def _forecast(editor: Editor, uri: str, options: object = None) -> str:
    before = len(_ends(editor))
    answer = await editor.execute("ranksafe.fit", uri, options)
    assert answer.get("forecastId"), answer
    await editor.until(lambda: len(_ends(editor)) > before)
    return _ends(editor)[-1]


def _save(editor: Editor, uri: str, text: str) -> None:
    editor.write(uri.rpartition("/")[2], text)
    editor.change(uri, types.TextDocumentContentChangeWholeDocument(text))
    editor.client.text_document_did_save(
        types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(uri))
    )


@pytest.mark.parametrize(
    ("locale", "asked", "chosen"),
    [
        ("en", "Does it fit?", "Does it fit 8 × H100?"),
        ("zh-cn", "能放下吗？", "8 × H100 能放下吗？"),
    ],
)
async def test_the_question_stands_over_the_entry_for_the_gpus_that_were_chosen(
    start_editor: StartEditor, locale: str, asked: str, chosen: str
) -> None:
    editor = await start_editor(locale=locale)
    uri = editor.open("train.py", DEVICE_MAP)
    lenses = await _lenses(editor, uri)
    assert list(lenses)[-1] == asked
    assert lenses[asked] == "ranksafe.fit"
    known = await editor.execute("ranksafe.setFitDevices", uri)
    assert (known["gpus"], known["deviceModel"], known["isChosen"]) == (2, "h100", False)
    assert {"key": "t4", "name": "Tesla T4", "gib": 14.6} in known["models"]
    known = await editor.execute("ranksafe.setFitDevices", uri, {"gpus": 8})
    assert (known["gpus"], known["deviceModel"], known["isChosen"]) == (8, "h100", True)
    assert chosen in await _lenses(editor, uri)
    # The next session knows it, too.
    again = await start_editor(locale=locale)
    uri = again.open("train.py", DEVICE_MAP)
    assert chosen in await _lenses(again, uri)


async def test_a_script_is_asked_about_for_as_many_gpus_as_it_is_rehearsed_on(
    start_editor: StartEditor,
) -> None:
    editor = await start_editor()
    uri = editor.open("train.py", DEVICE_MAP)
    await editor.execute("ranksafe.setTarget", uri, "simulated:4")
    assert (await editor.execute("ranksafe.setFitDevices", uri))["gpus"] == 4
    commands = list((await _lenses(editor, uri)).values())
    assert commands == ["ranksafe.rehearse", "ranksafe.fit"]


async def test_nothing_is_forecast_where_that_is_refused(start_editor: StartEditor) -> None:
    editor = await start_editor(options={"trusted": False})
    uri = editor.open("train.py", DEVICE_MAP)
    for command in ("ranksafe.fit", "ranksafe.setFitDevices"):
        assert "trusted" in (await editor.execute(command, uri))["refused"]
    editor.client.protocol.notify("ranksafe/trust", {"trusted": True})
    answer = await editor.execute("ranksafe.fit", uri, {"deviceModel": "h999"})
    assert "no device model `h999`" in answer["refused"]
    editor.type(uri, 0, 0, "# typed\n")
    assert "Save first" in (await editor.execute("ranksafe.fit", uri))["refused"]
    assert not editor.client.progress_reports


@needs_torch
@pytest.mark.torch
@pytest.mark.long
async def test_memory_that_runs_out_is_drawn_on_its_line_with_what_holds_it(
    start_editor: StartEditor,
) -> None:
    editor = await start_editor(options=OPTIONS)
    uri = editor.open("train.py", LAYERS)
    answer = await editor.execute("ranksafe.fit", uri, ON_T4)
    lenses = await _lenses(editor, uri)
    assert lenses == {"Cancel forecast": "ranksafe.cancelRun"}
    assert "is running already" in (await editor.execute("ranksafe.rehearse", uri))["refused"]
    await editor.until(lambda: _ends(editor))
    assert answer["forecastId"]
    titles = [one.title for each in editor.client.progress_reports.values() for one in each[:1]]
    assert titles == ["Does train.py fit 1 × T4?"]

    (found,) = await editor.until(lambda: _found(editor, uri))
    assert found.severity is types.DiagnosticSeverity.Error
    assert found.code == "does-not-fit"
    assert found.range.start.line == _line("loss.backward()")
    head, error = found.message.split("\n", 1)
    assert head.startswith("does not fit 1 × Tesla T4: needs ")
    assert "Tried to allocate 2.00 GiB" in error
    assert _ends(editor) == [f"train.py {head}"]
    await editor.until(lambda: f"train.py {head}" in editor.messages)

    related = found.related_information or []
    told = [(one.location.range.start.line, one.message) for one in related]
    assert told[0][1].startswith("peak in a ")
    assert told[1][1].startswith("held then, in GiB: parameters ")
    by_line = dict(told[2:])
    assert by_line[_line("model(batch)")] == "8.0 GiB at train.py:19: activations (blocks: 4)"
    assert by_line[_line("model = ")] == "0.25 GiB at train.py:14: parameters (blocks: 4)"

    lenses = await _lenses(editor, uri)
    (title,) = [each for each in lenses if each.startswith("Does not fit 1 × T4: at least ")]
    assert title.endswith(" of 14.6 GiB")
    assert lenses[title] == "ranksafe.fit"
    assert lenses["What would make it fit?"] == "ranksafe.fit"
    lens = (await editor.lenses(uri))[-1].command
    assert lens is not None
    assert (lens.title, lens.command) == ("Timeline", "ranksafe.openReport")
    shown = await editor.execute(lens.command, *(lens.arguments or ()))
    assert head in Path(shown["report"]).read_text("utf-8")

    entry = LAYERS.splitlines().index('if __name__ == "__main__":')
    hover = await editor.hover(uri, entry, 2)
    assert hover is not None
    assert head in hover.replace("\\", "")
    assert "- seen: 3 optimizer steps, with the batches that came" in hover
    assert "ranksafe fit train.py --gpus 1 --device-model t4\n" in hover

    # Half of it fits. The devices are those of the last time.
    _save(editor, uri, LAYERS.replace("131072", "65536"))
    assert f"{title} (before the last edits)" in await _lenses(editor, uri)
    assert (await _forecast(editor, uri)).startswith("train.py fits 1 × Tesla T4: needs ")
    await editor.until(lambda: not _found(editor, uri))
    lenses = await _lenses(editor, uri)
    (title,) = [each for each in lenses if each.startswith("Fits 1 × T4: ")]
    assert "What would make it fit?" not in lenses


@needs_torch
@pytest.mark.torch
@pytest.mark.long
async def test_what_would_make_it_fit_is_found_told_and_written_into_the_script(
    start_editor: StartEditor, applied: Callable[[str, Sequence[types.TextEdit]], str]
) -> None:
    editor = await start_editor(options=OPTIONS)
    uri = editor.open("train.py", LAYERS)
    batch, column = _line("--batch-size"), LAYERS.splitlines()[_line("--batch-size")].index("batch")
    assert await editor.hover(uri, batch, column) is None
    assert not await _for_memory(editor, uri, batch)

    await _forecast(editor, uri, ON_T4)
    hover = await editor.hover(uri, batch, column)
    assert hover is not None
    assert "ranksafe fit train.py --gpus 1 --device-model t4\n" in hover
    assert not await _for_memory(editor, uri, batch)
    (found,) = await editor.until(lambda: _found(editor, uri))
    (search,) = await _for_memory(editor, uri, found.range.start.line)
    assert search.command is not None
    assert not search.edit
    before = len(_ends(editor))
    await editor.execute(search.command.command, *(search.command.arguments or ()))
    await editor.until(lambda: len(_ends(editor)) > before)
    assert "ranksafe.fit" in (await _lenses(editor, uri)).values()
    # It went on from what was known: on the bounded device nothing ran again.
    runs = (await editor.execute("ranksafe.showRuns", uri, {"show": False}))["runs"]
    assert [run["outcome"] for run in runs].count("failed") == 1

    change = "--batch-size 131072 → 65536, --gradient-accumulation-steps 1 → 2"
    assert _ends(editor)[-1].endswith(f". the least change that fits: {change}")
    hover = await editor.hover(uri, batch, column)
    assert hover is not None
    assert f"The largest that was tried and fits: {change} (needs " in hover
    words = "--batch-size 65536 --gradient-accumulation-steps 2"
    assert f"ranksafe fit train.py --gpus 1 --device-model t4 -- {words}\n" in hover
    assert await editor.hover(uri, _line("optimizer = "), 6) is None

    (fix,) = await _for_memory(editor, uri, batch)
    assert fix.title.startswith(f"{change}: fits, needs ")
    (same,) = await _for_memory(editor, uri, found.range.start.line)
    assert (same.title, same.is_preferred) == (fix.title, True)
    assert [one.message for one in same.diagnostics or ()] == [found.message]
    assert fix.edit is not None
    (changes,) = fix.edit.document_changes or ()
    text = applied(LAYERS, changes.edits)  # type: ignore[union-attr, arg-type]
    assert text == LAYERS.replace("=131072", "=65536").replace("default=1)", "default=2)")
    _save(editor, uri, text)
    # Of another text nothing was seen.
    assert not await _for_memory(editor, uri, batch)
    assert (await _forecast(editor, uri)).startswith("train.py fits 1 × Tesla T4: needs ")
    await editor.until(lambda: not _found(editor, uri))


@needs_torch
@pytest.mark.torch
@pytest.mark.long
async def test_what_the_script_alone_says_is_tried_without_touching_it(
    start_editor: StartEditor, applied: Callable[[str, Sequence[types.TextEdit]], str]
) -> None:
    text = "from torch.utils.data import DataLoader\n" + "\n".join(
        line for line in LAYERS.splitlines() if "arg" not in line or "arguments.b" in line
    )
    text = text.replace("arguments.batch_size", "len(rows) * 65536").replace(
        "    for _ in range(3):", "    for rows in DataLoader(range(99), batch_size=3):"
    )
    text = text.replace("            ", "        ")
    editor = await start_editor(options=OPTIONS, locale="zh-cn")
    uri = editor.open("train.py", text)
    lines = text.splitlines()
    (line,) = [number for number, each in enumerate(lines) if "batch_size=3" in each]
    await _forecast(editor, uri, {**ON_T4, "search": True})
    hover = await editor.hover(uri, line, lines[line].index("batch_size"))
    assert hover is not None
    change = f"train.py:{line + 1} batch_size=3 → 1"
    assert f"尝试过且能放下的最大值：{change}（需要 " in hover.replace("\\", "")
    assert "修改之后：" in hover
    assert "ranksafe fit train.py --gpus 1 --device-model t4\n" in hover
    (fix,) = await _for_memory(editor, uri, line)
    assert fix.title.startswith(f"{change}：可放入，")
    assert fix.edit is not None
    (changes,) = fix.edit.document_changes or ()
    edits = changes.edits  # type: ignore[union-attr]
    assert applied(text, edits) == text.replace("=3", "=1")  # type: ignore[arg-type]
    assert (editor.folder / "train.py").read_text(encoding="utf-8") == text


async def _for_memory(editor: Editor, uri: str, line: int) -> list[types.CodeAction]:
    actions = await editor.actions(uri, line, only=["quickfix"])
    return [
        one
        for one in actions
        if one.edit or (one.command and one.command.command == "ranksafe.fit")
    ]


@needs_torch
@pytest.mark.torch
async def test_a_forecast_is_cancelled_by_its_lens_and_by_its_progress(
    start_editor: StartEditor,
) -> None:
    editor = await start_editor(options=OPTIONS, locale="zh-cn", capabilities=pull_capabilities())
    uri = editor.open(
        "train.py", "import time\n" + LAYERS.replace("    main()\n", "    time.sleep(600)\n")
    )
    for count in (1, 2):
        answer = await editor.execute("ranksafe.fit", uri, ON_T4)
        assert answer["forecastId"]
        if count == 1:
            (lens,) = await editor.lenses(uri)
            assert lens.command is not None
            assert lens.command.title == "取消预测"
            await editor.execute(lens.command.command, *(lens.command.arguments or ()))
        else:
            token = list(editor.client.progress_reports)[-1]
            editor.client.window_work_done_progress_cancel(
                types.WorkDoneProgressCancelParams(token)
            )
        await editor.until(lambda count=count: len(_ends(editor)) == count)
    assert _ends(editor) == ["train.py 的显存预测已取消。"] * 2
    assert "1 × T4 能放下吗？" in await _lenses(editor, uri)
    assert not editor.messages


@needs_torch
@pytest.mark.torch
@pytest.mark.long
async def test_a_script_that_fails_otherwise_has_its_failure_drawn_and_no_answer(
    start_editor: StartEditor,
) -> None:
    editor = await start_editor(options=OPTIONS)
    text = LAYERS.replace("for _ in range(3):", "raise ValueError('bad batch')\n    for _ in [0]:")
    text = text.replace("WIDTH = 4096", "from sizes import WIDTH")
    editor.write("sizes.py", "WIDTH = 4096\n")
    uri = editor.open("train.py", text)
    await _forecast(editor, uri, ON_T4)
    (found,) = await editor.until(lambda: _found(editor, uri))
    assert "ValueError: bad batch" in found.message
    await editor.until(lambda: "ValueError: bad batch" in "".join(editor.messages))
    assert list(await _lenses(editor, uri))[-2:] == ["Does it fit 1 × T4?", "No forecast: open log"]
    lens = (await editor.lenses(uri))[-1]
    assert lens.command is not None
    opened = await editor.execute(lens.command.command, *(lens.command.arguments or ()))
    assert "ValueError: bad batch" in Path(opened["log"]).read_text(encoding="utf-8")


@needs_torch
@pytest.mark.torch
async def test_an_answer_is_of_before_the_edits_when_an_import_was_saved(
    start_editor: StartEditor,
) -> None:
    editor = await start_editor(options=OPTIONS)
    text = LAYERS.replace("WIDTH = 4096", "from sizes import WIDTH").replace("131072", "64")
    editor.write("sizes.py", "WIDTH = 4096\n")
    uri = editor.open("train.py", text)
    await _forecast(editor, uri, ON_T4)
    (title,) = [each for each in await _lenses(editor, uri) if each.startswith("Fits 1 × T4: ")]
    sizes = editor.open("sizes.py", "WIDTH = 4096\n")
    _save(editor, sizes, "WIDTH = 4000\n")
    assert f"{title} (before the last edits)" in await _lenses(editor, uri)


def test_a_run_leaves_the_forecast_alone_and_the_other_way_round(tmp_path: Path) -> None:
    script, place = tmp_path / "train.py", Range(Position(3, 0), Position(3, 9))
    of_run = RunFinding(
        script=script,
        run_id="1",
        path=script,
        range=place,
        code=None,
        kind="user-error",
        message=Translated("failed", ""),
        related=(),
        level=Level.ERROR,
        told=place,
    )
    of_forecast = replace(of_run, kind="does-not-fit", of_forecast=True)
    findings = RunFindings()
    findings.update(script, [of_run])
    findings.replace(script, [of_forecast], of_forecast=True)
    assert findings.all() == [of_run, of_forecast]
    findings.update(script, [])
    assert findings.all() == [of_forecast]
    findings.update(script, [of_run])
    findings.update(script, [], of_forecast=True)
    assert findings.all() == [of_run]

    # What an edit has taken away does not come back while the search for what would fit goes on.
    findings.update(script, [of_forecast], of_forecast=True)
    findings.of(script).remove(of_forecast)
    findings.update(script, [of_forecast], of_forecast=True)
    assert findings.all() == [of_run]
    again = replace(of_forecast, run_id="2")
    findings.update(script, [again], of_forecast=True)
    assert findings.all() == [of_run, again]


def test_what_is_tight_is_a_warning_where_most_is_held(tmp_path: Path) -> None:
    script, size = tmp_path / "train.py", 20 * 2**30
    frames = (Frame(str(script), 8, "main", in_user_code=True), Frame("/lib/model.py", 88, "call"))
    peak = MemoryPeak(
        *(0, 0, size, size, 0, 0, "forward", 2, 3, frames, {}, 0),
        parts={"activations": size},
        lines=(MemoryLine("activations", size, 9, frames),),
    )
    result = RunResult(
        *("7", Outcome.SUCCEEDED, "simulated:1", (), (), (), (), (), 1.0, None, None),
        memory=(peak,),
    )
    options = RehearsalOptions(device_model="h100", memory_bytes=21 * 2**30)
    request = as_forecast(RunRequest(script, "simulated:1", rehearsal=options))
    forecast = forecast_of(request, 1, result, None)
    answer = Answer(request, 1, Exposed({}, {}), ("main()",), result, forecast)
    (found,) = findings_of_answer(answer)
    assert (found.level, found.kind, found.path) == (Level.WARNING, "tight", script)
    assert found.range.start.line == 7
    assert found.message.en.startswith("tight on 1 × NVIDIA H100 80GB HBM3: needs ")
    assert [(each.path, each.range.start.line) for each in found.related] == [(script, 7)] * 3
    assert answer.title("main()\n") == answer.title("main()")
    assert (answer.title("main(1)") or found.message).en.endswith("(before the last edits)")
