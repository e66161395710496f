"""Runs from the editor: real scripts on CPU ranks, with a real torch."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types

from tests.runs.debug_adapter_client import Debugger

from .conftest import Editor, StartEditor, pull_capabilities

TORCH_PYTHON = os.environ.get("RANKSAFE_TEST_TORCH_PYTHON")

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(
        TORCH_PYTHON is None and os.environ.get("CI") != "true",
        reason="RANKSAFE_TEST_TORCH_PYTHON names no Python with torch and accelerate",
    ),
]

FAILING = """\
import torch.distributed as dist


def scale(value):
    if dist.get_rank() == 1:
        raise ValueError("坏批次 🤗")
    return value


def main():
    dist.init_process_group("gloo")
    scale(1.0)
    dist.barrier()


if __name__ == "__main__":
    main()
"""
RAISING_LINE = FAILING.splitlines().index('        raise ValueError("坏批次 🤗")')
CALLING_LINE = FAILING.splitlines().index("    scale(1.0)")

ENDLESS = """\
import os
import time
from pathlib import Path

import torch


def main():
    Path(__file__).with_name(f"alive-{os.getpid()}").touch()
    time.sleep(600)


if __name__ == "__main__":
    main()
"""


STARTERS = ["ranksafe.run", "ranksafe.rehearse", "ranksafe.smokeRun"]
ABOUT_LAST = ["ranksafe.openReport", "ranksafe.openLog"]
FIT = "ranksafe.fit"


async def _lenses(editor: Editor, uri: str) -> list[tuple[str, str]]:
    lenses = await editor.lenses(uri)
    return [(lens.command.command, lens.command.title) for lens in lenses if lens.command]


async def _log_so_far(editor: Editor) -> dict[str, str]:
    answer: dict[str, str] = {}
    while "log" not in answer:
        await asyncio.sleep(0.1)
        answer = await editor.execute("ranksafe.openLog")
    return answer


async def test_a_failure_is_drawn_on_its_line_until_it_is_mended(
    start_editor: StartEditor,
) -> None:
    editor = await start_editor(locale="zh-cn", options={"python": TORCH_PYTHON})
    uri = editor.open("train.py", FAILING)
    await editor.version_shown(uri, 1)
    await _run(editor, uri)
    await _ended(editor)

    failures = await editor.until(lambda: _failures(editor, uri))
    (failure,) = [one for one in failures if one.severity is types.DiagnosticSeverity.Error]
    line = FAILING.splitlines()[RAISING_LINE]
    assert failure.range.start == types.Position(RAISING_LINE, line.index("raise"))
    # One UTF-16 unit more than characters: the emoji.
    assert failure.range.end == types.Position(RAISING_LINE, len(line) + 1)
    assert "ValueError: 坏批次 🤗（在 rank 1 上）" in failure.message
    # Rank 0 did not raise it: nothing is said of what one GPU would show.
    assert "单 GPU 也会出现" not in failure.message
    assert "其他 rank 是否也会遇到尚不清楚" in failure.message
    chain = [one.location.range.start.line for one in failure.related_information or ()]
    assert chain[0] == CALLING_LINE
    _check_progress(editor)
    kept = (await editor.execute("ranksafe.showRuns", uri, {"show": False}))["runs"][0]
    assert "其他 rank 是否也会遇到尚不清楚" in kept["failures"][0]["explanation"]

    assert [command for command, _ in await _lenses(editor, uri)] == [*STARTERS, *ABOUT_LAST, FIT]
    opened = await editor.execute("ranksafe.openLog")
    assert "ValueError" in Path(opened["log"]).read_text(encoding="utf-8")
    assert editor.client.shown_documents[-1].uri == Path(opened["log"]).as_uri()

    # It moves with its line, and goes when the line is edited.
    version = editor.type(uri, 0, 0, "# moved\n")
    await editor.version_shown(uri, version)
    moved = [one.range.start.line for one in _failures(editor, uri)]
    assert RAISING_LINE + 1 in moved
    editor.type(uri, RAISING_LINE + 1, len("        "), "pass; ")
    await editor.until(
        lambda: RAISING_LINE + 1 not in [one.range.start.line for one in _failures(editor, uri)]
    )


@pytest.mark.long
async def test_the_next_run_that_passes_takes_the_failures_away(
    start_editor: StartEditor,
) -> None:
    editor = await start_editor(capabilities=pull_capabilities(), options={"python": TORCH_PYTHON})
    helper = "def scale(rank):\n    if rank == 1:\n        raise ValueError('bad batch')\n"
    script = FAILING.replace('raise ValueError("坏批次 🤗")', "helper.scale(1)")
    script = f"import helper\n{script}"
    editor.write("helper.py", helper)
    uri = editor.open("train.py", script)
    other = editor.uri("helper.py")
    await _run(editor, uri)
    await _ended(editor)
    # The failing file is not open, so its failure is pushed; the script's own places are pulled.
    assert [one.range.start.line for one in _failures(editor, other)] == [2]
    item = types.TextDocumentItem(other, "python", 1, helper)
    editor.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
    pulled = await editor.pull(other)
    assert [one.source for one in pulled.items] == ["ranksafe run"]
    await editor.until(lambda: not _failures(editor, other))

    mended = helper.replace("rank == 1", "rank == 9")
    editor.write("helper.py", mended)
    editor._versions[other] = 1
    editor.change(other, types.TextDocumentContentChangeWholeDocument(mended))
    await _run(editor, uri)
    await _ended(editor, count=2)
    assert list((await editor.pull(other)).items) == []
    assert list((await editor.pull(uri)).items) == []
    title = dict(await _lenses(editor, uri))["ranksafe.openReport"]
    assert re.fullmatch(r"Passed on 2 ranks, \d+ s: open report", title)


@pytest.mark.long
async def test_a_client_that_tells_of_runs_itself_gets_no_message(
    start_editor: StartEditor,
) -> None:
    editor = await start_editor(options={"python": TORCH_PYTHON, "showsRuns": True})
    uri = editor.open("train.py", FAILING)
    await _run(editor, uri)
    # The log of the run that goes on, not of one before it.
    assert Path((await _log_so_far(editor))["log"]).is_file()
    await _ended(editor)
    await editor.until(lambda: _failures(editor, uri))
    assert not any("train.py" in text for text in editor.messages)


async def test_a_run_is_cancelled_by_its_lens(start_editor: StartEditor) -> None:
    editor = await start_editor(options={"python": TORCH_PYTHON})
    uri = editor.open("train.py", ENDLESS)
    await _run(editor, uri)
    await editor.until(lambda: len(_alive(editor)) == 2)
    assert "already" in (await editor.execute("ranksafe.run", uri))["refused"]
    ranks: list[str] = []
    while len(ranks) < 2:  # One may have its first heartbeat before the other.
        shown = await editor.execute("ranksafe.showStacks")
        stacks = Path(shown["stacks"]).read_text(encoding="utf-8")
        found = re.findall(r"^rank \d", stacks, re.MULTILINE)
        assert len(found) > len(ranks)
        ranks = found
    assert ranks == ["rank 0", "rank 1"]
    assert stacks.count("time.sleep(600)") == 2
    assert editor.client.shown_documents[-1].uri == Path(shown["stacks"]).as_uri()
    (lens,) = await editor.lenses(uri)
    assert lens.command is not None
    assert lens.command.title == "Cancel run"
    await editor.execute(lens.command.command, *(lens.command.arguments or ()))
    await _ended(editor)
    assert _processes(_alive(editor)) == []
    after = await _lenses(editor, uri)
    assert [command for command, _ in after] == [*STARTERS, *ABOUT_LAST, FIT]
    assert re.fullmatch(r"Cancelled after \d+ s: open report", after[3][1])


@pytest.mark.long
async def test_a_run_is_cancelled_by_its_progress_and_by_the_end_of_the_session(
    start_editor: StartEditor,
) -> None:
    editor = await start_editor(options={"python": TORCH_PYTHON})
    uri = editor.open("train.py", ENDLESS)
    await _run(editor, uri)
    await editor.until(lambda: len(_alive(editor)) == 2)
    token = next(iter(editor.client.progress_reports))
    editor.client.window_work_done_progress_cancel(types.WorkDoneProgressCancelParams(token))
    await _ended(editor)
    assert _processes(_alive(editor)) == []

    await _run(editor, uri)
    await editor.until(lambda: len(_alive(editor)) == 4)
    await editor.client.shutdown_session()
    assert _processes(_alive(editor)) == []
    editor.client.capabilities = None


async def test_a_killed_server_leaves_no_process_behind(start_editor: StartEditor) -> None:
    editor = await start_editor(options={"python": TORCH_PYTHON})
    uri = editor.open("train.py", ENDLESS)
    await _run(editor, uri)
    await editor.until(lambda: len(_alive(editor)) == 2)
    server = editor.client._server
    assert server is not None
    editor.client._stop_event.set()
    server.kill()
    await editor.until(lambda: _processes(_alive(editor)) == [])
    editor.client.capabilities = None


async def test_arguments_reach_the_script_and_nothing_of_the_settings_does(
    start_editor: StartEditor,
) -> None:
    editor = await start_editor(
        options={"python": TORCH_PYTHON, "runEnvironment": {"FROM_USER": "yes"}},
        configuration={"runEnvironment": {"FROM_WORKSPACE": "yes"}, "python": "/bin/false"},
    )
    script = (
        "import os, sys, torch\nfrom pathlib import Path\n\n"
        'if __name__ == "__main__":\n'
        '    seen = sys.argv[1:] + [name for name in os.environ if name.startswith("FROM_")]\n'
        '    if os.environ["RANK"] == "0":\n'
        '        Path(__file__).with_name("seen").write_text(" ".join(seen))\n'
    )
    uri = editor.open("train.py", script)
    await editor.execute("ranksafe.setArguments", uri, ["--name", "a b"])
    await _run(editor, uri)
    await _ended(editor)
    assert (editor.folder / "seen").read_text() == "--name a b FROM_USER"


@pytest.mark.long
async def test_a_failure_that_names_a_late_line_can_be_run_again_with_blocking_launches(
    start_editor: StartEditor,
) -> None:
    editor = await start_editor(options={"python": TORCH_PYTHON})
    script = (
        "import os, torch\n\n"
        'if __name__ == "__main__":\n'
        '    if os.environ.get("CUDA_LAUNCH_BLOCKING") != "1":\n'
        '        raise RuntimeError("CUDA error: device-side assert triggered")\n'
    )
    uri = editor.open("train.py", script)
    assert [one for one in await editor.actions(uri, 4) if "BLOCKING" in one.title] == []
    await _run(editor, uri)
    await _ended(editor)
    assert await editor.until(lambda: _failures(editor, uri))
    (again,) = [one for one in await editor.actions(uri, 4) if "BLOCKING" in one.title]
    assert again.command is not None
    assert again.command.command == "ranksafe.run"
    await editor.execute(again.command.command, *again.command.arguments or ())
    await _ended(editor, count=2)
    await editor.until(lambda: not _failures(editor, uri))


async def test_a_missing_interpreter_is_said(start_editor: StartEditor, tmp_path: Path) -> None:
    editor = await start_editor(options={"python": str(tmp_path / "no-python")})
    uri = editor.open("train.py", ENDLESS)
    answer = await editor.execute("ranksafe.smokeRun", uri)
    assert "no-python" in answer["refused"]
    assert editor.messages == [answer["refused"]]


HANGING = """\
import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo")
    if dist.get_rank() == 0:
        dist.all_reduce(torch.ones(1))
    else:
        dist.barrier()


