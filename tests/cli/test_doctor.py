"""``ranksafe doctor``: what it says of this machine beside the run. Small programs on PATH stand in for the editors."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from .conftest import Answer, Call


class Machine:
    """A home folder and the programs on PATH."""

    def __init__(self, folder: Path, call: Call) -> None:
        self.home = folder / "home"
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.home.mkdir(exist_ok=True)
        self.call = call

    def has(self, *commands: str) -> None:
        for command in commands:
            (self.bin / command).write_text("#!/bin/sh\ntouch started\n")
            (self.bin / command).chmod(0o755)

    def write(self, name: str, text: str) -> Path:
        file = self.home / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def list_extensions(self, folder: str, **versions: str) -> None:
        listed = [
            {"identifier": {"id": name.replace("_", ".")}, "version": version}
            for name, version in versions.items()
        ]
        self.write(f"{folder}/extensions.json", json.dumps(listed))

    def doctor(self, *words: str, python: Path | str = sys.executable, path: str = "") -> Answer:
        searched = os.pathsep.join(filter(None, [str(self.bin), path]))
        return self.call(*words, "doctor", "--python", str(python), PATH=searched)


@pytest.fixture
def machine(tmp_path: Path, call: Call) -> Machine:
    return Machine(tmp_path, call)


def test_the_compiler_is_named_or_what_to_install(machine: Machine) -> None:
    assert "no C++ compiler was found" in machine.doctor().out
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        pytest.skip("no C++ compiler here: apt-get install g++")
    assert "C++ compiler: " in machine.doctor(path=str(Path(compiler).parent)).out
    assert "C++ 编译器：" in machine.doctor("--lang", "zh-cn", path=str(Path(compiler).parent)).out


def test_whether_rehearsals_are_isolated_is_said(machine: Machine) -> None:
    assert "rehearsals are isolated here" in machine.doctor().out or (
        "rehearsals are not isolated here: " in machine.doctor().out
    )
    assert "隔离预演" in machine.doctor("--lang", "zh-cn").out


def test_torch_is_found_in_another_python(machine: Machine) -> None:
    """Laid out as an installation is; nothing of it is started."""
    packages = machine.home.parent / "project" / ".venv" / "lib" / "python3.11" / "site-packages"
    (packages / "torch").mkdir(parents=True)
    (packages / "torch" / "version.py").write_text("cuda = None\n")
    (packages / "torch-2.9.0.dist-info").mkdir()
    folder = packages.parents[2]
    (folder / "pyvenv.cfg").write_text("home = /usr/bin\n")
    (folder / "bin").mkdir()
    (folder / "bin" / "python").write_text("#!/bin/sh\ntouch started\n")
    answer = machine.doctor()
    assert answer.status == 2
    assert "torch is missing" in answer.out
    assert f"torch is in {packages / 'torch'}: --python {folder / 'bin' / 'python'}" in answer.out
    assert not (machine.home.parent / "project" / "started").exists()


@pytest.mark.torch
def test_torch_is_found_where_it_is(machine: Machine) -> None:
    python = os.environ.get("RANKSAFE_TEST_TORCH_PYTHON")
    if python is None and os.environ.get("CI") != "true":
        pytest.skip("RANKSAFE_TEST_TORCH_PYTHON names no Python with torch and accelerate")
    assert python is not None
    answer = machine.doctor(python=python)
    assert answer.status == 0, answer.out
    (folder,) = [
        line.removeprefix("torch is in ")
        for line in answer.out.splitlines()
        if line.startswith("torch is in ")
    ]
    assert (Path(folder) / "__init__.py").is_file()


def test_editors_with_and_without_the_extension(machine: Machine) -> None:
    machine.has("code", "cursor")
    machine.list_extensions(".vscode/extensions", ms_python="2026.1.0", Ranksafe_Ranksafe="0.1.0")
    machine.list_extensions(".vscode-oss/extensions", ms_python="2026.1.0")
    machine.write(".vscode-oss/extensions/ranksafe.ranksafe-0.0.9/package.json", "{}")
    answer = machine.doctor()
    assert "\nVS Code: ranksafe 0.1.0 is installed\n" in answer.out
    assert "\nCursor: the extension is not installed" in answer.out
    assert "\nVSCodium: the extension is not installed" in answer.out, (
        "what is left is no extension"
    )
    assert "code-server" not in answer.out
    assert "VS Code：已安装 ranksafe 0.1.0" in machine.doctor("--lang", "zh-cn").out
    assert not (machine.home.parent / "project" / "started").exists(), "no editor was started"


@pytest.mark.parametrize("damaged", ["", "{}", "[1]", '[{"identifier": null}]', "[" * 5000])
def test_a_damaged_list_of_extensions_is_none(machine: Machine, damaged: str) -> None:
    machine.write(".vscode/extensions/extensions.json", damaged)
    answer = machine.doctor()
    assert "\nVS Code: the extension is not installed" in answer.out
    assert answer.error == ""


@pytest.mark.parametrize(
    ("editor", "command", "file"),
    [
        ("Neovim", "nvim", ".config/nvim/lsp/ranksafe.lua"),
        ("Neovim", "nvim", ".config/nvim/lua/plugins/lsp.lua"),
        ("Helix", "hx", ".config/helix/languages.toml"),
        ("Emacs", "emacs", ".emacs.d/init.el"),
        ("Emacs", "emacs", ".config/emacs/init.el"),
        (
            "Sublime Text",
            "subl",
            ".config/sublime-text/Packages/User/LanguageServers.sublime-settings",
        ),
        ("Zed", "zed", ".config/zed/settings.json"),
        ("JupyterLab", "jupyter-lab", ".jupyter/jupyter_server_config.d/ranksafe.json"),
    ],
)
def test_other_editors_that_start_the_server(
    machine: Machine, editor: str, command: str, file: str
) -> None:
    assert f"{editor}:" not in machine.doctor().out
    machine.has(command)
    assert f"\n{editor}: ranksafe is not in its configuration" in machine.doctor().out
    written = machine.write(file, '"command": ["ranksafe", "lsp"]\n')
    assert f"\n{editor}: starts ranksafe ({written})\n" in machine.doctor().out


def test_no_editor_at_all_is_said(machine: Machine) -> None:
    assert "no editor was found" in machine.doctor().out
    assert "没有找到能显示提示的编辑器" in machine.doctor("--lang", "zh-cn").out
