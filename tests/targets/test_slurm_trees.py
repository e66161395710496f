"""A run's own tree of a project that was sent to a cluster, without a cluster."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from ranksafe.runs.targets.slurm.login_node import submit, tree

_NASTY = "a 'b' $(touch pwned)\n名前"


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A project as it was sent: what of it is the project's own is told by `_files`."""
    base = tmp_path / "projects" / "key" / "my project"
    (base / "package").mkdir(parents=True)
    (base / "train.py").write_text("text")
    (base / "package" / _NASTY).write_text("nasty")
    (base / "large.bin").write_bytes(b"0" * 1_000_000)
    (base / "link.py").symlink_to("train.py")
    _sent(base, _files(base))
    return base


def _files(base: Path) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for name in ("train.py", f"package/{_NASTY}", "large.bin", "link.py"):
        status = (base / name).lstat()
        target = os.readlink(base / name) if (base / name).is_symlink() else None
        found[name] = [status.st_size, status.st_mtime_ns, status.st_mode, target]
    return found


def _sent(base: Path, files: dict[str, list[Any]]) -> None:
    (base.parent / "manifest.json").write_text(json.dumps(files))


def _made(base: Path, run: str = "run") -> tuple[Path, Path]:
    directory = base.parents[2] / "runs" / run
    directory.mkdir(parents=True)
    own = directory / "tree" / base.name
    tree.make(str(directory), str(base), str(own), _files(base))
    return directory, own


def test_a_tree_is_the_project_and_shares_nothing_that_can_be_written_to_small(base: Path) -> None:
    (base / "checkpoints" / "step-1").mkdir(parents=True)
    (base / "checkpoints" / "step-1" / "weights").write_text("of a run")
    (base / "package" / "cache.db").write_text("of a run")
    (base / "package" / "__pycache__").mkdir()
    _, own = _made(base)
    assert (own / "train.py").read_text() == "text"
    assert (own / "package" / _NASTY).read_text() == "nasty"
    assert os.readlink(own / "link.py") == "train.py"
    (own / "train.py").write_text("written to")
    assert (base / "train.py").read_text() == "text"
    assert (own / "large.bin").stat().st_ino == (base / "large.bin").stat().st_ino
    weights = Path("checkpoints", "step-1", "weights")
    assert (own / weights).readlink() == base / weights
    assert (own / "package" / "cache.db").readlink() == base / "package" / "cache.db"
    assert not (own / "package" / "__pycache__").exists()


def test_of_another_submission_no_tree_is_made(base: Path) -> None:
    files = _files(base)
    _sent(base, {**files, "other.py": [1, 1, 0o600, None]})
    directory = base.parents[2] / "runs" / "run"
    directory.mkdir(parents=True)
    with pytest.raises(tree.Changed):
        tree.make(str(directory), str(base), str(directory / "tree" / "p"), files)
    assert list(directory.iterdir()) == []


def test_another_submission_that_comes_between_is_waited_for(
    base: Path,
) -> None:
    lock = os.open(str(base.parent) + ".lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    made = threading.Thread(target=_made, args=(base,))
    made.start()
    made.join(0.5)
    assert made.is_alive()
    os.close(lock)
    made.join(30)
    assert not made.is_alive()


def test_what_a_run_wrote_is_found_in_the_projects_folder(base: Path) -> None:
    (base / "out").mkdir()
    (base / "out" / "old").write_text("old")
    directory, own = _made(base)
    (own / "out" / "new").write_text("new")
    (own / "package" / "result").mkdir()
    (own / "package" / "result" / _NASTY).write_text("deep")
    (own / "latest").symlink_to("out")
    (own / "train.py").write_text("spoiled")
    (own / "__pycache__").mkdir()
    program = Path(tree.__file__)
    subprocess.run([sys.executable, "-I", str(program), str(directory)], check=True)
    assert (base / "out" / "new").read_text() == "new"
    assert (base / "package" / "result" / _NASTY).read_text() == "deep"
    assert os.readlink(base / "latest") == "out"
    assert (base / "train.py").read_text() == "text"
    assert not (base / "__pycache__").exists()
    # A name that the run printed still leads there; a second time changes nothing.
    assert (own / "package" / "result" / _NASTY).read_text() == "deep"
    tree.give_back(str(directory))
    assert (base / "package" / "result" / _NASTY).read_text() == "deep"


def test_a_script_may_delete_what_an_earlier_run_wrote_and_write_it_anew(base: Path) -> None:
    for name in ("old", "again"):
        (base / "out" / name).mkdir(parents=True)
        (base / "out" / name / "log").write_text("of an earlier run")
    directory, own = _made(base)
    shutil.rmtree(own / "out")
    (own / "out" / "again").mkdir(parents=True)
    (own / "out" / "again" / "log").write_text("of this run")
    tree.give_back(str(directory))
    assert (base / "out" / "again" / "log").read_text() == "of this run"
    assert (base / "out" / "old" / "log").read_text() == "of an earlier run"


def test_a_folder_of_many_files_is_one_link(base: Path) -> None:
    (base / "data" / "images").mkdir(parents=True)
    for number in range(2001):
        (base / "data" / "images" / str(number)).touch()
    directory, own = _made(base)
    assert (own / "data").readlink() == base / "data"
    (own / "data" / "index").write_text("new")
    tree.give_back(str(directory))
    assert (base / "data" / "index").read_text() == "new"


def test_two_runs_that_write_the_same_keep_the_newer(base: Path) -> None:
    (first, one), (second, other) = _made(base, "1"), _made(base, "2")
    for own, text, time in ((one, "newer", 2_000), (other, "older", 1_000)):
        (own / "out").mkdir()
        (own / "out" / "log").write_text(text)
        (own / "out" / text).write_text("own")
        os.utime(own / "out" / "log", (time, time))
    tree.give_back(str(first))
    tree.give_back(str(second))
    assert (base / "out" / "log").read_text() == "newer"
    assert {path.name for path in (base / "out").iterdir()} == {"log", "newer", "older"}


def test_a_file_that_was_sent_meanwhile_is_the_users(base: Path) -> None:
    directory, own = _made(base)
    (own / "results.csv").write_text("of the run")
    (base / "results.csv").write_text("the user's")
    os.utime(base / "results.csv", (1_000, 1_000))
    _sent(base, {**_files(base), "results.csv": [10, 1, 0o600, None]})
    tree.give_back(str(directory))
    assert (base / "results.csv").read_text() == "the user's"


def test_old_runs_go_with_their_trees_and_what_they_wrote_stays(base: Path) -> None:
    for number in range(32):
        directory, own = _made(base, f"{number:02}")
        (own / f"result.{number}").write_text("x")
        (directory / "over.json").write_text("{}")
    waiting, _ = _made(base, "00-waits")
    submit._prune(str(waiting.parent))
    left = sorted(path.name for path in waiting.parent.iterdir())
    assert left == ["00-waits", *(f"{number:02}" for number in range(3, 32))]
    written = sorted(path.name for path in base.glob("result.*"))
    assert written == ["result.0", "result.1", "result.2"]
    assert (base / "large.bin").stat().st_size == 1_000_000


def test_a_run_of_a_project_that_was_not_sent_has_nothing_to_give(tmp_path: Path) -> None:
    tree.give_back(str(tmp_path))
    assert list(tmp_path.iterdir()) == []
