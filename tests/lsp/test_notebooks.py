"""Notebooks: one text of all Python cells, findings in their cells."""

from __future__ import annotations

from lsprotocol import types
from ranksafe.source.notebook import python_lines
from ranksafe.source.text import split_lines

from .conftest import Editor, StartEditor

IMPORTS = "%load_ext autoreload\n!pip install trl\nfrom transformers import AutoModelForCausalLM"
LOAD = 'model = AutoModelForCausalLM.from_pretrained("🤗", device_map="auto")'
TRAIN = "from transformers import Trainer\ntrainer = Trainer(model=model)\ntrainer.train()"


async def test_a_finding_is_shown_in_its_cell_at_its_columns(start_editor: StartEditor) -> None:
    editor = await start_editor()
    first, second, third = _open(editor, IMPORTS, LOAD, TRAIN)
    (finding,) = await editor.shown_with(second, "RS201")
    assert finding.range.start.line == 0
    # The emoji counts two UTF-16 units.
    assert finding.range.start.character == LOAD.index('"auto"') + 1
    assert finding.related_information
    assert finding.related_information[0].location.uri == third
    assert editor.shown(first) == ()


async def test_an_edit_in_one_cell_changes_what_is_shown_in_another(
    start_editor: StartEditor,
) -> None:
    editor = await start_editor()
    _first, second, third = _open(editor, IMPORTS, LOAD, TRAIN)
    await editor.shown_with(second, "RS201")
    place = types.Range(types.Position(1, 0), types.Position(2, 60))
    _change_text(editor, third, types.TextDocumentContentChangePartial(place, "pass"))
    await editor.shown_with(second)


async def test_cells_come_and_go(start_editor: StartEditor) -> None:
    editor = await start_editor()
    _first, second, _third = _open(editor, IMPORTS, LOAD, TRAIN)
    await editor.shown_with(second, "RS201")
    new = "new-cell"
    structure = types.NotebookDocumentCellChangeStructure(
        types.NotebookCellArrayChange(1, 1, [types.NotebookCell(types.NotebookCellKind.Code, new)]),
        did_open=[types.TextDocumentItem(new, "python", 1, f"# moved\n{LOAD}")],
        did_close=[types.TextDocumentIdentifier(second)],
    )
    _change(editor, types.NotebookDocumentCellChanges(structure=structure))
    (finding,) = await editor.shown_with(new, "RS201")
    assert finding.range.start.line == 1
    assert editor.shown(second) == ()


async def test_a_cell_that_is_deleted_and_not_closed_shows_nothing(
    start_editor: StartEditor,
) -> None:
    editor = await start_editor()
    _first, second, _third = _open(editor, IMPORTS, LOAD, TRAIN)
    await editor.shown_with(second, "RS201")
    structure = types.NotebookDocumentCellChangeStructure(types.NotebookCellArrayChange(1, 1, []))
    _change(editor, types.NotebookDocumentCellChanges(structure=structure))
    await editor.shown_with(second)


async def test_a_fix_edits_the_cell(start_editor: StartEditor) -> None:
    editor = await start_editor(options={"settings": {"launcher": "accelerate"}})
    _first, second, _third = _open(editor, IMPORTS, LOAD, TRAIN)
    await editor.shown_with(second, "RS201")
    action = (await editor.actions(second, 0))[0]
    resolved = await editor.client.code_action_resolve_async(action)
    assert resolved.edit is not None
    (change,) = resolved.edit.document_changes or ()
    assert isinstance(change, types.TextDocumentEdit)
    assert change.text_document.uri == second
    assert change.edits[0].range.start.line == 0


async def test_hover_works_in_a_cell_and_there_is_no_lens(start_editor: StartEditor) -> None:
    editor = await start_editor()
    _first, second, third = _open(editor, IMPORTS, LOAD, TRAIN)
    await editor.shown_with(second, "RS201")
    text = await editor.hover(second, 0, LOAD.index('"auto"') + 3)
    assert text is not None
    assert "RS201" in text
    assert [*await editor.lenses(second), *await editor.lenses(third)] == []


async def test_closing_the_notebook_clears_its_cells(start_editor: StartEditor) -> None:
    editor = await start_editor()
    cells = _open(editor, IMPORTS, LOAD, TRAIN)
    await editor.shown_with(cells[1], "RS201")
    editor.client.notebook_document_did_close(
        types.DidCloseNotebookDocumentParams(
            types.NotebookDocumentIdentifier(_notebook(editor)),
            [types.TextDocumentIdentifier(cell) for cell in cells],
        )
    )
    await editor.shown_with(cells[1])


def test_what_is_not_python_is_blanked() -> None:
    cell = (
        "%matplotlib inline\nif x:\n    !ls \\\n      -l\nfiles = !ls\ntime = %timeit -o f()\n"
        "len?\nrest = (a\n% b)\ny = a % b\n"
    )
    assert "".join(python_lines(split_lines(cell))) == (
        "pass\nif x:\n    pass\n\nfiles = None\ntime = None\npass\nrest = (a\n% b)\ny = a % b\n"
    )


def test_a_cell_for_another_interpreter_is_blanked_and_a_timed_one_is_not() -> None:
    assert python_lines(["%%bash\n", "ls -l"]) == ["\n", ""]
    assert python_lines(["%%time\n", "x = 1"]) == ["pass\n", "x = 1"]


def _notebook(editor: Editor) -> str:
    return editor.uri("train.ipynb")


def _open(editor: Editor, *cells: str) -> list[str]:
    uris = [f"vscode-notebook-cell:train.ipynb#cell{number}" for number, _ in enumerate(cells)]
    prose = "vscode-notebook-cell:train.ipynb#prose"
    code = [types.NotebookCell(types.NotebookCellKind.Code, uri) for uri in uris]
    notebook = types.NotebookDocument(
        _notebook(editor),
        "jupyter-notebook",
        1,
        [types.NotebookCell(types.NotebookCellKind.Markup, prose), *code],
    )
    # As VS Code does: cells that the selector does not match are listed nowhere.
    notebook.cells = code
    items = [
        types.TextDocumentItem(uri, "python", 1, text)
        for uri, text in zip(uris, cells, strict=True)
    ]
    editor.client.notebook_document_did_open(types.DidOpenNotebookDocumentParams(notebook, items))
    return uris


def _change_text(editor: Editor, cell: str, change: types.TextDocumentContentChangeEvent) -> None:
    content = types.NotebookDocumentCellContentChanges(
        types.VersionedTextDocumentIdentifier(2, cell), [change]
    )
    _change(editor, types.NotebookDocumentCellChanges(text_content=[content]))


def _change(editor: Editor, cells: types.NotebookDocumentCellChanges) -> None:
    editor.client.notebook_document_did_change(
        types.DidChangeNotebookDocumentParams(
            types.VersionedNotebookDocumentIdentifier(2, _notebook(editor)),
            types.NotebookDocumentChangeEvent(cells=cells),
        )
    )
