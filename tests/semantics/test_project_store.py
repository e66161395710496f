"""What is kept of a project between sessions: found again, shared, and never a reason to fail."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from ranksafe.semantics.project import summary_store
from ranksafe.semantics.project.files import content_hash
from ranksafe.semantics.project.index import ProjectIndex
from ranksafe.semantics.project.summary import from_text, summarize, to_text
from ranksafe.semantics.project.summary_store import SummaryStore

SERVER = Path(__file__).parents[2] / "server"
TEXT = """\
import os.path, torch as t
from .deep import (One, Two as Zwei)
from ..far import *
LIMIT, NAME = 4, "\\udce4"
SIZE: float = 1e999
Alias = t.nn.Linear
__all__ = ["Model", "build"]
try:
    from fast import run
except ImportError:
    from slow import run

class Model(Alias, Generic[T]):
    def __init__(self):
        self.part = One()
        with open("x"):
            from inner import hidden

def build(): ...
"""


def test_a_summary_survives_its_text() -> None:
    summary = summarize(TEXT)
    assert from_text(to_text(summary)) == summary
    assert summary.constants == {"SIZE": "1e309"}
    assert (0, "slow.run") in summary.depends
    assert (0, "inner.hidden") in summary.depends
    assert (2, "far.*") in summary.depends
    for damaged in ("", "[]", "{}", "[1,2,3,4,5,6,7,8]", to_text(summary)[:-1]):
        assert from_text(damaged) is None


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Old files, so that their times can be trusted."""
    monkeypatch.setattr(summary_store, "WORTH_A_FILE", 1)
    root = tmp_path / "project"
    write(root, "helper.py", "LIMIT = 1\n")
    write(root, "model.py", "import torch\nclass Model(torch.nn.Module): ...\n")
    write(
        root, "user.py", "import torch\nfrom model import Model\ntorch.nn.DataParallel(Model())\n"
    )
    return root


def write(root: Path, name: str, text: str, *, age: float = 60.0) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    then = time.time() - age
    os.utime(path, (then, then))
    return path


def build(root: Path, folder: Path | None) -> ProjectIndex:
    index = ProjectIndex(root, store_folder=folder)
    for _ in index.build():
        pass
    index.store.flush(index.files())
    return index


def database(folder: Path) -> Path:
    (file,) = folder.glob("*.sqlite3")
    return file


def refuse(path: Path) -> str | None:
    raise AssertionError(f"{path} was read")


def test_a_second_session_reads_no_file(project: Path, tmp_path: Path) -> None:
    build(project, tmp_path / "store").store.close()
    warm = ProjectIndex(project, refuse, store_folder=tmp_path / "store")
    for _ in warm.build():
        pass
    assert warm.wraps_data_parallel("model")
    assert not warm.trains_with_trainer("model")
    assert warm.constant_source("helper.LIMIT") == "1"
    assert warm.bases("model.Model") == ["torch.nn.Module"]


def test_a_file_touched_is_read_but_not_parsed(project: Path, tmp_path: Path) -> None:
    build(project, tmp_path / "store")
    os.utime(project / "helper.py", (1_000_000_000, 1_000_000_000))
    warm = ProjectIndex(project, store_folder=tmp_path / "store")
    assert warm.constant_source("helper.LIMIT") == "1"
    assert not warm.store.take_unsaved().summaries  # type: ignore[union-attr]


def test_an_answer_of_yesterday_holds_only_while_other_files_say_the_same(
    project: Path, tmp_path: Path
) -> None:
    assert build(project, tmp_path / "store").wraps_data_parallel("model")
    write(project, "model.py", "from other import Model\n", age=30)
    write(project, "other.py", "import torch\nclass Model(torch.nn.Module): ...\n", age=30)
    warm = ProjectIndex(project, store_folder=tmp_path / "store")
    assert not warm.wraps_data_parallel("model")
    assert warm.wraps_data_parallel("other")


def test_a_file_written_within_the_same_tick_is_read_again(project: Path, tmp_path: Path) -> None:
    path = write(project, "helper.py", "LIMIT = 2\n", age=0)
    now = path.stat().st_mtime_ns
    assert build(project, tmp_path / "store").constant_source("helper.LIMIT") == "2"
    path.write_text("LIMIT = 3\n")
    os.utime(path, ns=(now, now))
    warm = ProjectIndex(project, store_folder=tmp_path / "store")
    assert warm.constant_source("helper.LIMIT") == "3"


