"""What a passed rehearsal did not come to: the lines that the agent saw, and what is told of the others."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from ranksafe.localization import LANGUAGES
from ranksafe.runs.agent import INJECT_DIRECTORY
from ranksafe.runs.model import Unreached
from ranksafe.runs.unreached import unreached, unreached_in_words

SCRIPT = """\
import torch
import torch.distributed as dist
from helpers import validate


def train(steps):
    for step in range(steps):
        if step < 0:
            print("never")


def save(model):
    if dist.get_rank() == 0:
        dist.barrier()


def report():
    print("report")


def main():
    dist.init_process_group("gloo")
    train(2)
    raise SystemExit(0)
    save(
        None,
    )
    validate()
    report()


if __name__ == "__main__":
    main()
"""
HELPERS = """\
def validate():
    print("validated")
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A script, a file of its own, and what stands in for torch, which is installed."""
    folder = tmp_path / "project"
    package = folder / ".venv" / "lib" / "site-packages" / "torch" / "distributed"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").write_text("")
    (package / "__init__.py").write_text("def init_process_group(*_):\n    return None\n")
    (folder / "train.py").write_text(SCRIPT)
    (folder / "helpers.py").write_text(HELPERS)
    return folder


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    return folder


def run(project: Path, directory: Path, detectors: str = "all") -> None:
    """Run the script as rank 0 of a run."""
    script = project / "train.py"
    packages = project / ".venv" / "lib" / "site-packages"
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, (INJECT_DIRECTORY, packages))),
        "RANKSAFE_RUN_DIRECTORY": str(directory),
        "RANKSAFE_RUN_SCRIPT": str(script),
        "RANKSAFE_RUN_DETECTORS": detectors,
        "RANKSAFE_RUN_STEPS": "2",
    }
    (directory / "start.json").write_text("{}")
    subprocess.run([sys.executable, str(script)], cwd=project, env=environment, check=True)


def lines_of(directory: Path, name: str) -> list[int]:
    entries = (directory / "rank0.reached").read_text().splitlines()
    return sorted(int(line) for line, path in (each.split("\t") for each in entries) if path.endswith(name))  # fmt: skip


def test_each_line_of_the_users_files_is_noted_once(project: Path, directory: Path) -> None:
    run(project, directory)
    assert lines_of(directory, "train.py") == [1, 2, 3, 6, 7, 8, 12, 17, 21, 22, 23, 24, 32, 33]
    assert lines_of(directory, "helpers.py") == [1]
    assert lines_of(directory, "__init__.py") == []


def test_forked_workers_count(project: Path, directory: Path) -> None:
    forks = "import os\nif os.fork() == 0:\n    print('worker')\n    os._exit(0)\nos.wait()\n"
    (project / "train.py").write_text(forks)
    run(project, directory)
    assert lines_of(directory, "train.py") == [1, 2, 3, 4, 5]


def test_the_script_does_not_notice(project: Path, directory: Path) -> None:
    (project / "train.py").write_text(
        "import sys, traceback\n"
        "assert sys.gettrace() is None\n"
        "try:\n"
        "    import helpers\n"
        "except ValueError as error:\n"
        "    frames = traceback.extract_tb(error.__traceback__)\n"
        "    assert [frame.name for frame in frames] == ['<module>', '<module>'], frames\n"
    )
    (project / "helpers.py").write_text("import json\nraise ValueError(json)\n")
    run(project, directory)
    assert lines_of(directory, "helpers.py") == [1, 2]
    assert lines_of(directory, "train.py") == [1, 2, 3, 4, 5, 6, 7]


def test_a_module_that_is_executed_without_an_import_ends_nothing(
    project: Path, directory: Path
) -> None:
    (project / "train.py").write_text(
        "from importlib.util import module_from_spec, spec_from_file_location\n"
        "spec = spec_from_file_location('helpers', 'helpers.py')\n"
        "helpers = module_from_spec(spec)\n"
        "spec.loader.exec_module(helpers)\n"
        "def step():\n"
        "    return helpers.RATE\n"
        "step()\n"
    )
    (project / "helpers.py").write_text("RATE = 1\n")
    run(project, directory)
    assert lines_of(directory, "train.py") == [1, 2, 3, 4, 5, 6, 7]


def test_silence_where_the_script_traces_itself(project: Path, directory: Path) -> None:
    script = project / "train.py"
    script.write_text("import sys\nsys.settrace(lambda *_: None)\n" + SCRIPT)
    run(project, directory)
    if sys.version_info < (3, 12):
        assert unreached(directory, script, 2, is_whole=False) == ()


def test_nothing_is_noted_in_a_run_on_real_devices(project: Path, directory: Path) -> None:
    run(project, directory, "cheap")
    assert not (directory / "rank0.reached").exists()


def test_findings_and_functions_that_were_not_reached(project: Path, directory: Path) -> None:
    run(project, directory)
    script = project / "train.py"
    assert unreached(directory, script, 2, is_whole=False) == (
        Unreached(str(script), 14, "RS401"),
        Unreached(str(script), 25, "save"),
        Unreached(str(script), 28, "validate"),
        Unreached(str(script), 29, "report"),
    )
    # To the end: a branch that was not taken is the script's own decision.
    assert unreached(directory, script, 2, is_whole=True) == (Unreached(str(script), 14, "RS401"),)


def test_reached_by_any_rank_is_reached(project: Path, directory: Path) -> None:
    run(project, directory)
    script = project / "train.py"
    (directory / "rank1.reached").write_text(
        "".join(f"{line}\t{script}\n" for line in (14, 25, 28, 29))
    )
    assert unreached(directory, script, 2, is_whole=False) == ()


def test_silence_where_the_lines_are_not_known(project: Path, directory: Path) -> None:
    script = project / "train.py"
    spawns = "import multiprocessing.popen_spawn_posix\n" + SCRIPT
    script.write_text(spawns)
    run(project, directory)
    assert unreached(directory, script, 2, is_whole=False) == ()


def test_silence_about_a_file_that_was_edited_since(project: Path, directory: Path) -> None:
    run(project, directory)
    script = project / "train.py"
    later = (directory / "start.json").stat().st_mtime + 10
    os.utime(script, (later, later))
    assert unreached(directory, script, 2, is_whole=False) == ()


def test_silence_without_a_record(project: Path, directory: Path) -> None:
    assert unreached(directory, project / "train.py", 2, is_whole=False) == ()


def test_one_sentence_with_the_first_places() -> None:
    found = [Unreached("/project/train.py", line, f"RS40{line}") for line in range(1, 8)]
    assert unreached_in_words([], 2, is_whole=False) == []
    [sentence] = unreached_in_words(found, 2, is_whole=False)
    for language in LANGUAGES:
        text = sentence.in_language(language)
        assert "RS401 (train.py:1), " in text
        assert "RS405 (train.py:5), …" in text
        assert "--steps 0" in text
    [whole] = unreached_in_words(found[:1], None, is_whole=True)
    assert "--steps" not in whole.en
