"""Other editors: the server is started with the command of the guide's snippet and meets the editor's own habits."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml
from ranksafe import __version__

from .clients import CLIENTS, HELIX, JUPYTERLAB, Client, Permissions
from .conftest import REPOSITORY, server_environment
from .plain_client import PlainClient

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

GUIDE = REPOSITORY / "docs" / "guide"
MASON = REPOSITORY / "client" / "neovim" / "mason" / "package.yaml"
JUPYTER = REPOSITORY / "client" / "jupyter" / "ranksafe.json"

PITFALL = """\
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments


def main():
    model = AutoModelForCausalLM.from_pretrained("🤗中文", device_map="auto")
    trainer = Trainer(model=model, args=TrainingArguments("out"))
    trainer.train()


if __name__ == "__main__":
    main()
"""
CODECS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}
"""And the bytes of a unit, by the editor's name for it."""
CONFIGURATION = 'select = ["RS001", "RS201"]\nlauncher = "accelerate"\n'

CELLS = """\



get_ipython().run_line_magic("matplotlib", " inline")
get_ipython().getoutput("nvidia-smi")
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments


model = AutoModelForCausalLM.from_pretrained("🤗中文", device_map="auto")


# START_CELL_MAGIC("time", "")
trainer = Trainer(model=model, args=TrainingArguments("out"))
trainer.train()
# END_CELL_MAGIC
"""
"""What jupyterlab-lsp 5.3.0 makes of a notebook, recorded."""


# -- what the guide says


