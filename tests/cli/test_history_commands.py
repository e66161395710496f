"""``runs``, ``report`` and ``compare`` as a user types them, after real runs of a script that needs no torch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = (
    "import sys\n\nprint('start')\nif '--fail' in sys.argv:\n    raise ValueError('as asked')\n"
)


class Shell:
    """A user's shell in a project, with a cache of its own."""

    def __init__(self, folder: Path, cache: Path) -> None:
        self.folder = folder
        path = os.pathsep.join(str(ROOT / part) for part in ("server", "rules"))
        self.environment = {
            **os.environ,
            "PYTHONPATH": path,
            "XDG_CACHE_HOME": str(cache),
            "LC_ALL": "C.UTF-8",
        }

    def ranksafe(self, *words: str, status: int = 0, folder: Path | None = None) -> str:
        """Standard output."""
        answer = subprocess.run(
            [sys.executable, "-m", "ranksafe", *words],
            cwd=folder or self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert answer.returncode == status, answer.stderr
        return answer.stdout + (answer.stderr if status == 2 else "")

    def run(self, *arguments: str, status: int = 0) -> str:
        """Run the script; returns the run's id."""
        python = ("--python", sys.executable, "--launcher", "python", "--cpu-ranks")
        output = self.ranksafe(
            "run", "train.py", *python, "--output-format", "json", "--", *arguments, status=status
        )
        return str(json.loads(output)["run_id"])


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "pyproject.toml").touch()
    (folder / "train.py").write_text(SCRIPT)
    return Shell(folder, tmp_path / "cache")


def test_the_history_lists_what_was_run(shell: Shell, tmp_path: Path) -> None:
    assert "No run of" in shell.ranksafe("runs")
    first = shell.run("--fail", status=1)
    second = shell.run("--api-key", "hush")
    lines = shell.ranksafe("runs").splitlines()
    assert [line.split()[0] for line in lines] == [second, first]
    assert "succeeded" in lines[0]
    assert lines[1].endswith("ValueError: as asked (rank 0, train.py:5)")
    assert "失败" in shell.ranksafe("runs", "--lang", "zh-cn")

    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert json.loads(shell.ranksafe("runs", "--output-format", "json", folder=elsewhere)) == []
    runs = json.loads(shell.ranksafe("runs", "--all", "--output-format", "json", folder=elsewhere))
    assert [(run["run_id"], run["outcome"]) for run in runs] == [
        (second, "succeeded"),
        (first, "failed"),
    ]
    # Python tells columns since 3.11.
    column = 5 if sys.version_info >= (3, 11) else None
    assert runs[1]["failures"][0]["location"] == {"row": 5, "column": column}


def test_a_report_is_written_where_it_is_wanted(shell: Shell, tmp_path: Path) -> None:
    first = shell.run("--fail", status=1)
    path = Path(shell.ranksafe("report").strip())
    assert path.name == "report.html"
    assert path.parent.name == first
    text = path.read_text(encoding="utf-8")
    assert "ValueError: as asked" in text
    assert "<script" not in text

    (shell.folder / "train.py").write_text(SCRIPT + "# edited\n")
    shell.run("--api-key", "hush", "--fail", status=1)
    other = tmp_path / "out put.html"
    words = ("report", "--output", str(other), "--compare", first, "--lang", "zh-cn")
    assert shell.ranksafe(*words).strip() == str(other)
    text = other.read_text(encoding="utf-8")
    assert '<html lang="zh-CN">' in text
    assert "+# edited" in text
    assert "hush" not in text

    assert "lists them" in shell.ranksafe("report", "none", status=2)
    missing = str(tmp_path / "no" / "folder.html")
    assert "cannot be written" in shell.ranksafe("report", "--output", missing, status=2)


def test_two_runs_are_compared(shell: Shell) -> None:
    first = shell.run("--fail", status=1)
    assert "Nothing that was recorded differs" in shell.ranksafe("compare", first, first)
    (shell.folder / "train.py").write_text(SCRIPT.replace("'start'", "'begin'"))
    second = shell.run()
    text = shell.ranksafe("compare", first)
    assert "outcome: failed → succeeded" in text
    assert "arguments: --fail → –" in text
    assert "-print('start')\n+print('begin')" in text
    value = json.loads(shell.ranksafe("compare", first, second, "--output-format", "json"))
    assert [run["run_id"] for run in value["runs"]] == [first, second]
    assert "+print('begin')" in value["code"]
    assert "结果" in shell.ranksafe("compare", first, "--lang", "zh-cn")
    shell.ranksafe("compare", "none", status=2)
