"""What can be done about a finding."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from lsprotocol import types

from .conftest import DEVICE_MAP, DEVICE_MAP_LINE, Editor, StartEditor, push_capabilities

ACCELERATE = {"settings": {"launcher": "accelerate"}}
Apply = Callable[[str, Sequence[types.TextEdit]], str]


async def test_a_fix_is_offered_without_its_edit_and_resolved_with_it(
    start_editor: StartEditor, applied: Apply
) -> None:
    editor = await start_editor(options=ACCELERATE)
    uri = editor.open("train.py", DEVICE_MAP)
    await editor.shown_with(uri, "RS201")
    actions = await editor.actions(uri, DEVICE_MAP_LINE)
    fix = actions[0]
    assert fix.kind == types.CodeActionKind.QuickFix
    assert fix.is_preferred is True
    assert fix.edit is None
    assert fix.diagnostics
    assert fix.diagnostics[0].code == "RS201"

    resolved = await editor.client.code_action_resolve_async(fix)
    fixed = applied(DEVICE_MAP, _edits(resolved, uri))
    assert "device_map" not in fixed
    editor.change(uri, types.TextDocumentContentChangeWholeDocument(fixed))
    await editor.shown_with(uri)


async def test_an_unsafe_fix_is_not_preferred(start_editor: StartEditor) -> None:
    editor = await start_editor()
    uri = editor.open("train.py", DEVICE_MAP)
    await editor.shown_with(uri, "RS201")
    actions = await editor.actions(uri, DEVICE_MAP_LINE)
    assert actions
    assert not any(action.is_preferred for action in actions)


async def test_a_client_that_cannot_resolve_gets_the_edit_at_once(
    start_editor: StartEditor,
) -> None:
    capabilities = push_capabilities()
    assert capabilities.text_document is not None
    assert capabilities.text_document.code_action is not None
    capabilities.text_document.code_action.resolve_support = None
    editor = await start_editor(capabilities=capabilities, options=ACCELERATE)
    uri = editor.open("train.py", DEVICE_MAP)
    await editor.shown_with(uri, "RS201")
    actions = await editor.actions(uri, DEVICE_MAP_LINE)
    assert actions[0].edit is not None


async def test_a_client_without_versioned_edits_gets_plain_ones(start_editor: StartEditor) -> None:
    capabilities = push_capabilities()
    assert capabilities.workspace is not None
    capabilities.workspace.workspace_edit = None
    editor = await start_editor(capabilities=capabilities, options=ACCELERATE)
    uri = editor.open("train.py", DEVICE_MAP)
    await editor.shown_with(uri, "RS201")
    action = (await editor.actions(uri, DEVICE_MAP_LINE))[0]
    resolved = await editor.client.code_action_resolve_async(action)
    assert resolved.edit is not None
    assert list(resolved.edit.changes or {}) == [uri]


async def test_fix_all_applies_what_is_safe_and_leaves_the_rest(
    start_editor: StartEditor, applied: Apply
) -> None:
    editor = await start_editor()
    text = DEVICE_MAP + "\nimport torch  # ranksafe: ignore[RS301]\n"
    uri = editor.open("train.py", text)
    await editor.shown_with(uri, "RS001", "RS201")
    (action,) = await editor.actions(uri, 0, only=["source.fixAll"])
    assert action.kind == "source.fixAll.ranksafe"
    resolved = await editor.client.code_action_resolve_async(action)
    fixed = applied(text, _edits(resolved, uri))
    assert "ranksafe: ignore" not in fixed
    assert 'device_map="auto"' in fixed


async def test_fix_all_is_not_offered_where_nothing_is_safe(start_editor: StartEditor) -> None:
    editor = await start_editor()
    uri = editor.open("train.py", DEVICE_MAP)
    await editor.shown_with(uri, "RS201")
    assert await editor.actions(uri, 0, only=["source"]) == []


async def test_only_the_kinds_asked_for_are_offered(start_editor: StartEditor) -> None:
    editor = await start_editor(options=ACCELERATE)
    uri = editor.open("train.py", DEVICE_MAP)
    await editor.shown_with(uri, "RS201")
    assert await editor.actions(uri, DEVICE_MAP_LINE, only=["refactor"]) == []
    offered = await editor.actions(uri, DEVICE_MAP_LINE, only=["quickfix"])
    kinds = {one.kind for one in offered if one.command is None}
    assert kinds == {types.CodeActionKind.QuickFix}


async def test_a_finding_can_be_suppressed_on_its_line(
    start_editor: StartEditor, applied: Apply
) -> None:
    editor = await start_editor()
    uri = editor.open("train.py", DEVICE_MAP)
    await editor.shown_with(uri, "RS201")
    fixed = applied(DEVICE_MAP, await _suppression(editor, uri))
    assert fixed.splitlines()[DEVICE_MAP_LINE].endswith("  # ranksafe: ignore[RS201]")
    editor.change(uri, types.TextDocumentContentChangeWholeDocument(fixed))
    await editor.shown_with(uri)


async def test_a_suppression_joins_the_one_that_is_there(
    start_editor: StartEditor, applied: Apply
) -> None:
    editor = await start_editor()
    lines = DEVICE_MAP.splitlines()
    lines[DEVICE_MAP_LINE] += "  # ranksafe: ignore[RS301]"
    text = "\n".join(lines) + "\n"
    uri = editor.open("train.py", text)
    await editor.shown_with(uri, "RS001", "RS201")
    fixed = applied(text, await _suppression(editor, uri))
    assert fixed.splitlines()[DEVICE_MAP_LINE].endswith("# ranksafe: ignore[RS301, RS201]")


async def test_a_rule_can_be_left_out_of_a_file(start_editor: StartEditor, applied: Apply) -> None:
    editor = await start_editor()
    uri = editor.open("train.py", DEVICE_MAP)
    await editor.shown_with(uri, "RS201")
    action = await _chosen(editor, uri, "Ignore RS201 in this file")
    fixed = applied(DEVICE_MAP, _edits(action, uri))
    assert fixed.splitlines()[0] == "# ranksafe: ignore-file[RS201]"
    editor.change(uri, types.TextDocumentContentChangeWholeDocument(fixed))
    await editor.shown_with(uri)


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("pyproject.toml", "[project]\nname = 'x'\n", "[project]\nname = 'x'\n\n[tool.ranksafe]\nignore = [\"RS201\"]\n"),
        ("ranksafe.toml", "# ours\ngpus = 2\n", "# ours\ngpus = 2\nignore = [\"RS201\"]\n"),
        ("ranksafe.toml", None, "ignore = [\"RS201\"]\n"),
    ],
    ids=["pyproject", "own file", "none"],
)  # fmt: skip
async def test_a_rule_can_be_left_out_of_a_project(
    start_editor: StartEditor, name: str, before: str | None, after: str
) -> None:
    editor = await start_editor()
    if before is not None:
        editor.write(name, before)
    uri = editor.open("train.py", DEVICE_MAP)
    await editor.shown_with(uri, "RS201")
    action = await _chosen(editor, uri, f"Ignore RS201 in this project ({name})")
    assert action.edit is not None
    *created, changed = action.edit.document_changes or ()
    assert [isinstance(one, types.CreateFile) for one in created] == [True] * (before is None)
    assert isinstance(changed, types.TextDocumentEdit)
    assert changed.text_document.uri == editor.uri(name)
    assert [one.new_text for one in changed.edits if isinstance(one, types.TextEdit)] == [after]


async def _chosen(editor: Editor, uri: str, title: str) -> types.CodeAction:
    offered = await editor.actions(uri, DEVICE_MAP_LINE)
    (action,) = [one for one in offered if one.title == title]
    return await editor.client.code_action_resolve_async(action)


async def test_the_rules_page_opens_in_the_users_language(start_editor: StartEditor) -> None:
    editor = await start_editor(locale="zh-cn")
    uri = editor.open("train.py", DEVICE_MAP)
    await editor.shown_with(uri, "RS201")
    commands = await _commands(editor, uri)
    answer = await editor.execute("ranksafe.openRule", *(commands["ranksafe.openRule"] or ()))
    assert answer["page"].endswith("README.zh-cn.md")
    assert editor.client.shown_documents[0].uri.endswith("README.zh-cn.md")


async def test_proving_and_running_are_offered_in_a_trusted_workspace_only(
    start_editor: StartEditor,
) -> None:
    for trusted in (True, False):
        editor = await start_editor(options={"trusted": trusted})
        uri = editor.open("train.py", DEVICE_MAP)
        await editor.shown_with(uri, "RS201")
        assert ("ranksafe.prove" in await _commands(editor, uri)) is trusted


async def test_no_fix_for_code_that_has_changed_meanwhile(start_editor: StartEditor) -> None:
    editor = await start_editor(options=ACCELERATE)
    uri = editor.open("train.py", DEVICE_MAP)
    await editor.shown_with(uri, "RS201")
    action = (await editor.actions(uri, DEVICE_MAP_LINE))[0]
    editor.replace_line(uri, DEVICE_MAP_LINE, "    model = None\n")
    resolved = await editor.client.code_action_resolve_async(action)
    assert resolved.edit is None
    assert any("changed" in message for message in editor.messages)


async def _suppression(editor: Editor, uri: str) -> list[types.TextEdit]:
    actions = await editor.actions(uri, DEVICE_MAP_LINE)
    (action,) = [one for one in actions if one.title == "Ignore RS201 on this line"]
    return _edits(await editor.client.code_action_resolve_async(action), uri)


async def _commands(editor: Editor, uri: str) -> dict[str, Sequence[object] | None]:
    actions = await editor.actions(uri, DEVICE_MAP_LINE)
    return {one.command.command: one.command.arguments for one in actions if one.command}


def _edits(action: types.CodeAction, uri: str) -> list[types.TextEdit]:
    assert action.edit is not None
    (change,) = action.edit.document_changes or ()
    assert isinstance(change, types.TextDocumentEdit)
    assert change.text_document.uri == uri
    assert change.text_document.version is not None
    return [edit for edit in change.edits if isinstance(edit, types.TextEdit)]