def fences(page: str) -> dict[str, list[tuple[str, str]]]:
    """Language and text of the snippets of a page, by the heading they stand under."""
    found: dict[str, list[tuple[str, str]]] = {}
    for section in re.split(r"^## ", page, flags=re.MULTILINE)[1:]:
        heading = section.partition("\n")[0]
        found[heading] = re.findall(r"^```(\w+)\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    return found


SNIPPETS = fences((GUIDE / "editors.md").read_text(encoding="utf-8"))


def of_helix() -> list[str]:
    ((language, text),) = SNIPPETS["Helix"]
    assert language == "toml"
    table = tomllib.loads(text)
    (python,) = table["language"]
    assert python["name"] == "python"
    assert "ranksafe" in python["language-servers"]
    server = table["language-server"]["ranksafe"]
    return [server["command"], *server["args"]]


def of_emacs(number: int) -> list[str]:
    language, text = SNIPPETS["Emacs"][number]
    assert language == "elisp"
    assert text.count("(") == text.count(")")
    return re.findall(r'"(.*?)"', text.partition(":activation-fn")[0])


def of_sublime() -> list[str]:
    ((_, text),) = SNIPPETS["Sublime Text"]
    server = json.loads(text)["ranksafe"]
    assert server["enabled"] is True
    assert server["selector"] == "source.python"
    return list(server["command"])


def of_zed() -> list[str]:
    ((_, text),) = SNIPPETS["Zed"]
    settings = json.loads(text)
    ((name, server),) = settings["lsp"].items()
    assert name in settings["languages"]["Python"]["language_servers"]
    return [server["binary"]["path"], *server["binary"]["arguments"]]


def of_jupyterlab() -> list[str]:
    manager = json.loads(JUPYTER.read_text(encoding="utf-8"))["LanguageServerManager"]
    server = manager["language_servers"]["ranksafe"]
    assert server["version"] == 2, "jupyter-lsp knows no other form"
    assert server["languages"] == ["python"]
    assert server["requires_documents_on_disk"] is False
    return list(server["argv"])


COMMANDS: Mapping[str, Callable[[], list[str]]] = {
    "Helix": of_helix,
    "Eglot": lambda: of_emacs(0),
    "lsp-mode": lambda: of_emacs(2),
    "Sublime Text": of_sublime,
    "Zed": of_zed,
    "Zed that pulls": of_zed,
    "JupyterLab": of_jupyterlab,
}


def test_both_languages_have_the_same_snippets() -> None:
    chinese = fences((GUIDE / "editors.zh-cn.md").read_text(encoding="utf-8"))
    assert list(chinese.values()) == list(SNIPPETS.values())


def test_several_servers_in_eglot_end_with_ours() -> None:
    assert of_emacs(1)[-3:] == ["--", *of_emacs(0)]


def test_the_package_for_mason_is_this_one() -> None:
    package = yaml.safe_load(MASON.read_text(encoding="utf-8"))
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert package["source"]["id"] == f"pkg:pypi/{project['name']}@{__version__}"
    assert package["licenses"] == [project["license"]]
    assert package["description"].strip() == project["description"]
    assert package["bin"] == {name: f"pypi:{name}" for name in project["scripts"]}
    lspconfig = package["neovim"]["lspconfig"]
    assert (REPOSITORY / "client" / "neovim" / "lsp" / f"{lspconfig}.lua").is_file()


# -- what the editors do


class Session:
    """One editor with a project open."""

    def __init__(self, client: Client, server: PlainClient, project: Path) -> None:
        self.client = client
        self.server = server
        self.project = project
        self.versions: dict[str, int] = {}

    def open(self, name: str, text: str) -> str:
        uri = (self.project / name).as_uri()
        self.versions[uri] = self.client.first_version
        item = {"uri": uri, "languageId": "python", "version": self.versions[uri], "text": text}
        self.server.notify("textDocument/didOpen", {"textDocument": item})
        return uri

    def change(self, uri: str, changes: list[dict[str, Any]]) -> None:
        self.versions[uri] += 1
        document = {"uri": uri, "version": self.versions[uri]}
        params = {"textDocument": document, "contentChanges": changes}
        self.server.notify("textDocument/didChange", params)

    async def diagnostics(self, uri: str, codes: list[str]) -> list[dict[str, Any]]:
        """What is shown once it has these codes."""
        if self.client.pulls:
            params = {"textDocument": {"uri": uri}, "identifier": "ranksafe"}
            report = await self.server.request("textDocument/diagnostic", params)
            assert [one["code"] for one in report["items"]] == codes
            return list(report["items"])

        def shown() -> list[dict[str, Any]] | None:
            for method, params in reversed(self.server.notifications):
                if method == "textDocument/publishDiagnostics" and params["uri"] == uri:
                    items: list[dict[str, Any]] = params["diagnostics"]
                    right = [one["code"] for one in items] == codes
                    return items if right and params["version"] == self.versions[uri] else None
            return None

        await self.server.until(lambda: shown() is not None)
        return shown() or []

    async def hover(self, uri: str, position: dict[str, int]) -> str:
        params = {"textDocument": {"uri": uri}, "position": position}
        answer = await self.server.request("textDocument/hover", params)
        assert answer["contents"]["kind"] == "markdown"
        return str(answer["contents"]["value"])

    async def preferred_edits(
        self, uri: str, diagnostic: dict[str, Any]
    ) -> tuple[int | None, list[dict[str, Any]]]:
        """Version and edits of the fix that is applied without asking."""
        params = {
            "textDocument": {"uri": uri},
            "range": diagnostic["range"],
            "context": {"diagnostics": [diagnostic], "triggerKind": 1},
        }
        actions = await self.server.request("textDocument/codeAction", params)
        action = next(one for one in actions if one.get("isPreferred"))
        assert action["kind"] == "quickfix"
        if "edit" not in action:
            action = await self.server.request("codeAction/resolve", action)
        (change,) = action["edit"]["documentChanges"]
        assert change["textDocument"]["uri"] == uri
        return change["textDocument"]["version"], change["edits"]

    async def lenses(self, uri: str) -> list[dict[str, Any]]:
        answer = await self.server.request("textDocument/codeLens", {"textDocument": {"uri": uri}})
        return list(answer or ())

    def write_configuration(self, text: str) -> None:
        """As another program does; the editor tells of it, and of settings that may have changed."""
        file = self.project / "ranksafe.toml"
        file.write_text(text)
        changes = [{"uri": file.as_uri(), "type": 2}]
        self.server.notify("workspace/didChangeWatchedFiles", {"changes": changes})
        self.server.notify("workspace/didChangeConfiguration", {"settings": {}})

    def cut(self, text: str, place: dict[str, Any]) -> str:
        """What stands in a range, counted as this editor counts."""
        start, end = self.offset(text, place["start"]), self.offset(text, place["end"])
        return text[start:end]

    def offset(self, text: str, position: dict[str, int]) -> int:
        lines = text.splitlines(keepends=True)
        codec, width = CODECS[self.client.counts_in]
        before = lines[position["line"]].encode(codec)[: position["character"] * width]
        return sum(map(len, lines[: position["line"]])) + len(before.decode(codec))


StartSession = Callable[..., Awaitable[Session]]


@pytest_asyncio.fixture
async def start(tmp_path: Path) -> AsyncIterator[StartSession]:
    servers: list[PlainClient] = []

    async def start_session(client: Client, options: Any = None) -> Session:
        project = tmp_path / "项目 1"
        project.mkdir()
        (project / "ranksafe.toml").write_text(CONFIGURATION)
        server = await PlainClient.start(COMMANDS[client.name](), _environment(tmp_path))
        servers.append(server)
        server.answers["workspace/configuration"] = [None]
        answer = await server.request("initialize", client.initialize(project, options))
        assert answer["capabilities"]["positionEncoding"] == client.counts_in
        assert ("diagnosticProvider" in answer["capabilities"]) is client.pulls
        server.notify("initialized", {})
        if client.settings_after_start is not None:
            settings = {"settings": client.settings_after_start}
            server.notify("workspace/didChangeConfiguration", settings)
        return Session(client, server, project)

    yield start_session
    for server in servers:
        await server.kill()


def _environment(home: Path) -> dict[str, str]:
    """With the command on PATH, as an installation puts it there."""
    folder = home / "bin"
    folder.mkdir()
    command = folder / "ranksafe"
    command.write_text(
        f"#!{sys.executable}\nfrom ranksafe.cli.main import run_command_line\n\nrun_command_line()\n"
    )
    command.chmod(0o755)
    return server_environment() | {
        "PATH": os.pathsep.join([str(folder), os.environ["PATH"]]),
        "XDG_STATE_HOME": str(home / "state"),
    }


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
async def test_a_pitfall_is_shown_explained_and_fixed(client: Client, start: StartSession) -> None:
    session = await start(client)
    uri = session.open("train.py", PITFALL)
    (diagnostic,) = await session.diagnostics(uri, ["RS201"])
    assert session.cut(PITFALL, diagnostic["range"]) == '"auto"'
    hover = await session.hover(uri, diagnostic["range"]["start"])
    assert "**RS201**" in hover
    assert "accelerate (ranksafe.toml)" in hover
    if client.offers_fixes:
        version, edits = await session.preferred_edits(uri, diagnostic)
        assert version == session.versions[uri]
        (edit,) = edits
        assert "device_map" in session.cut(PITFALL, edit["range"])
        changes = [{"range": edit["range"], "text": edit["newText"]}]
    else:
        changes = [{"text": PITFALL.replace(', device_map="auto"', "")}]
    session.change(uri, changes)
    await session.diagnostics(uri, [])
    # Another configuration: settings may be asked for, and the client told to ask for diagnostics and lenses again.
    await session.lenses(uri)
    session.write_configuration('select = ["RS001", "RS201"]\nlauncher = "torchrun"\n')
    uri = session.open("other.py", PITFALL)
    (diagnostic,) = await session.diagnostics(uri, ["RS201"])
    while "torchrun (ranksafe.toml)" not in await session.hover(uri, diagnostic["range"]["start"]):
        pass
    assert await session.server.end() == 0
    permissions = Permissions(client.capabilities)
    for method, params in session.server.asked:
        permissions.note(method, params)
    assert permissions.broken == [], "it asks for nothing that the editor does not know"


async def test_the_options_that_the_guide_names(start: StartSession) -> None:
    session = await start(HELIX, {"settings": {"gpus": 4}, "trusted": True})
    uri = session.open("train.py", PITFALL)
    (diagnostic,) = await session.diagnostics(uri, ["RS201"])
    hover = await session.hover(uri, diagnostic["range"]["start"])
    assert "4 GPUs (editor settings)" in hover
    assert await session.lenses(uri), "a trusted script can be run"
    assert await session.server.end() == 0


async def test_the_cells_of_a_notebook_in_jupyterlab_are_one_text(start: StartSession) -> None:
    session = await start(JUPYTERLAB)
    uri = session.open("train.ipynb", CELLS)
    # It sends the text again at once, with the same version.
    document = {"uri": uri, "version": session.versions[uri]}
    params = {"textDocument": document, "contentChanges": [{"text": CELLS}]}
    session.server.notify("textDocument/didChange", params)
    (diagnostic,) = await session.diagnostics(uri, ["RS201"])
    assert session.cut(CELLS, diagnostic["range"]) == '"auto"'
    assert "**RS201**" in await session.hover(uri, diagnostic["range"]["start"])
    session.change(uri, [{"text": CELLS.replace(', device_map="auto"', "")}])
    await session.diagnostics(uri, [])
    assert await session.server.end() == 0


async def test_a_file_beside_a_notebook_that_was_never_saved(start: StartSession) -> None:
    """A virtual document need not be on disk, nor its folder."""
    session = await start(JUPYTERLAB)
    uri = session.open(".virtual_documents/new/Untitled.ipynb", CELLS)
    await session.diagnostics(uri, ["RS201"])
    assert await session.server.end() == 0