@pytest.mark.parametrize("damage", ["garbage", "cut", "empty", "page", "schema", "text", "folder"])
def test_a_damaged_store_is_no_store(project: Path, tmp_path: Path, damage: str) -> None:
    folder = tmp_path / "store"
    build(project, folder).store.close()
    file = database(folder)
    content = file.read_bytes()
    if damage == "garbage":
        file.write_bytes(b"not a database" * 1_000)
    elif damage == "cut":
        file.write_bytes(content[: len(content) // 2])
    elif damage == "empty":
        file.write_bytes(b"")
    elif damage == "page":
        file.write_bytes(content[:4096] + bytes(len(content) - 4096))
    elif damage == "schema":
        with sqlite3.connect(file) as connection:
            connection.execute("DROP TABLE files")
            connection.execute("CREATE TABLE files (other TEXT)")
    elif damage == "text":
        with sqlite3.connect(file) as connection:
            connection.execute("UPDATE summaries SET text = replace(text, 'LIMIT', 'LEMON')")
            connection.execute("UPDATE extras SET text = replace(text, 'Model', 'Other')")
    else:
        file.unlink()
        file.mkdir()
    for _ in range(2):
        index = build(project, folder)
        assert index.constant_source("helper.LIMIT") == "1"
        assert index.wraps_data_parallel("model")
        index.store.close()
    if damage not in ("text", "folder"):
        warm = ProjectIndex(project, refuse, store_folder=folder)
        assert warm.constant_source("helper.LIMIT") == "1"


@pytest.mark.skipif(os.name == "nt", reason="permissions")
@pytest.mark.parametrize("what", ["nowhere", "folder is a file", "not allowed", "read-only file"])
def test_without_a_place_nothing_is_kept_and_everything_works(
    project: Path, tmp_path: Path, what: str
) -> None:
    folder = tmp_path / "store"
    if what == "folder is a file":
        folder.write_text("")
    elif what == "not allowed":
        folder.mkdir()
        folder.chmod(0)
        if os.access(folder, os.W_OK):
            folder = Path("/proc/nobody/store")
    elif what == "read-only file":
        build(project, folder).store.close()
        database(folder).chmod(stat.S_IRUSR)
        folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
        write(project, "helper.py", "LIMIT = 1\nMORE = 1\n")
    index = build(project, None if what == "nowhere" else folder)
    assert index.constant_source("helper.LIMIT") == "1"
    assert index.wraps_data_parallel("model")
    if what in ("not allowed", "read-only file") and folder.exists():
        folder.chmod(stat.S_IRWXU)


def test_a_full_disk_leaves_everything_in_memory(project: Path, tmp_path: Path) -> None:
    folder = tmp_path / "store"
    store = SummaryStore(folder, project)
    store.put_extra("flow", project / "helper.py", "hash", "x" * 100_000)
    batch = store.take_unsaved()
    assert batch is None, "nothing is worth a file before a file was seen"
    build(project, folder)
    full = SummaryStore(Path("/dev/full"), project)
    full.put_extra("flow", project / "helper.py", "hash", "text")
    full.flush()
    assert full.get_extra("flow", project / "helper.py", "hash") == "text"


def test_an_extra_belongs_to_one_text_of_a_file(project: Path, tmp_path: Path) -> None:
    index = build(project, tmp_path / "store")
    path = project / "helper.py"
    text = content_hash("LIMIT = 1\n")
    assert index.store.get_extra("flow", path, text) is None
    index.store.put_extra("flow", path, text, "what flows")
    assert index.store.get_extra("flow", path, text) == "what flows"
    index.store.flush()
    for store in (index.store, SummaryStore(tmp_path / "store", project)):
        assert store.get_extra("flow", path, text) == "what flows"
        assert store.get_extra("other", path, text) is None
        assert store.get_extra("flow", path, content_hash("LIMIT = 2\n")) is None
    path.unlink()
    build(project, tmp_path / "store")
    assert SummaryStore(tmp_path / "store", project).get_extra("flow", path, text) is None


def test_what_was_opened_in_one_thread_is_read_in_another(project: Path, tmp_path: Path) -> None:
    path, text = project / "helper.py", content_hash("LIMIT = 1\n")
    index = build(project, tmp_path / "store")
    index.store.put_extra("flow", path, text, "what flows")
    index.store.flush()
    store = SummaryStore(tmp_path / "store", project)
    seen = [store.get_extra("flow", path, text)]
    thread = threading.Thread(target=lambda: seen.append(store.get_extra("flow", path, text)))
    thread.start()
    thread.join()
    assert seen == ["what flows"] * 2


def test_two_projects_and_two_versions_do_not_meet(project: Path, tmp_path: Path) -> None:
    folder = tmp_path / "store"
    build(project, folder)
    old = folder / f"{database(folder).name.partition('-')[0]}-older.sqlite3"
    old.write_text("")
    unused = folder / "elsewhere-older.sqlite3"
    unused.write_text("")
    os.utime(old, (1, 1))
    other = write(tmp_path / "other", "helper.py", "LIMIT = 7\n").parent
    os.utime(unused, (1, 1))
    assert build(other, folder).constant_source("helper.LIMIT") == "7"
    assert ProjectIndex(project, refuse, store_folder=folder).constant_source("helper.LIMIT") == "1"
    assert not old.exists()
    assert not unused.exists()


def test_several_processes_write_at_once(tmp_path: Path) -> None:
    root, folder = tmp_path / "project", tmp_path / "store"
    for number in range(300):
        write(root, f"part_{number % 7}/module_{number}.py", f"LIMIT = {number}\n")
    program = """
import sys
from pathlib import Path
from ranksafe.semantics.project.index import ProjectIndex
index = ProjectIndex(Path(sys.argv[1]), store_folder=Path(sys.argv[2]))
for number, _ in enumerate(index.build()):
    if number % 10 == 0 and index.store.unsaved:
        index.store.put_extra("by", index.files()[0], "hash", sys.argv[3])
        batch = index.store.take_unsaved()
        if batch is not None:
            outcome = index.store.write(batch)
            assert outcome == "written", outcome
            index.store.written(outcome)
index.store.flush(index.files())
assert index.constant_source("part_3.module_3.LIMIT") == "3"
"""
    environment = {**os.environ, "PYTHONPATH": str(SERVER)}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(root), str(folder), str(number)], env=environment
        )
        for number in range(3)
    ]
    assert [process.wait(120) for process in started] == [0, 0, 0]
    with sqlite3.connect(database(folder)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    warm = ProjectIndex(root, refuse, store_folder=folder)
    for number in range(300):
        name = f"part_{number % 7}.module_{number}.LIMIT"
        assert warm.constant_source(name) == str(number)
