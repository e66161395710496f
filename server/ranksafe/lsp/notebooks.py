"""Notebooks: ``notebookDocument/*``. The Python cells are analysed as one text, each finding goes to its cell."""

from __future__ import annotations

from collections.abc import Sequence

from lsprotocol import types

from ranksafe.lsp.documents import Document, Place, apply_changes, client_range, place_in
from ranksafe.lsp.lines import LineBuffer, PositionEncoding, TouchedLines
from ranksafe.source.notebook import CellStart, cell_at, joined
from ranksafe.source.position import Position, Range

SYNC_OPTIONS = types.NotebookDocumentSyncOptions(
    notebook_selector=[
        types.NotebookDocumentFilterWithCells(
            cells=[types.NotebookCellLanguage(language="python")],
        )
    ],
    save=True,
)


class Cell:
    """One Python cell."""

    def __init__(self, item: types.TextDocumentItem) -> None:
        self.uri = item.uri
        self.version = item.version
        self.buffer = LineBuffer(item.text)


class Notebook(Document):
    """An open notebook."""

    def __init__(
        self, params: types.DidOpenNotebookDocumentParams, encoding: PositionEncoding
    ) -> None:
        super().__init__(params.notebook_document.uri, encoding)
        self._order = [cell.document for cell in params.notebook_document.cells]
        self._cells = {item.uri: Cell(item) for item in params.cell_text_documents}
        self._starts: list[CellStart[str]] = []
        self._lines: list[str] = []
        self._join()

    @property
    def text(self) -> str:
        """What is analysed."""
        return "".join(self._lines)

    @property
    def line_count(self) -> int:
        """How many lines all cells have."""
        return len(self._lines)

    @property
    def uris(self) -> Sequence[str]:
        """What carries diagnostics."""
        return [start.name for start in self._starts]

    def line(self, number: int) -> str:
        """One line of the text, with its end."""
        return self._lines[number] if 0 <= number < len(self._lines) else ""

    def version_of(self, uri: str) -> int | None:
        """A cell's version."""
        cell = self._cells.get(uri)
        return cell.version if cell else None

    def locate(self, place: Range) -> Place:
        """The cell and where in it; a range never goes on into the next cell."""
        start = cell_at(self._starts, place.start.line)
        last = start.first_line + start.line_count - 1
        end = place.end if place.end.line <= last else Position(last, 0)
        inside = Range(
            Position(place.start.line - start.first_line, place.start.column),
            Position(end.line - start.first_line, end.column),
        )
        buffer = self._cells[start.name].buffer
        return Place(start.name, client_range(buffer, inside, self.encoding))

    def place_of(self, uri: str, position: types.Position) -> Position:
        """The line below the cell's first one."""
        start = next((start for start in self._starts if start.name == uri), None)
        if start is None:
            return Position(0, 0)
        inside = place_in(self._cells[uri].buffer, position, self.encoding)
        return Position(start.first_line + inside.line, inside.column)

    def change(self, change: types.NotebookDocumentChangeEvent) -> None:
        """Take over a ``notebookDocument/didChange``."""
        cells = change.cells
        if cells is None:
            return
        if cells.structure is not None:
            self._restructure(cells.structure)
        for content in cells.text_content or ():
            cell = self._cells.get(content.document.uri)
            if cell is not None:
                cell.version = content.document.version
                for _ in apply_changes(cell.buffer, content.changes, self.encoding):
                    pass
        before = self._lines
        self._join()
        touched = _difference(before, self._lines)
        if touched is not None:
            self.touch(touched)

    def _restructure(self, structure: types.NotebookDocumentCellChangeStructure) -> None:
        array = structure.array
        new = [cell.document for cell in array.cells or ()]
        self._order[array.start : array.start + array.delete_count] = new
        for item in structure.did_open or ():
            self._cells[item.uri] = Cell(item)
        for closed in structure.did_close or ():
            self._cells.pop(closed.uri, None)

    def _join(self) -> None:
        cells = [(uri, self._cells[uri].buffer.lines) for uri in self._order if uri in self._cells]
        self._starts, self._lines = joined(cells)


def _difference(before: Sequence[str], after: Sequence[str]) -> TouchedLines | None:
    if before == after:
        return None
    buffer = LineBuffer("".join(before))
    return buffer.replace_all("".join(after))
