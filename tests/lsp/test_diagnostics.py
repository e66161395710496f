"""Findings as the editor shows them: pushed, pulled, in both languages, at the right columns."""

from __future__ import annotations

import pytest
from lsprotocol import types

from .conftest import (
    DEVICE_MAP,
    DEVICE_MAP_LINE,
    StartEditor,
    pull_capabilities,
    push_capabilities,
)


async def test_a_finding_is_pushed_with_all_that_belongs_to_it(start_editor: StartEditor) -> None:
    editor = await start_editor(options={"settings": {"launcher": "accelerate", "gpus": 4}})
    uri = editor.open("train.py", DEVICE_MAP)
    (finding,) = await editor.shown_with(uri, "RS201")

    assert finding.range.start.line == DEVICE_MAP_LINE
    line = DEVICE_MAP.splitlines()[DEVICE_MAP_LINE]
    assert line[finding.range.start.character : finding.range.end.character] == '"auto"'
    assert finding.severity in (types.DiagnosticSeverity.Error, types.DiagnosticSeverity.Warning)
    assert finding.source == "ranksafe"
    assert finding.code_description is not None
    assert "rs201" in finding.code_description.href
    assert finding.data["name"] == "device-map-in-distributed-training"
    assert finding.related_information
    related = finding.related_information[0].location
    assert (related.uri, related.range.start.line) == (uri, DEVICE_MAP_LINE + 1)


async def test_a_comment_that_silences_nothing_is_shown_as_unnecessary(
    start_editor: StartEditor,
) -> None:
    editor = await start_editor()
    uri = editor.open("train.py", "import torch  # ranksafe: ignore[RS201]\n")
    (finding,) = await editor.shown_with(uri, "RS001")
    assert list(finding.tags or ()) == [types.DiagnosticTag.Unnecessary]


async def test_messages_come_in_the_clients_language(start_editor: StartEditor) -> None:
    english = await start_editor(locale="en-GB")
    chinese = await start_editor(locale="zh-cn")
    texts = []
    for editor in (english, chinese):
        uri = editor.open("train.py", DEVICE_MAP)
        (finding,) = await editor.shown_with(uri, "RS201")
        texts.append(finding.message)
    assert texts[0].isascii()
    assert any("\u4e00" <= character <= "\u9fff" for character in texts[1])


async def test_the_users_language_setting_wins_over_the_locale(start_editor: StartEditor) -> None:
    editor = await start_editor(locale="en", options={"locale": "zh-cn"})
    uri = editor.open("train.py", DEVICE_MAP)
    (finding,) = await editor.shown_with(uri, "RS201")
    assert not finding.message.isascii()


async def test_closing_a_file_takes_its_findings_away(start_editor: StartEditor) -> None:
    editor = await start_editor()
    uri = editor.open("train.py", DEVICE_MAP)
    await editor.shown_with(uri, "RS201")
    editor.close(uri)
    await editor.shown_with(uri)


async def test_every_version_gets_its_diagnostics(start_editor: StartEditor) -> None:
    editor = await start_editor()
    uri = editor.open("train.py", DEVICE_MAP)
    await editor.shown_with(uri, "RS201")
    column = DEVICE_MAP.splitlines()[DEVICE_MAP_LINE].index('"auto"')
    version = editor.type(uri, DEVICE_MAP_LINE, column, '"cpu"', delete=6)
    assert not await editor.version_shown(uri, version)
    version = editor.type(uri, DEVICE_MAP_LINE, column, '"auto"', delete=5)
    assert [one.code for one in await editor.version_shown(uri, version)] == ["RS201"]


async def test_a_client_that_sends_whole_texts_is_served_too(start_editor: StartEditor) -> None:
    editor = await start_editor()
    uri = editor.open("train.py", "import torch\n")
    await editor.version_shown(uri, 1)
    version = editor.change(uri, types.TextDocumentContentChangeWholeDocument(DEVICE_MAP))
    assert [one.code for one in await editor.version_shown(uri, version)] == ["RS201"]


async def test_several_changes_in_one_message_are_applied_in_order(
    start_editor: StartEditor,
) -> None:
    editor = await start_editor()
    uri = editor.open("train.py", DEVICE_MAP)
    await editor.shown_with(uri, "RS201")
    line = DEVICE_MAP.splitlines()[DEVICE_MAP_LINE]
    column = line.index('"auto"')
    version = editor.change(
        uri,
        _insert(0, 0, "import os\n"),
        _insert(DEVICE_MAP_LINE + 1, column, '"a" + '),
        _insert(0, 0, "# first\n"),
    )
    await editor.version_shown(uri, version)
    version = editor.change(uri, _replace(DEVICE_MAP_LINE + 2, column, column + 6, ""))
    (finding,) = await editor.version_shown(uri, version)
    assert finding.range.start.line == DEVICE_MAP_LINE + 2
    assert finding.range.start.character == column


@pytest.mark.parametrize(
    ("encoding", "emoji_units"),
    [
        (types.PositionEncodingKind.Utf8, 4 + 3 + 3),
        (types.PositionEncodingKind.Utf16, 2 + 1 + 1),
        (types.PositionEncodingKind.Utf32, 3),
    ],
)
async def test_columns_are_right_after_chinese_and_emoji(
    start_editor: StartEditor, encoding: types.PositionEncodingKind, emoji_units: int
) -> None:
    capabilities = push_capabilities()
    capabilities.general = types.GeneralClientCapabilities(position_encodings=[encoding])
    editor = await start_editor(capabilities=capabilities)
    assert editor.answer.capabilities.position_encoding == encoding

    uri = editor.open("train.py", DEVICE_MAP.replace('"gpt2"', '"🤗中文"'))
    (finding,) = await editor.shown_with(uri, "RS201")
    head = '    model = AutoModelForCausalLM.from_pretrained("'
    column = len(head) + emoji_units + len('", device_map=')
    assert finding.range.start.character == column
    assert finding.range.end.character == column + 6

    # And the other way: an edit behind the same characters.
    version = editor.type(uri, DEVICE_MAP_LINE, column, '"cpu"', delete=6)
    assert not await editor.version_shown(uri, version)


