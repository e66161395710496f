"""A rehearsal that follows the saves: real simulated GPUs, a real torch."""

from __future__ import annotations

import os

import pytest
from lsprotocol import types

from .conftest import Editor, StartEditor

TORCH_PYTHON = os.environ.get("RANKSAFE_TEST_TORCH_PYTHON")

pytestmark = [
    pytest.mark.long,
    pytest.mark.torch,
    pytest.mark.skipif(
        TORCH_PYTHON is None and os.environ.get("CI") != "true",
        reason="RANKSAFE_TEST_TORCH_PYTHON names no Python with torch and accelerate",
    ),
]

OPTIONS = {
    "python": TORCH_PYTHON,
    "rehearseOnSave": True,
    "settings": {"select": ["RS401"]},
}

STEP = """\
import torch
import torch.distributed as dist


def step():
    value = torch.ones(2, device="cuda")
    if dist.get_rank() == 0:
        dist.all_reduce(value)
"""
REACHED_BY_ALL = STEP.replace("get_rank() == 0", "get_rank() in ALL_RANKS").replace(
    "\n\n\ndef", "\nfrom settings import ALL_RANKS\n\n\ndef"
)
COLLECTIVE = STEP.splitlines().index("        dist.all_reduce(value)")
SCRIPT = """\
import os

import torch
import torch.distributed as dist

from steps import step

if __name__ == "__main__":
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    step()
    dist.destroy_process_group()
"""


async def test_a_saved_import_is_rehearsed_again(start_editor: StartEditor) -> None:
    editor = await start_editor(options=OPTIONS)
    script = editor.open("train.py", SCRIPT)
    uri = editor.open("steps.py", STEP)
    (finding,) = await editor.shown_with(uri, "RS401")
    assert "simulated" not in finding.message

    # Nothing was rehearsed yet, so nothing is rehearsed again.
    _save(editor, uri, STEP)
    assert not editor.client.progress_reports
    assert (await editor.execute("ranksafe.rehearse", script)).get("runId")
    await _ended(editor, 1)
    await editor.until(lambda: "Confirmed on 2 simulated GPUs." in _finding(editor, uri))
    assert _failures(editor, uri)

    # The collective leaves the branch; the next save shows that all is well.
    mended = STEP.replace("        dist.all_reduce", "    dist.all_reduce").replace(
        "    if dist.get_rank() == 0:\n", ""
    )
    _save(editor, uri, mended)
    await _ended(editor, 2)
    await editor.until(lambda: not editor.shown(uri))
    kinds = [command.command for each in await editor.lenses(script) if (command := each.command)]
    assert "ranksafe.run" in kinds
    assert not editor.messages[1:], "who did not start it is not told of its end"


async def test_the_next_save_ends_the_rehearsal_before(start_editor: StartEditor) -> None:
    editor = await start_editor(options=OPTIONS)
    waiting = SCRIPT.replace("    step()\n", "    step()\n    time.sleep(WAIT)\n")
    waiting = "import time\n\nWAIT = 0\n" + waiting.replace("from steps import step\n", "")
    waiting = waiting.replace("    step()\n", "")
    uri = editor.open("train.py", waiting)
    assert (await editor.execute("ranksafe.rehearse", uri)).get("runId")
    await _ended(editor, 1)

    endless = waiting.replace("WAIT = 0", "WAIT = 1000")
    _save(editor, uri, endless)
    await editor.until(lambda: len(editor.client.progress_reports) == 2)
    _save(editor, uri, waiting)
    await _ended(editor, 3)
    assert not _failures(editor, uri)
    runs = (await editor.execute("ranksafe.showRuns", uri, {"show": False}))["runs"]
    assert runs[0]["outcome"] == "succeeded"
    assert "succeeded" not in [run["outcome"] for run in runs[1:-1]]


def _save(editor: Editor, uri: str, text: str) -> None:
    editor.write(uri.rpartition("/")[2], text)
    editor.change(uri, types.TextDocumentContentChangeWholeDocument(text))
    editor.client.text_document_did_save(
        types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(uri))
    )


def _finding(editor: Editor, uri: str) -> str:
    return "".join(one.message for one in editor.shown(uri) if one.source == "ranksafe")


def _failures(editor: Editor, uri: str) -> list[types.Diagnostic]:
    return [one for one in editor.shown(uri) if one.source == "ranksafe run"]


async def _ended(editor: Editor, count: int) -> None:
    def ends() -> int:
        reports = editor.client.progress_reports.values()
        return sum(isinstance(one, types.WorkDoneProgressEnd) for each in reports for one in each)

    await editor.until(lambda: ends() >= count)
