"""``make vscode``: which editor it installs into, and when it asks. Small programs on PATH stand in for the editors."""

from __future__ import annotations

import os
import platform
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[2] / "tools"
NPM = '[ "$1" = ci ] || { mkdir -p dist && touch dist/ranksafe-linux-x64-0.1.0.vsix; }'
on_linux = pytest.mark.skipif(
    (sys.platform, platform.machine()) != ("linux", "x86_64"),
    reason="the workbench is served on Linux x64 only",
)


class Desk:
    """A copy of the tools in a folder of their own, and the programs that are on PATH."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / "bin"
        self.bin.mkdir()
        for name in ("open_editor.py", "environments.py"):
            (folder / "tools").mkdir(exist_ok=True)
            shutil.copy(TOOLS / name, folder / "tools")
        self.have("npm", NPM)
        self.have("node")

    def have(self, name: str, then: str = "") -> None:
        """A program that notes how it was called, and then does something."""
        program = self.bin / name
        log = self.folder / "calls"
        program.write_text(f'#!/bin/sh\necho "{name} $*" >> "{log}"\nPATH=/usr/bin:/bin\n{then}\n')
        program.chmod(0o755)

    def make(self, typed: str | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
        """With a terminal where something is typed, without one otherwise."""
        environment = {"PATH": str(self.bin), "HOME": str(self.folder), **variables}
        command = [sys.executable, str(self.folder / "tools" / "open_editor.py"), "vscode"]
        ours, theirs = pty.openpty()
        try:
            if typed is not None:
                os.write(ours, f"{typed}\n".encode())
            return subprocess.run(
                command,
                stdin=theirs if typed is not None else subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=60,
                env=environment,
                check=False,
            )
        finally:
            os.close(ours)
            os.close(theirs)

    @property
    def calls(self) -> list[str]:
        """What was called, without npm."""
        log = self.folder / "calls"
        lines = log.read_text().splitlines() if log.exists() else []
        return [line for line in lines if not line.startswith("npm ")]

    def installed_with(self, editor: str) -> bool:
        """Whether the package was installed into this editor alone, and the example opened."""
        package = self.folder / "dist" / "ranksafe-linux-x64-0.1.0.vsix"
        example = self.folder / "examples" / "finetune.py"
        return self.calls == [
            f"{editor} --install-extension {package} --force",
            f"{editor} {self.folder} {example}",
        ]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.mark.parametrize(
    ("command", "name"), [("code", "VS Code"), ("cursor", "Cursor"), ("codium", "VSCodium")]
)
def test_the_editor_that_is_there_is_taken_and_named(desk: Desk, command: str, name: str) -> None:
    desk.have(command)
    done = desk.make()
    assert done.returncode == 0, done.stderr
    assert desk.installed_with(command)
    assert f"found {name} ({desk.bin / command})" in done.stderr


def test_of_several_the_user_chooses_one(desk: Desk) -> None:
    desk.have("code")
    desk.have("codium")
    done = desk.make(typed="2")
    assert done.returncode == 0, done.stderr
    assert desk.installed_with("codium")
    assert "1: VS Code" in done.stderr
    assert "2: VSCodium" in done.stderr


@pytest.mark.parametrize("typed", ["3", "", "yes"])
def test_another_answer_installs_nothing(desk: Desk, typed: str) -> None:
    desk.have("code")
    desk.have("cursor")
    done = desk.make(typed=typed)
    assert done.returncode == 1
    assert desk.calls == []


def test_nobody_to_ask_is_told_what_to_set(desk: Desk) -> None:
    desk.have("code")
    desk.have("cursor")
    done = desk.make()
    assert done.returncode == 1
    assert desk.calls == []
    assert "EDITOR_COMMAND=code make vscode" in done.stderr
    assert desk.make(EDITOR_COMMAND="cursor").returncode == 0
    assert desk.installed_with("cursor")


def test_a_command_that_is_not_there_is_named(desk: Desk) -> None:
    desk.have("code")
    done = desk.make(EDITOR_COMMAND="zed")
    assert done.returncode == 1
    assert desk.calls == []
    assert "EDITOR_COMMAND=zed" in done.stderr


@on_linux
def test_without_an_editor_the_browser_is_offered_with_what_it_costs(desk: Desk) -> None:
    done = desk.make(typed="y")
    assert done.returncode == 0, done.stderr
    assert desk.calls == ["node tools/workbench.mjs"]
    assert "MB to download" in done.stderr
    assert str(desk.folder / ".cache" / "ranksafe") in done.stderr


@on_linux
@pytest.mark.parametrize("typed", ["n", ""])
def test_who_does_not_want_it_gets_nothing(desk: Desk, typed: str) -> None:
    done = desk.make(typed=typed)
    assert done.returncode == 1
    assert desk.calls == []


def test_without_an_editor_and_without_a_user_it_stops(desk: Desk) -> None:
    done = desk.make()
    assert done.returncode == 1
    assert desk.calls == []
    assert not (desk.folder / "calls").exists(), "nothing was built, either"
    assert "VSCodium" in done.stderr


@on_linux
def test_the_browser_can_be_chosen_beforehand(desk: Desk) -> None:
    desk.have("code")
    assert desk.make(EDITOR_COMMAND="browser").returncode == 0
    assert desk.calls == ["node tools/workbench.mjs"]