async def test_form_feeds_and_carriage_returns_keep_the_lines_right(
    start_editor: StartEditor,
) -> None:
    editor = await start_editor()
    text = "\f\r\n# a\u2028b\r\n" + DEVICE_MAP.replace("\n", "\r\n")
    editor.write("train.py", "")
    uri = editor.open("train.py", text, save=False)
    (finding,) = await editor.shown_with(uri, "RS201")
    assert finding.range.start.line == DEVICE_MAP_LINE + 2


# -- pulled


async def test_a_client_that_pulls_is_not_pushed(start_editor: StartEditor) -> None:
    editor = await start_editor(capabilities=pull_capabilities())
    assert editor.answer.capabilities.diagnostic_provider is not None
    uri = editor.open("train.py", DEVICE_MAP)
    report = await editor.pull(uri)
    assert report.kind == "full"
    assert [one.code for one in report.items] == ["RS201"]
    assert editor.published == []


async def test_a_client_that_does_not_pull_is_not_told_that_it_could(
    start_editor: StartEditor,
) -> None:
    editor = await start_editor()
    assert editor.answer.capabilities.diagnostic_provider is None


async def test_a_client_that_cannot_be_told_to_pull_again_is_pushed(
    start_editor: StartEditor,
) -> None:
    capabilities = pull_capabilities()
    assert capabilities.workspace is not None
    capabilities.workspace.diagnostics = None
    editor = await start_editor(capabilities=capabilities)
    assert editor.answer.capabilities.diagnostic_provider is None
    uri = editor.open("train.py", DEVICE_MAP)
    await editor.shown_with(uri, "RS201")


async def test_an_unchanged_report_is_not_sent_again(start_editor: StartEditor) -> None:
    editor = await start_editor(capabilities=pull_capabilities())
    uri = editor.open("train.py", DEVICE_MAP)
    first = await editor.pull(uri)
    again = await editor.pull(uri, first.result_id)
    assert (again.kind, again.result_id) == ("unchanged", first.result_id)

    editor.type(uri, 0, 0, "# moved\n")
    moved = await editor.pull(uri, first.result_id)
    assert moved.kind == "full"
    assert moved.result_id != first.result_id
    assert moved.items[0].range.start.line == DEVICE_MAP_LINE + 1


async def test_a_file_that_is_not_open_has_an_empty_report(start_editor: StartEditor) -> None:
    editor = await start_editor(capabilities=pull_capabilities())
    report = await editor.pull(editor.uri("nowhere.py"))
    assert list(report.items) == []


def _insert(line: int, column: int, text: str) -> types.TextDocumentContentChangePartial:
    return _replace(line, column, column, text)


def _replace(line: int, start: int, end: int, text: str) -> types.TextDocumentContentChangePartial:
    place = types.Range(types.Position(line, start), types.Position(line, end))
    return types.TextDocumentContentChangePartial(place, text)


async def test_what_is_too_long_to_be_followed_is_said_once(start_editor: StartEditor) -> None:
    editor = await start_editor(options={"settings": {"select": ["RS401"]}})
    long = "def long(x):\n" + "    dist.all_reduce(x)\n" * 3001
    uri = editor.open("train.py", f"import torch.distributed as dist\n\n\n{long}")

    def told() -> list[str]:
        said = [one.message for one in editor.client.log_messages]
        return [text for text in said if "`long` does too much to be followed" in text]

    await editor.until(told)
    await editor.version_shown(uri, editor.type(uri, 4, 22, "  # typed"))
    assert len(told()) == 1


@pytest.mark.parametrize("pulls", [False, True])
async def test_of_thousands_the_worst_are_shown_and_the_rest_is_told(
    start_editor: StartEditor, pulls: bool
) -> None:
    many = "import torch\n" + "x = 1  # ranksafe: ignore[RS201]\n" * 1_200
    editor = await start_editor(
        capabilities=pull_capabilities() if pulls else push_capabilities(),
        options={"settings": {"launcher": "accelerate", "gpus": 4}},
    )
    uri = editor.open("train.py", many + DEVICE_MAP)
    shown = (await editor.pull(uri)).items if pulls else await editor.version_shown(uri, 1)
    assert len(shown) == 1_001
    *findings, told = shown
    assert [item.code for item in findings[:2]] == ["RS201", "RS001"]
    assert "1,000 of 1,201 findings" in told.message
    assert (told.severity, told.range.start.line) == (types.DiagnosticSeverity.Information, 0)
    # Fewer again: all of them.
    end = types.Range(types.Position(1, 0), types.Position(202, 0))
    version = editor.change(uri, types.TextDocumentContentChangePartial(end, ""))
    shown = (await editor.pull(uri)).items if pulls else await editor.version_shown(uri, version)
    assert len(shown) == 1_000


async def test_of_a_file_that_is_opened_twice_the_newer_text_is_shown(
    start_editor: StartEditor,
) -> None:
    editor = await start_editor()
    editor.open("train.py", DEVICE_MAP.replace('"auto"', "None"))
    uri = editor.open("train.py", DEVICE_MAP)
    await editor.shown_with(uri, "RS201")