if __name__ == "__main__":
    main()
"""


async def test_a_hang_is_ended_and_drawn_on_the_line_of_each_rank(
    start_editor: StartEditor,
) -> None:
    editor = await start_editor(options={"python": TORCH_PYTHON})
    uri = editor.open("train.py", HANGING)
    await editor.version_shown(uri, 1)
    await _run(editor, uri)
    await _ended(editor)
    failures = await editor.until(lambda: _failures(editor, uri))
    lines = HANGING.splitlines()
    assert sorted(lines[one.range.start.line].strip() for one in failures) == [
        "dist.all_reduce(torch.ones(1))",
        "dist.barrier()",
    ]
    assert all("they took different branches at line 7" in one.message for one in failures)
    assert {one.code for one in failures} == {"RS401"}
    (reports,) = editor.client.progress_reports.values()
    told = [str(getattr(one, "message", "")) for one in reports]
    assert any(one.startswith("the ranks hang") for one in told)


STAYING = """\
import atexit
import os
import signal
import time
from pathlib import Path

import torch
import torch.distributed as dist


def stay():
    while not Path(__file__).with_name("shown").exists():
        time.sleep(0.05)


def main():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    dist.init_process_group("gloo")
    dist.barrier()
    if dist.get_rank() == 1:
        time.sleep(3)  # time for a heartbeat
        end_in_some_way()
    atexit.register(stay)
    dist.all_reduce(torch.ones(4))


