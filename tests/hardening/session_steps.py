"""The steps of a random session, and what a client has open after each by the letter of LSP."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final
from urllib.parse import quote

from ranksafe.lsp import commands
from ranksafe.lsp.report_commands import ANNOTATE_FROM_LOG
from ranksafe.source.notebook import joined
from ranksafe.source.parsing import parse_python
from ranksafe.source.text import split_lines

from tests.checker.incremental import random_edit
from tests.checker.test_edits_over_files import SMALL
from tests.hardening.damage import ODD, damaged, odd_value
from tests.hardening.measured import ROOT
from tests.hardening.test_hostile_messages import HOSTILE_URIS, NONSENSE

Message = dict[str, Any]
Step = dict[str, Any]
"""``files`` to write (None: remove), then messages to ``send`` or ``bytes``, then ``wait``; ``compare`` ends a round."""

HERE: Final = "file:///HERE"
"""In the steps, for the folder that they are played in."""
_UNITS: Final = {"utf-8": 1, "utf-16": 2, "utf-32": 4}
_LONGEST: Final = 6_000
_SEEN: Final = "  # ranksafe: ignore[RS201]\n"
"""Has a finding of its own wherever it stands, which tells of any text that got lost before it."""
_SETTINGS: Final[list[dict[str, Any]]] = [
    {"gpus": 1},
    {"gpus": 8, "launcher": "torchrun"},
    {"select": ["RS4", "RS001"]},
    {"ignore": ["RS401", "RS402", "RS301"]},
    {"launcher": "accelerate", "gpus": "many", "select": 5},
]
_CONFIGURATIONS: Final = [
    '[tool.ranksafe]\nignore = ["RS4"]\n',
    "[tool.ranksafe]\ngpus = 1\n",
    '[tool.ranksafe]\nlauncher = "torchrun"\nselect = ["RS3", "RS4", "RS001"]\n',
    "[tool.ranksafe\n",
]


@cache
def _texts() -> list[str]:
    files = [*(ROOT / "rules").rglob("proof/failing.py"), *(ROOT / "examples").rglob("*.py")]
    return [text for file in sorted(files) if len(text := file.read_text("utf-8")) < _LONGEST]


def _parses(text: str) -> bool:
    try:
        parse_python(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _note(method: str, **params: Any) -> Message:
    return {"method": method, "params": params}


class Model:
    """What a client has told."""

    def __init__(self, encoding: str) -> None:
        self.encoding = encoding
        self.texts: dict[str, str | None] = {}
        """Of open files; None: nobody can say."""
        self.notebooks: dict[str, list[str]] = {}
        """Their cells in order."""
        self.cells: dict[str, str] = {}
        self.folders: dict[str, None] = {}
        self.settings: dict[str, Any] | None = None

    # -- positions

    def offset(self, text: str, position: dict[str, int]) -> int:
        """Beyond a line, or the text: its end; inside a character: its beginning."""
        lines = _lines(text)
        if position["line"] >= len(lines):
            return len(text)
        line, column, units = lines[position["line"]].rstrip("\r\n"), 0, position["character"]
        while column < len(line) and units >= (wide := self._units(line[column])):
            column, units = column + 1, units - wide
        return sum(map(len, lines[: position["line"]])) + column

    def position(self, text: str, offset: int) -> dict[str, int]:
        *above, line = _lines(text[:offset])
        return {"line": len(above), "character": self._units(line)}

    def _units(self, text: str) -> int:
        name = self.encoding if self.encoding == "utf-8" else f"{self.encoding}-le"
        return len(text.encode(name, "surrogatepass")) // _UNITS[self.encoding]

    def changed(self, text: str, changes: list[Message]) -> str | None:
        for change in changes:
            start, end = 0, len(text)
            if "range" in change:
                start, end = (self.offset(text, change["range"][at]) for at in ("start", "end"))
            if start > end:
                return None
            text = text[:start] + change["text"] + text[end:]
        return text

    def difference(self, text: str, new: str) -> Message:
        """The change that makes one of the other."""
        start = _same(text, new)
        same = _same(text[start:][::-1], new[start:][::-1])
        first, last = (self.position(text, at) for at in (start, len(text) - same))
        change = {"range": {"start": first, "end": last}, "text": new[start : len(new) - same]}
        return change if self.changed(text, [change]) == new else {"text": new}

    # -- messages

    def told(self, message: Message, odd: str | None = None) -> Message:
        """Take over a message, and give it back; of what is odd about a document nobody can say what it does."""
        if odd is not None:
            self.texts[odd] = None
        elif "id" not in message and "method" in message:
            take = getattr(self, "_" + message["method"].rpartition("/")[2], None)
            if take is not None:
                take(message["params"])
        return message

    def _didOpen(self, params: Message) -> None:
        if "textDocument" in params:
            self.texts[params["textDocument"]["uri"]] = params["textDocument"]["text"]
        else:
            notebook = params["notebookDocument"]
            self.notebooks[notebook["uri"]] = [cell["document"] for cell in notebook["cells"]]
            self._opened(params["cellTextDocuments"])

    def _didChange(self, params: Message) -> None:
        if "textDocument" in params:
            uri = params["textDocument"]["uri"]
            if (text := self.texts.get(uri)) is not None:
                self.texts[uri] = self.changed(text, params["contentChanges"])
            return
        cells = params["change"]["cells"]
        if "structure" in cells:
            array = cells["structure"]["array"]
            start, end = array["start"], array["start"] + array["deleteCount"]
            new = [cell["document"] for cell in array["cells"]]
            self.notebooks[params["notebookDocument"]["uri"]][start:end] = new
            self._opened(cells["structure"]["didOpen"])
        for content in cells.get("textContent", ()):
            uri = content["document"]["uri"]
            self.cells[uri] = self.changed(self.cells[uri], content["changes"]) or ""

    def _opened(self, items: list[Message]) -> None:
        self.cells |= {item["uri"]: item["text"] for item in items}

    def _didClose(self, params: Message) -> None:
        if "textDocument" in params:
            self.texts.pop(params["textDocument"]["uri"], None)
        else:
            self.notebooks.pop(params["notebookDocument"]["uri"], None)

    def _didChangeWorkspaceFolders(self, params: Message) -> None:
        self.folders |= {folder["uri"]: None for folder in params["event"]["added"]}
        for folder in params["event"]["removed"]:
            self.folders.pop(folder["uri"], None)

    def _didChangeConfiguration(self, params: Message) -> None:
        self.settings = params["settings"]["ranksafe"]

    # -- at the end of a round

    def places(self) -> list[str]:
        """What carries diagnostics."""
        cells = [cell for order in self.notebooks.values() for cell in order if cell in self.cells]
        return [*self.texts, *cells]

    def opening(self, uri: str) -> Message:
        if uri in self.notebooks:
            order = self.notebooks[uri]
            cells = [{"kind": 2, "document": cell} for cell in order]
            about = {"uri": uri, "notebookType": "jupyter-notebook", "version": 1, "cells": cells}
            items = [_item(cell, self.cells[cell]) for cell in order if cell in self.cells]
            return _note(
                "notebookDocument/didOpen", notebookDocument=about, cellTextDocuments=items
            )
        text = self.texts[uri]
        item = _item(uri, "import torch\n" if text is None else text)
        return _note("textDocument/didOpen", textDocument=item)

    def closing(self, uri: str) -> Message:
        if uri in self.notebooks:
            cells = [{"uri": cell} for cell in self.notebooks[uri]]
            about = {"uri": uri}
            return _note(
                "notebookDocument/didClose", notebookDocument=about, cellTextDocuments=cells
            )
        return _note("textDocument/didClose", textDocument={"uri": uri})

    def documents(self) -> list[str]:
        return [*self.texts, *self.notebooks]

    def repairs(self) -> Iterator[Message]:
        """What does not parse keeps findings of what it was, and is opened anew; the rest gets one more finding."""
        for uri in self.documents():
            if uri in self.notebooks:
                order = [cell for cell in self.notebooks[uri] if cell in self.cells]
                lines = joined([(cell, split_lines(self.cells[cell])) for cell in order])[1]
                text: str | None = "".join(lines)
            else:
                text = self.texts[uri]
            if text is None or not _parses(text):
                opening = self.opening(uri)
                yield self.closing(uri)
                yield opening
            elif uri in self.texts:
                changes = [self.difference(text, f"{text}\nimport torch{_SEEN}")]
                about = {"uri": uri, "version": 99}
                yield _note("textDocument/didChange", textDocument=about, contentChanges=changes)


def _lines(text: str) -> list[str]:
    return re.split(r"(?<=\n)|(?<=\r)(?!\n)", text)


def _same(left: str, right: str) -> int:
    """How many characters both begin with."""
    pairs = enumerate(zip(left, right, strict=False))
    return next((at for at, (one, other) in pairs if one != other), min(len(left), len(right)))


def _item(uri: str, text: str, version: object = 1) -> Message:
    return {"uri": uri, "languageId": "python", "version": version, "text": text}


class Story:
    """Makes the steps."""

    def __init__(self, choose: random.Random) -> None:
        self.choose = choose
        encoding = choose.choice([*_UNITS, "utf-16"])
        self.model = Model(encoding)
        self.count = 0
        self.trusts = choose.random() < 0.3
        """Then most commands would start something."""
        project = choose.choice([*SMALL.values()])
        self.disk = {f"one/{name}": text for name, text in project.items()}
        self.disk["two/a name.py"] = choose.choice(_texts())
        self.names = [*self.disk, "one/new/later.py", "one/ü🔥.py"]
        before = [self._request() for _ in range(choose.choice([0, 0, 3]))]
        if before:
            before.append(self._opening("one/early.py"))
        start = {"pulls": choose.random() < 0.5, "politely": choose.random() < 0.8}
        self.steps: list[Step] = [{"encoding": encoding, **start, "before": before}]
        self.add(files=dict(self.disk), send=[self._folders([HERE + "/one"], [])])
        for _ in range(choose.randint(1, 3)):
            for _ in range(choose.randint(15, 60)):
                choose.choices(list(_ACTIONS), list(_ACTIONS.values()))[0](self)
            self.add(compare=True)
            uris = [*self.model.repairs(), *map(self.model.closing, self.model.documents())]
            for message in uris:
                self.model.told(message)
        for _ in range(choose.choice([0, 5])):
            self.add(send=[self._request()])

    def add(self, **step: Any) -> None:
        self.steps.append(step)
        self.disk |= step.get("files", {})
        for message in step.get("send", ()):
            self.model.told(message, step.get("odd"))

    # -- documents

    def _uri(self, name: str) -> str:
        return f"{HERE}/{quote(name)}"

    def _some(self) -> str:
        """The name of a file, mostly of one that is open."""
        names = [name for name in self.names if self._uri(name) in self.model.texts]
        return self.choose.choice(names if names and self.choose.random() < 0.9 else self.names)

    def _opening(self, name: str) -> Message:
        text = self.disk.get(name) or self.choose.choice(_texts())
        if self.choose.random() < 0.15:
            text = damaged(text, _texts(), self.choose)[:_LONGEST]
        version = self.choose.choice([0, 1, 1, 7, -3])
        return _note("textDocument/didOpen", textDocument=_item(self._uri(name), text, version))

    def open(self) -> None:
        self.add(send=[self._opening(self.choose.choice(self.names))])

    def close(self) -> None:
        self.add(send=[self.model.closing(self._uri(self._some()))])

    def reopen(self) -> None:
        name = self._some()
        self.add(send=[self.model.closing(self._uri(name)), self._opening(name)])

    def _place(self, text: str) -> dict[str, int]:
        if self.choose.random() < 0.1:
            return {"line": self.choose.choice([0, 3, 10**6, 2**31 - 1]), "character": 10**6}
        return self.model.position(text, self.choose.randrange(len(text) + 1))

    def _change(self, text: str) -> Message:
        """Of a text: as people type, or anywhere anything."""
        if self.choose.random() < 0.6:
            new = random_edit(text, self.choose).text
            if self.choose.random() < 0.2:
                return {"text": new}
            return self.model.difference(text, new)
        places = sorted(
            (self._place(text) for _ in "12"), key=lambda place: self.model.offset(text, place)
        )
        if self.choose.random() < 0.05:
            places.reverse()
        if self.choose.random() < 0.5:
            places[1] = places[0]
        new = self.choose.choice(
            [*ODD, "", "", "\n", "dist.barrier()\n", *[_SEEN, "# \N{FIRE}" + _SEEN] * 9]
        )
        return {"range": {"start": places[0], "end": places[1]}, "text": new}

    def edit(self, times: int = 1) -> None:
        uri = self._uri(self._some())
        messages: list[Message] = []
        text = self.model.texts.get(uri)
        for _ in range(times):
            changes = [self._change(text or "") for _ in range(self.choose.choice([1, 1, 3]))]
            changed = self.model.changed(text or "", changes)
            if changed is not None and len(changed) > 3 * _LONGEST:
                changes = [{"text": self.choose.choice(_texts())}]
                changed = changes[0]["text"]
            if changed is not None and text and not _parses(changed) and self.choose.random() < 0.8:
                changes.append(self.model.difference(changed, text))
                changed = text
            text = changed
            about = {"uri": uri, "version": self.choose.choice([0, 2, 2, 2, 9, -1])}
            messages.append(
                _note("textDocument/didChange", textDocument=about, contentChanges=changes)
            )
            if self.choose.random() < 0.1:
                messages.append(self._request())
        self.add(send=messages)

    def storm(self) -> None:
        self.edit(self.choose.choice([5, 30]))

    def save(self) -> None:
        name = self._some()
        uri = self._uri(name)
        text = self.model.texts.get(uri)
        files = {} if text is None else {name: text}
        self.add(files=files, send=[_note("textDocument/didSave", textDocument={"uri": uri})])

    def notebook(self) -> None:
        uri = f"{HERE}/one/train.ipynb"
        order = self.model.notebooks.get(uri)
        if order is None:
            self._open_notebook(uri)
        elif self.choose.random() < 0.15:
            self.add(send=[self.model.closing(uri)])
        else:
            self.add(send=[self._notebook_change(uri, order)])

    def _open_notebook(self, uri: str) -> None:
        parts = re.split("\n\n\n", self.choose.choice(_texts()))
        self.model.notebooks[uri] = [self._new_cell(text) for text in parts[:5]]
        self.add(send=[self.model.opening(uri)])

    def _new_cell(self, text: str) -> str:
        self.count += 1
        cell = f"vscode-notebook-cell:/one/train.ipynb#{self.count}"
        self.model.cells[cell] = text
        return cell

    def _notebook_change(self, uri: str, order: list[str]) -> Message:
        start = self.choose.randrange(len(order) + 1)
        end = min(len(order), start + self.choose.choice([0, 0, 1, 2]))
        does = self.choose.choice(["cells", "move", "text", "text"])
        if does == "text" and order:
            cell = self.choose.choice(order)
            about = {"uri": cell, "version": 2}
            text = self.model.cells[cell]
            changes = [self._change(text)]
            if self.model.changed(text, changes) is None:
                changes = [{"text": "import torch\n"}]
            cells: Message = {"textContent": [{"document": about, "changes": changes}]}
        else:
            moved = does == "move"
            new = order[start:end][::-1] if moved else [self._new_cell("%time\nimport torch\n!ls")]
            array = {
                "start": start,
                "deleteCount": end - start,
                "cells": [{"kind": 2, "document": cell} for cell in new],
            }
            opened = [] if moved else [_item(cell, self.model.cells[cell]) for cell in new]
            # A client should say which cells it has closed; one may not.
            told = not moved and self.choose.random() < 0.8
            closed = [{"uri": cell} for cell in order[start:end]] if told else []
            cells = {"structure": {"array": array, "didOpen": opened, "didClose": closed}}
        about = {"uri": uri, "version": 2}
        return _note("notebookDocument/didChange", notebookDocument=about, change={"cells": cells})

    # -- the workspace

    def watch(self) -> None:
        """Files come, go and are written by others."""
        names = self.choose.sample(self.names, self.choose.choice([1, 1, 2, 4]))
        files = {name: self._on_disk(name) for name in names}
        if self.choose.random() < 0.25:
            file = self.choose.choice(["one/pyproject.toml", "pyproject.toml", "one/ranksafe.toml"])
            files[file] = self.choose.choice([None, *_CONFIGURATIONS])
        kind = self.choose.choice([1, 2, 3])  # whatever was done
        uris = [*map(self._uri, files), *self.choose.choice([[], [], HOSTILE_URIS])]
        changes = [{"uri": uri, "type": kind} for uri in uris]
        self.add(files=files, send=[_note("workspace/didChangeWatchedFiles", changes=changes)])

    def _on_disk(self, name: str) -> str | None:
        before = self.disk.get(name)
        if before is None or self.choose.random() < 0.2:
            return self.choose.choice([None, *SMALL["a guard in the caller"].values()])
        return random_edit(before, self.choose).text if self.choose.random() < 0.8 else None

    def _folders(self, added: list[str], removed: list[str]) -> Message:
        event = {
            name: [{"uri": uri, "name": "x"} for uri in uris]
            for name, uris in (("added", added), ("removed", removed))
        }
        return _note("workspace/didChangeWorkspaceFolders", event=event)

    def folders(self) -> None:
        uris = [HERE + "/one"]
        if self.choose.random() < 0.5:
            others = [HERE, HERE + "/two", HERE + "/one/", HERE + "/one/parallel", *HOSTILE_URIS]
            uris = self.choose.sample(others, 2)
        added = [uri for uri in uris if uri not in self.model.folders]
        self.add(send=[self._folders(added, [uri for uri in uris if uri not in added])])

    def settings(self) -> None:
        settings = {"ranksafe": self.choose.choice(_SETTINGS)}
        self.add(send=[_note("workspace/didChangeConfiguration", settings=settings)])

    def trust(self) -> None:
        if self.trusts:
            self.add(send=[_note("ranksafe/trust", trusted=self.choose.random() < 0.5)])

    # -- requests, and what is none

    def _request(self) -> Message:
        self.count += 1
        number = self.choose.choice([self.count, self.count, str(self.count), -self.count])
        place = {"line": self.choose.randrange(40), "character": self.choose.randrange(60)}
        places = [*self.model.places(), self.choose.choice(HOSTILE_URIS)]
        uri = self.choose.choice([self._uri(self._some()), *places])
        about = {"uri": uri}
        data = {"uri": uri, "kind": self.choose.choice(["fix", "fixAll", "suppress", "run", "x"])}
        only = self.choose.choice([None, ["quickfix"], ["source.fixAll"]])
        context = {"diagnostics": [], "only": only}
        everywhere = {"start": {"line": 0, "character": 0}, "end": {"line": 99, "character": 0}}
        words = [self.choose.choice([uri, "RS401", None, 5, {}])][: self.choose.choice([0, 1])]
        command = commands.OPEN_RULE if self.trusts else self.choose.choice(_COMMANDS)
        params: dict[str, Message] = {
            "textDocument/hover": {"textDocument": about, "position": place},
            "textDocument/codeAction": {"textDocument": about, "range": everywhere}
            | {"context": context},
            "textDocument/codeLens": {"textDocument": about},
            "textDocument/diagnostic": {"textDocument": about, "previousResultId": "ranksafe-1"},
            "codeAction/resolve": {"title": "x", "data": data},
            "codeLens/resolve": {"range": everywhere, "data": data},
            "workspace/executeCommand": {"command": command, "arguments": words},
            "textDocument/completion": {"textDocument": about, "position": place},
            "workspace/symbol": {"query": ""},
        }
        method = self.choose.choice(list(params))
        return {"id": number, "method": method, "params": params[method]}

    def request(self) -> None:
        self.add(send=[self._request() for _ in range(self.choose.choice([1, 1, 1, 8]))])

    def resolve(self) -> None:
        self.add(resolve=True)

    def cancel(self) -> None:
        """Often before it is answered."""
        request = self._request()
        numbers = self.choose.choice(
            [[request["id"]], [request["id"]] * 2, [self.count - 2], ["?"]]
        )
        cancels = [_note("$/cancelRequest", id=number) for number in numbers]
        self.add(send=[request, *cancels])

    def malformed(self) -> None:
        uri = self._uri(self._some())
        if self.choose.random() < 0.5:
            request = self._request()
            request["params"] = odd_value(request["params"], self.choose, 0.3)
            self.add(send=[request])
            return
        text = self.model.texts.get(uri) or ""
        about = {"uri": uri, "version": 3}
        changed = {"textDocument": about, "contentChanges": [self._change(text)]}
        does: list[Message] = [
            _note("textDocument/didChange", **changed),
            _note("textDocument/didOpen", textDocument=_item(uri, text)),
            _note("textDocument/didSave", textDocument=about),
            _note("textDocument/didClose", textDocument=about),
        ]
        whole = self.choose.choice(does)
        whole["params"] = odd_value(whole["params"], self.choose, 0.3)
        self.add(send=[whole], odd=uri)

    def misplaced(self) -> None:
        """Before its time, twice, as what it is not."""
        request, about = self._request(), {"uri": self._uri(self._some())}
        self.count += 1
        number = self.count
        other = {"processId": None, "capabilities": {"general": {"positionEncodings": ["utf-8"]}}}
        closed = {"notebookDocument": about, "cellTextDocuments": []}
        does: list[list[Message]] = [
            [{**_note("initialize", **other), "id": number}],
            [_note("initialized")],
            [{**_note("textDocument/didClose", textDocument=about), "id": number}],
            [{**_note("$/cancelRequest"), "id": number}],
            [_note(request["method"], **request["params"])],
            [_note("ranksafe/unknown"), {**_note("ranksafe/unknown"), "id": number}],
            [request, request],
            [{"id": number, "result": None}, {"id": "?", "error": {"code": 1, "message": ""}}],
            [{**request, "id": self.choose.choice([None, [], {}])}],
            [_note("notebookDocument/didClose", **closed)],
            [_note("window/workDoneProgress/cancel", token=self.choose.choice([1, "x"]))],
            [_note("$/setTrace", value=self.choose.choice(["verbose", "?"]))],
        ]
        self.add(send=self.choose.choice(does))

    def nonsense(self) -> None:
        short = [data for data in NONSENSE if len(data) < _LONGEST]
        self.add(bytes=self.choose.choice(short).decode("latin-1"))

    def wait(self) -> None:
        self.add(wait=self.choose.choice([0.01, 0.05, 0.15, 0.4]))


_COMMANDS: Final = sorted({*commands.HANDLERS} - {commands.TRUST_WORKSPACE, ANNOTATE_FROM_LOG})
_ACTIONS: Final[dict[Callable[[Story], None], int]] = {
    Story.open: 8,
    Story.close: 2,
    Story.reopen: 2,
    Story.edit: 14,
    Story.storm: 3,
    Story.save: 4,
    Story.notebook: 5,
    Story.watch: 6,
    Story.folders: 2,
    Story.settings: 2,
    Story.trust: 1,
    Story.request: 8,
    Story.resolve: 2,
    Story.cancel: 4,
    Story.malformed: 4,
    Story.misplaced: 4,
    Story.nonsense: 1,
    Story.wait: 6,
}
"""How often each is done."""
