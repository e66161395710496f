"""Promise: what lies in a folder is read, never started or imported, unless its user names it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.hardening.measured import python, ranksafe
from tests.hardening.test_hostile_messages import WARNED

SHADOWS = "raise SystemExit('imported from the folder')\n"
_NAMES = (
    *("argparse", "json", "libcst", "yaml", "pathspec", "tomllib", "tomli", "asyncio", "pygls"),
    *("lsprotocol", "multiprocessing", "difflib", "sqlite3", "ranksafe_rules", "hashlib"),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "train.py").write_text(WARNED)
    for name in _NAMES:
        (folder / f"{name}.py").write_text(SHADOWS)
    return folder


@pytest.mark.parametrize(
    "words", [["check", "--no-cache", "train.py"], ["fix", "--unsafe", "train.py"]]
)
def test_nothing_is_imported_from_the_working_directory(folder: Path, words: list[str]) -> None:
    done = ranksafe(*words, folder=folder)
    assert "imported from the folder" not in done.error
    assert "RS201" in done.out + done.error


def test_nor_by_the_language_server(folder: Path) -> None:
    done = python("-m", "ranksafe.lsp", folder=folder)
    assert (done.status, done.error) == (0, "")


def test_doctor_starts_no_python_of_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    (folder / ".venv" / "bin").mkdir(parents=True)
    (folder / ".venv" / "pyvenv.cfg").write_text(f"home = {Path(sys.executable).parent}\n")
    program = folder / ".venv" / "bin" / "python"
    program.write_text("#!/bin/sh\ntouch started\n")
    program.chmod(0o755)
    done = ranksafe("doctor", folder=folder)
    assert done.status == 2
    assert "--python" in done.error
    assert not list(tmp_path.rglob("started"))