if __name__ == "__main__":
    main()
"""
"""Rank 0 loses its connection, and neither its end nor the launcher's SIGTERM makes it leave."""


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs Linux 5.3 and Python 3.9")
@pytest.mark.parametrize(
    ("way", "kind"),
    [
        ('raise ValueError("bad batch")', "exception"),
        pytest.param("os.kill(os.getpid(), 9)", "killed", marks=pytest.mark.long),
    ],
)
async def test_the_cause_is_drawn_while_the_launcher_still_waits_for_another_rank(
    start_editor: StartEditor, way: str, kind: str
) -> None:
    editor = await start_editor(options={"python": TORCH_PYTHON})
    script = STAYING.replace("end_in_some_way()", way)
    uri = editor.open("train.py", script)
    await editor.version_shown(uri, 1)
    await _run(editor, uri)
    (failure,) = await editor.until(lambda: _failures(editor, uri))
    assert _ends(editor) == 0
    assert "(on rank 1)" in failure.message
    line = failure.range.start.line
    assert script.splitlines()[line].strip() in (way, "time.sleep(3)  # time for a heartbeat")
    # What is edited meanwhile stays so: moved, or mended.
    if kind == "exception":
        version = editor.type(uri, 0, 0, "# moved\n")
    else:
        version = editor.type(uri, line, 0, "        pass\n")
        version = editor.type(uri, line + 1, 0, "#")
    await editor.version_shown(uri, version)
    (editor.folder / "shown").touch()
    await _ended(editor)

    # Never was anything else said to be the cause, and the end only adds the rank that lost its connection.
    drawn = [
        one
        for each in editor.published
        for one in each.diagnostics
        if one.source == "ranksafe run" and one.severity is types.DiagnosticSeverity.Error
    ]
    causes = {(one.message.splitlines()[0], (one.data or {})["kind"]) for one in drawn}
    assert causes == {(failure.message.splitlines()[0], kind)}
    at_last = _failures(editor, uri)
    errors = [one for one in at_last if one.severity is types.DiagnosticSeverity.Error]
    assert [one.range.start.line for one in errors] == ([line + 1] if kind == "exception" else [])
    assert ["(on rank 0)" in one.message for one in at_last if one not in errors] == [True]


