"""Reports, history and logs in the editor, of real runs of a script that needs no torch."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types

from .conftest import Editor, StartEditor

FAILING = """\
STARTED_BY = "torch: mp.spawn()"  # one plain process


def scale(value):
    raise ValueError("bad batch <script>")


if __name__ == "__main__":
    scale(1)
"""
RAISING_LINE = 4


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the server keeps its runs."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "ranksafe"


async def _ran(start_editor: StartEditor, **options: Any) -> tuple[Editor, str, str]:
    """An editor whose script has failed once, with the script's URI and the run's id."""
    editor = await start_editor(options={"python": sys.executable}, **options)
    uri = editor.open("train.py", FAILING)
    await editor.version_shown(uri, 1)
    answer = await editor.execute("ranksafe.run", uri)
    await editor.until(lambda: any("ValueError" in text for text in editor.messages))
    return editor, uri, answer["runId"]


def _shown(editor: Editor) -> types.ShowDocumentParams:
    return editor.client.shown_documents[-1]


async def test_the_report_of_the_last_run_is_shown(start_editor: StartEditor, cache: Path) -> None:
    editor, uri, run_id = await _ran(start_editor, locale="zh-cn")
    offered = {one.command.command: one.command for one in await editor.lenses(uri) if one.command}
    command = offered["ranksafe.openReport"]
    assert re.fullmatch(r"\d+ 秒后失败：打开报告", command.title)
    assert list(command.arguments or ()) == [run_id]
    answer = await editor.execute(command.command, run_id)
    report = Path(answer["report"])
    assert report == cache / "runs" / run_id / "report.html"
    assert report.stat().st_mode & 0o077 == 0
    assert (_shown(editor).uri, _shown(editor).external) == (report.as_uri(), True)
    text = report.read_text(encoding="utf-8")
    assert '<html lang="zh-CN">' in text
    assert "bad batch &lt;script&gt;" in text

    assert await editor.execute("ranksafe.openReport") == answer
    for wrong in ("none", str(report.parent), "../" + run_id):
        assert "refused" in await editor.execute("ranksafe.openReport", wrong)


async def test_the_history_is_listed_or_handed_over(start_editor: StartEditor, cache: Path) -> None:
    editor, uri, run_id = await _ran(start_editor)
    given = await editor.execute("ranksafe.showRuns", uri, {"show": False})
    (run,) = given["runs"]
    assert (run["run_id"], run["outcome"]) == (run_id, "failed")
    (failure, *_) = run["failures"]
    assert failure["location"]["row"] == RAISING_LINE + 1
    assert failure["frames"][-1]["location"]["row"] == RAISING_LINE + 1
    assert failure["explanation"]
    assert [rank["rank"] for rank in run["ranks"]] == [0]
    assert await editor.execute("ranksafe.showRuns", uri, {"show": False, "run": run_id}) == given
    other = await editor.execute("ranksafe.showRuns", uri, {"show": False, "run": "other"})
    assert other == {"runs": []}
    assert "page" not in given
    assert editor.client.shown_documents == []

    answer = await editor.execute("ranksafe.showRuns")
    page = Path(answer["page"])
    assert _shown(editor).uri == page.as_uri()
    text = page.read_text(encoding="utf-8")
    link = f"runs/{run_id}/report.html"
    assert f'href="{link}"' in text
    assert (page.parent / link).is_file()
    assert page.stat().st_mode & 0o077 == 0


async def test_a_log_of_another_machine_is_drawn_on_the_files_here(
    start_editor: StartEditor, cache: Path
) -> None:
    editor = await start_editor()
    uri = editor.open("src/train.py", "# a new line\n" + FAILING)
    await editor.version_shown(uri, 1)
    log = editor.write("job.log", LOG)
    answer = await editor.execute("ranksafe.annotateFromLog", log.as_uri())
    assert answer["failures"] == 1

    def drawn() -> list[types.Diagnostic]:
        return [one for one in editor.shown(uri) if one.source == "ranksafe run"]

    (failure,) = await editor.until(drawn)
    # The log says line 5; a line was added above since.
    assert failure.range.start.line == RAISING_LINE + 1
    assert "bad batch" in failure.message
    assert "the line was found by its text" in failure.message
    assert any("job.log" in text for text in editor.messages)

    log.write_text("all is well\n")
    answer = await editor.execute("ranksafe.annotateFromLog", log.as_uri())
    assert answer["failures"] == 0
    await editor.until(lambda: not drawn())
    assert "refused" in await editor.execute("ranksafe.annotateFromLog", editor.uri("missing.log"))
    assert "refused" in await editor.execute("ranksafe.annotateFromLog", "untitled:x")


LOG = """\
[rank 1] Traceback (most recent call last):
[rank 1]   File "/job/4711/project/src/train.py", line 9, in <module>
[rank 1]     scale(1)
[rank 1]   File "/job/4711/project/src/train.py", line 5, in scale
[rank 1]     raise ValueError("bad batch <script>")
[rank 1] ValueError: bad batch <script>
"""


async def test_a_command_waits_for_the_settings(start_editor: StartEditor) -> None:
    editor = await start_editor(configuration={"gpus": 4}, settings_after=1)
    uri = editor.open("train.py", FAILING)
    options = {"show": False}
    answer = await editor.execute("ranksafe.launchCommand", uri, "skypilot", options)
    assert "accelerators: H100:4\n" in answer["text"]


async def test_a_launch_is_put_into_other_engines_words(
    start_editor: StartEditor, cache: Path
) -> None:
    editor = await start_editor(configuration={"gpus": 4, "launcher": "torchrun"})
    uri = editor.open("train.py", FAILING)
    await editor.version_shown(uri, 1)
    await editor.execute("ranksafe.setArguments", uri, ["--name", "a b"])
    entry = FAILING.splitlines().index('if __name__ == "__main__":')
    actions = [one for one in await editor.actions(uri, entry) if one.command]
    (command,) = [one.command for one in actions if one.title.startswith("Launch command for")]
    assert command is not None
    assert [one.title for one in await editor.actions(uri, 0) if one.command] == []

    options = {"show": False, "nodes": 2}
    answer = await editor.execute(command.command, *(command.arguments or ()), "skypilot", options)
    assert "accelerators: H100:4\nnum_nodes: 2\n" in answer["text"]
    assert "torchrun --nproc_per_node=4" in answer["text"]
    assert answer["text"].rstrip().endswith("train.py --name 'a b'")
    assert editor.client.shown_documents == []

    answer = await editor.execute(command.command, uri, "ray")
    shown = cache / "launch" / "train.sh"
    assert _shown(editor).uri == shown.as_uri()
    assert shown.read_text() == answer["text"]
