"""The hooks, as pre-commit itself installs and runs them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from environments import ROOT

from tests.cli.conftest import DEVICE_MAP

PLAIN_TENSORS = (ROOT / "tests/editors/vscode/workspace/plain_tensor.py").read_text(
    encoding="utf-8"
)
"""RS513 twice, with safe fixes."""


def pre_commit(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PRE_COMMIT_HOME": str(folder.parent / "pre-commit")}
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE", "PYTHONPATH", "VIRTUAL_ENV"):
        environment.pop(name, None)
    command = [sys.executable, "-m", "pre_commit", *words]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_the_definition_is_valid(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    done = pre_commit(folder, "validate-manifest", str(ROOT / ".pre-commit-hooks.yaml"))
    assert done.returncode == 0, done.stdout


@pytest.mark.long
def test_both_hooks_in_a_project(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "generated").mkdir(parents=True)
    files = {"train.py": DEVICE_MAP, "generated/train.py": DEVICE_MAP, "net.py": PLAIN_TENSORS}
    files |= {"ranksafe.toml": 'exclude = ["generated"]\n', "notes.md": "device_map"}
    for name, text in files.items():
        (project / name).write_text(text, encoding="utf-8")
    for words in (["init", "--quiet"], ["add", "--all"]):
        subprocess.run(["git", *words], cwd=project, check=True)
    done = pre_commit(project, "try-repo", str(ROOT), "--verbose", "--files", *files)
    assert done.returncode == 1, done.stdout + done.stderr
    checked, fixed = done.stdout.split("hook id: ranksafe\n")[1].split("hook id: ranksafe-fix\n")
    assert "train.py:5:70: warning[RS201]" in checked
    assert "in 2 of 2 files" in checked, "what is excluded is not checked, nor what is no Python"
    assert "files were modified by this hook" in fixed
    assert (project / "net.py").read_text(encoding="utf-8").count("register_buffer") == 2
    assert (project / "generated/train.py").read_text(encoding="utf-8") == DEVICE_MAP