COMMUNICATING = """\
import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo")
    value = torch.ones(1)
    dist.all_reduce(value)


if __name__ == "__main__":
    main()
"""


@pytest.mark.long
async def test_a_debugger_attaches_with_what_the_answer_says(start_editor: StartEditor) -> None:
    editor = await start_editor(options={"python": TORCH_PYTHON})
    uri = editor.open("train.py", COMMUNICATING)
    answer = await editor.execute("ranksafe.debugRank", uri, 1, {"cpuRanks": 2})
    attach = answer["attach"]
    line = COMMUNICATING.splitlines().index("    dist.all_reduce(value)") + 1

    def debug() -> tuple[str, tuple[str, int]]:
        connect = attach["connect"]
        with Debugger((connect["host"], connect["port"])) as debugger:
            debugger.attach(editor.folder / "train.py", line, attach)
            thread = debugger.stopped()
            rank = debugger.value(thread, "dist.get_rank()")
            # Not into what the agent puts around a collective.
            debugger.ask("stepIn", threadId=thread)
            place = debugger.place(debugger.stopped())
            debugger.ask("continue", threadId=thread)
        return rank, place

    assert await asyncio.to_thread(debug) == ("1", ("<module>", len(COMMUNICATING.splitlines())))
    await _ended(editor)
    title = dict(await _lenses(editor, uri))["ranksafe.openReport"]
    assert re.fullmatch(r"Passed on 2 ranks, \d+ s: open report", title)


async def _run(editor: Editor, uri: str) -> None:
    answer: dict[str, Any] = await editor.execute("ranksafe.run", uri, {"cpuRanks": 2})
    assert answer.get("runId"), answer


async def _ended(editor: Editor, count: int = 1) -> None:
    await editor.until(lambda: _ends(editor) >= count)


def _ends(editor: Editor) -> int:
    """How many runs have ended."""
    reports = editor.client.progress_reports.values()
    return sum(isinstance(one, types.WorkDoneProgressEnd) for each in reports for one in each)


def _check_progress(editor: Editor) -> None:
    (reports,) = editor.client.progress_reports.values()
    first, *_, last = reports
    assert isinstance(first, types.WorkDoneProgressBegin)
    assert first.cancellable
    assert "train.py" in first.title
    assert isinstance(last, types.WorkDoneProgressEnd)
    assert "ValueError" in (last.message or "")


def _failures(editor: Editor, uri: str) -> list[types.Diagnostic]:
    return [one for one in editor.shown(uri) if one.source == "ranksafe run"]


def _alive(editor: Editor) -> list[int]:
    return [int(path.name.removeprefix("alive-")) for path in editor.folder.glob("alive-*")]


def _processes(numbers: list[int]) -> list[str]:
    """Which of the processes are there still."""
    if not numbers:
        return []
    command = ["ps", "-o", "pid=,stat=", "-p", ",".join(map(str, numbers))]
    shown = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return [line for line in shown.splitlines() if "Z" not in line]
