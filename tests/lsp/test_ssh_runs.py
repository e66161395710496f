"""Runs on another machine from the editor: a private sshd, failures on the lines here."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from lsprotocol import types
from ranksafe.lsp.options import read_options

from tests.targets.far_host import processes_with, until
from tests.targets.ssh_server import HOST, SshServer, ssh_server

from .conftest import Editor, StartEditor

TARGET = f"ssh:{HOST}"
# Starts its ranks itself, so it needs neither torch nor a launcher.
SCRIPT = """\
import sys
import time


def notebook_launcher(function):
    function()


def main():
    print("started", flush=True)
    {body}


if __name__ == "__main__":
    notebook_launcher(main)
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SshServer]:
    with ssh_server(tmp_path / "sshd") as running:
        yield running


def _hosts(tmp_path: Path) -> str:
    """The user's own settings."""
    own = tmp_path / "own" / "ranksafe"
    own.mkdir(parents=True)
    (own / "hosts.toml").write_text(
        f'[{HOST}]\nfolder = "{tmp_path / "far"}"\ninterpreter = "{sys.executable}"\ndespite-slurm = true\n'
    )
    return str(own.parent)


async def _editor(start_editor: StartEditor, server: SshServer, tmp_path: Path) -> Editor:
    return await start_editor(
        options={"python": "/bin/false"},  # of this machine, of no use there
        environment={
            "XDG_CONFIG_HOME": _hosts(tmp_path),
            "RANKSAFE_SSH_CONFIG": str(server.config),
        },
    )


async def test_a_failure_there_is_drawn_on_its_line_here(
    start_editor: StartEditor, server: SshServer, tmp_path: Path
) -> None:
    editor = await _editor(start_editor, server, tmp_path)
    text = SCRIPT.format(body="raise ValueError('bad batch')")
    uri = editor.open("train.py", text)
    assert await editor.execute("ranksafe.setTarget", uri, TARGET) == {"target": TARGET}
    answer = await editor.execute("ranksafe.run", uri)
    assert answer.get("runId"), answer

    def failures() -> list[types.Diagnostic]:
        return [one for one in editor.shown(uri) if one.source == "ranksafe run"]

    (failure, *_) = await editor.until(failures)
    assert failure.range.start.line == text.splitlines().index("    raise ValueError('bad batch')")
    assert "ValueError: bad batch" in failure.message


async def test_an_editor_that_is_closed_ends_its_run_there(
    start_editor: StartEditor, server: SshServer, tmp_path: Path
) -> None:
    editor = await _editor(start_editor, server, tmp_path)
    uri = editor.open("train.py", SCRIPT.format(body="time.sleep(300)"))
    await editor.execute("ranksafe.setTarget", uri, TARGET)
    answer = await editor.execute("ranksafe.run", uri)
    assert answer.get("runId"), answer
    mark = str(tmp_path / "far" / "projects")
    until(lambda: processes_with(mark) != [])
    await editor.client.shutdown_session()
    until(lambda: processes_with(mark) == [])
    editor.client.capabilities = None


async def test_the_users_ssh_configuration_is_used_in_trusted_workspaces_only(
    start_editor: StartEditor, server: SshServer, tmp_path: Path
) -> None:
    used, named_by_folder = tmp_path / "used", tmp_path / "named by the folder"
    config = server.client_config("own", f'Match exec "touch {used}"')
    editor = await start_editor(
        options={"trusted": False, "sshConfigFile": str(config)},
        configuration={"sshConfigFile": str(named_by_folder)},
        environment={"XDG_CONFIG_HOME": _hosts(tmp_path), "RANKSAFE_SSH_CONFIG": "/dev/null"},
    )
    uri = editor.open("train.py", SCRIPT.format(body="raise ValueError('bad batch')"))
    await editor.execute("ranksafe.setTarget", uri, TARGET)
    answer = await editor.execute("ranksafe.run", uri)
    assert "runId" not in answer, answer
    assert not used.exists()
    editor.client.protocol.notify("ranksafe/trust", {"trusted": True})
    await editor.execute("ranksafe.setTarget", uri, TARGET)
    answer = await editor.execute("ranksafe.run", uri)
    assert answer.get("runId"), answer
    assert used.exists()
    await editor.until(lambda: [one for one in editor.shown(uri) if one.source == "ranksafe run"])


@pytest.mark.parametrize("value", ["config", "", 3, None, ["/a"]])
def test_what_is_no_absolute_path_is_no_ssh_configuration(value: object) -> None:
    assert read_options({"sshConfigFile": value}).ssh_config_file is None


def test_a_configuration_in_the_home_folder() -> None:
    found = read_options({"sshConfigFile": "~/.ssh/work"}).ssh_config_file
    assert found == Path.home() / ".ssh" / "work"
