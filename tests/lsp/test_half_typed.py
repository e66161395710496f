"""Half-typed text: what is known stays on screen, what only half a statement means does not appear."""

from __future__ import annotations

from lsprotocol import types

from .conftest import DEVICE_MAP, DEVICE_MAP_LINE, StartEditor, pull_capabilities

LINE = DEVICE_MAP.splitlines()[DEVICE_MAP_LINE]


async def test_a_broken_line_elsewhere_keeps_every_finding(start_editor: StartEditor) -> None:
    editor = await start_editor()
    uri = editor.open("train.py", DEVICE_MAP)
    await editor.shown_with(uri, "RS201")
    version = editor.type(uri, 1, 0, "x = (1,\n")
    (finding,) = await editor.version_shown(uri, version)
    assert (finding.code, finding.range.start.line) == ("RS201", DEVICE_MAP_LINE + 1)


async def test_the_finding_of_the_broken_statement_itself_stays(start_editor: StartEditor) -> None:
    editor = await start_editor()
    uri = editor.open("train.py", DEVICE_MAP)
    await editor.shown_with(uri, "RS201")
    version = editor.type(uri, DEVICE_MAP_LINE, len(LINE) - 1, "", delete=1)
    (finding,) = await editor.version_shown(uri, version)
    assert finding.range.start.line == DEVICE_MAP_LINE
    version = editor.type(uri, 0, 0, "# above\n")
    (finding,) = await editor.version_shown(uri, version)
    assert finding.range.start.line == DEVICE_MAP_LINE + 1
    version = editor.type(uri, DEVICE_MAP_LINE + 1, len(LINE) - 1, ")")
    (finding,) = await editor.version_shown(uri, version)
    assert finding.range.start.line == DEVICE_MAP_LINE + 1


async def test_a_text_that_cannot_be_read_at_all_keeps_its_findings(
    start_editor: StartEditor,
) -> None:
    editor = await start_editor()
    uri = editor.open("train.py", DEVICE_MAP)
    await editor.shown_with(uri, "RS201")
    version = editor.type(uri, 2, 0, 'text = """\n')
    (finding,) = await editor.version_shown(uri, version)
    assert finding.range.start.line == DEVICE_MAP_LINE + 1
    start, end = types.Position(2, 0), types.Position(3, 0)
    version = editor.change(
        uri, types.TextDocumentContentChangePartial(types.Range(start, end), "")
    )
    (finding,) = await editor.version_shown(uri, version)
    assert finding.range.start.line == DEVICE_MAP_LINE


async def test_every_key_of_a_line_typed_out_keeps_the_other_findings(
    start_editor: StartEditor,
) -> None:
    editor = await start_editor()
    uri = editor.open("train.py", DEVICE_MAP)
    await editor.shown_with(uri, "RS201")
    editor.type(uri, DEVICE_MAP_LINE, 0, "\n")
    for column, character in enumerate('    names = [f(x) for x in ("a", """b""")]'):
        version = editor.type(uri, DEVICE_MAP_LINE, column, character)
        findings = await editor.version_shown(uri, version)
        assert [one.range.start.line for one in findings] == [DEVICE_MAP_LINE + 1]


async def test_a_finding_that_half_a_statement_would_have_waits_for_a_pause(
    start_editor: StartEditor,
) -> None:
    editor = await start_editor()
    without = DEVICE_MAP.replace(', device_map="auto"', "")
    uri = editor.open("train.py", without)
    assert not await editor.version_shown(uri, 1)
    # The file stays broken below, so the typed line is never part of a text that parses.
    editor.type(uri, DEVICE_MAP_LINE + 3, 0, "    if (\n")
    column = len(without.splitlines()[DEVICE_MAP_LINE]) - 1
    version = editor.type(uri, DEVICE_MAP_LINE, column, ', device_map="auto"')
    first = await editor.version_shown(uri, version)
    assert [one.code for one in first] == []
    await editor.shown_with(uri, "RS201")


async def test_a_broken_file_shows_the_findings_of_its_intact_parts_when_opened(
    start_editor: StartEditor,
) -> None:
    editor = await start_editor()
    uri = editor.open("train.py", DEVICE_MAP + "\nprint((\n")
    await editor.shown_with(uri, "RS201")


async def test_a_pulling_client_is_asked_to_pull_again_after_the_pause(
    start_editor: StartEditor,
) -> None:
    editor = await start_editor(capabilities=pull_capabilities())
    without = DEVICE_MAP.replace(', device_map="auto"', "")
    uri = editor.open("train.py", without)
    await editor.pull(uri)
    editor.type(uri, DEVICE_MAP_LINE + 3, 0, "    if (\n")
    column = len(without.splitlines()[DEVICE_MAP_LINE]) - 1
    asked = editor.client.diagnostic_refresh_count
    editor.type(uri, DEVICE_MAP_LINE, column, ', device_map="auto"')
    report = await editor.pull(uri)
    assert [one.code for one in report.items] == []
    await editor.until(lambda: editor.client.diagnostic_refresh_count > asked)
    report = await editor.pull(uri, report.result_id)
    assert [one.code for one in report.items] == ["RS201"]
