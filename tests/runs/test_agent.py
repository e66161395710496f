"""The agent inside a process: what it writes down, and that the process does not notice it."""

from __future__ import annotations

import ast
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ranksafe.runs.agent import INJECT_DIRECTORY
from ranksafe.runs.explain.evidence import RankEvidence, load_evidence

from .conftest import SCRIPTS

_SAME_PLACE = """
import threading

class Ended(Exception):
    pass

places = []

def fail():
    error = Ended("thread")
    places.append(id(error))
    raise error

thread = threading.Thread(target=fail)
thread.start()
thread.join()
kept = []
for _ in range(100_000):
    error = Ended("main")
    if id(error) == places[0]:
        raise error
    kept.append(error)
print("no place was used again")
"""
_INTERRUPTED = """
import os, signal

def interrupt(*_):
    raise RuntimeError("interrupted")

class Note:
    asked = False

    def __str__(self):
        if not Note.asked:
            Note.asked = True
            os.kill(os.getpid(), signal.SIGUSR1)
        return "note"

signal.signal(signal.SIGUSR1, interrupt)
error = ValueError("mine")
error.__notes__ = [Note()]
raise error
"""
_INTERRUPTED_LINE = """
import sys
from ranksafe_agent.journal import Journal

class Value:
    asked = False

    def __repr__(self):
        if not Value.asked:
            Value.asked = True
            raise RuntimeError("interrupted")
        return "value"

journal = Journal()
journal.open(sys.argv[1], 9, {})
journal.write("told", value=Value())
"""
_RETURNED_WHILE_FILES_ARE_READ = """
import sys, threading, weakref

class Held:
    pass

main = threading.main_thread().native_id
references = []
reading, returned = threading.Event(), threading.Event()

def opened(event, arguments):
    path = str(arguments[0]) if event == "open" else ""
    # Only what is read of other threads stops: the main one has to be at rest before.
    if path.startswith("/proc/self/task/") and f"/{main}/" not in path and not reading.is_set():
        reading.set()
        returned.wait(30)

def work():
    held = Held()
    references.append(weakref.ref(held))
    reading.wait()

threading.Thread(target=threading.Event().wait, daemon=True).start()
sys.addaudithook(opened)
work()
print("kept" if references[0]() is not None else "let go")
returned.set()
"""
AGENT_FILES = sorted(INJECT_DIRECTORY.rglob("*.py"))


def _start(
    script: Path, directory: Path, *arguments: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run ``script`` as a rank of a run, without any launcher."""
    variables = {
        "PYTHONPATH": str(INJECT_DIRECTORY),
        "RANKSAFE_RUN_DIRECTORY": str(directory),
        "RANKSAFE_RUN_SCRIPT": str(script),
        **environment,
    }
    return subprocess.run(
        [sys.executable, str(script), *arguments],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def _rank(directory: Path) -> RankEvidence:
    return load_evidence(directory, 1).ranks[0]


def _script(folder: Path, text: str) -> Path:
    path = folder / "script.py"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("path", AGENT_FILES, ids=lambda path: path.name)
def test_it_is_written_for_cpython_3_8_and_the_standard_library(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 8))
    imported = {
        name.split(".")[0]
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom) and node.level == 0
            else []
        )
    }
    own = {"debugpy"} if path.name == "debugger.py" else set()
    assert imported - own <= set(sys.stdlib_module_names)
    assert "pickle" not in imported


@pytest.mark.parametrize("ending", ["value", "exit", "none"])
def test_a_script_runs_the_same_with_and_without_it(tmp_path: Path, ending: str) -> None:
    script = SCRIPTS / "tell_tale.py"
    plain = subprocess.run(
        [sys.executable, str(script), ending], capture_output=True, text=True, check=False
    )
    watched = _start(script, tmp_path, ending)
    assert watched.returncode == plain.returncode
    assert (tmp_path / "rank0.stdout").read_text() == plain.stdout
    assert (tmp_path / "rank0.stderr").read_text() == plain.stderr
    assert _rank(tmp_path).os_exit is None, "a forked child is not the rank"


@pytest.mark.parametrize("damage", ["no-directory", "broken-module"])
def test_a_failing_agent_does_not_change_the_outcome(tmp_path: Path, damage: str) -> None:
    script = SCRIPTS / "tell_tale.py"
    environment = {}
    directory = tmp_path
    if damage == "no-directory":
        directory = tmp_path / "missing"
    else:
        broken = tmp_path / "broken" / "ranksafe_agent"
        broken.mkdir(parents=True)
        (broken / "__init__.py").write_text("raise RuntimeError('broken')")
        (broken.parent / "sitecustomize.py").write_text(
            (INJECT_DIRECTORY / "sitecustomize.py").read_text(encoding="utf-8")
        )
        environment["PYTHONPATH"] = str(broken.parent)
    watched = _start(script, directory, "exit", **environment)
    assert watched.returncode == 5
    assert "to stderr" in watched.stderr
    assert "RuntimeError" not in watched.stderr


def test_a_shadowed_sitecustomize_still_runs(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("import sys; sys.own_sitecustomize = True")
    script = _script(
        tmp_path, "import sys, sitecustomize; print(sys.own_sitecustomize, sitecustomize.__file__)"
    )
    _start(script, tmp_path, PYTHONPATH=os.pathsep.join([str(INJECT_DIRECTORY), str(own)]))
    assert (tmp_path / "rank0.stdout").read_text() == f"True {own / 'sitecustomize.py'}\n"


def test_it_stays_out_of_processes_that_are_no_rank(tmp_path: Path) -> None:
    script = _script(tmp_path, "raise KeyError('not ours')")
    other = tmp_path / "other.py"
    other.write_text("raise KeyError('not ours')")
    answer = _start(other, tmp_path, RANKSAFE_RUN_SCRIPT=str(script))
    assert "KeyError" in answer.stderr
    assert list(tmp_path.glob("rank*")) == []


def test_frames_have_exact_columns_in_characters(tmp_path: Path) -> None:
    text = 'def check(值):\n    return "多卡🙂" + len([值][3])\n\n\ncheck(1)\n'
    _start(_script(tmp_path, text), tmp_path)
    raised = _rank(tmp_path).raised
    assert raised is not None
    frame = raised.frames[-1]
    assert (raised.type, frame.function, frame.line) == ("IndexError", "check", 2)
    if sys.version_info >= (3, 11):
        line = text.splitlines()[1]
        assert frame.column is not None
        assert frame.end_column is not None
        assert line[frame.column - 1 : frame.end_column - 1] == "[值][3]"


@pytest.mark.since_python(11)
def test_causes_contexts_groups_and_notes_are_kept(tmp_path: Path) -> None:
    text = """
def inner():
    error = KeyError("lost")
    error.add_note("while reading shard 3")
    raise error

try:
    try:
        inner()
    except KeyError:
        raise TypeError("second")
except TypeError as error:
    raise ExceptionGroup("both", [error, ValueError("third")]) from error
"""
    _start(_script(tmp_path, text), tmp_path)
    raised = _rank(tmp_path).raised
    assert raised is not None
    assert raised.type == "ExceptionGroup"
    assert [member.type for member in raised.group] == ["TypeError", "ValueError"]
    assert raised.cause is not None
    assert raised.cause.context is not None
    assert raised.cause.context.notes == ("while reading shard 3",)
    assert raised.cause.context.frames[-1].function == "inner"


def test_a_syntax_error_in_the_script_has_its_line(tmp_path: Path) -> None:
    _start(_script(tmp_path, "x = 1\nif x\n    print(x)\n"), tmp_path)
    raised = _rank(tmp_path).raised
    assert raised is not None
    assert (raised.type, raised.frames[-1].line) == ("SyntaxError", 2)


def test_an_excepthook_that_forgets_the_one_before_hides_nothing(tmp_path: Path) -> None:
    text = "import sys\nsys.excepthook = lambda *_: print('mine')\nraise OSError('seen')\n"
    _start(_script(tmp_path, text), tmp_path)
    raised = _rank(tmp_path).raised
    assert raised is not None
    assert raised.text == "OSError: seen"


def test_a_threads_exception_is_kept_apart(tmp_path: Path) -> None:
    text = "import threading\nt = threading.Thread(target=lambda: 1 / 0, name='loader')\nt.start()\nt.join()\n"
    _start(_script(tmp_path, text), tmp_path)
    rank = _rank(tmp_path)
    assert rank.raised is None
    assert [(error.type, error.where) for error in rank.thread_errors] == [
        ("ZeroDivisionError", "loader")
    ]


def test_an_exception_in_the_place_of_a_threads_freed_one_is_not_overlooked(tmp_path: Path) -> None:
    script = _script(tmp_path, _SAME_PLACE)
    finished = _start(script, tmp_path)
    assert "no place was used again" not in finished.stdout
    rank = _rank(tmp_path)
    assert rank.raised is not None
    assert rank.raised.text == "Ended: main"
    assert [error.text for error in rank.thread_errors] == ["Ended: thread"]


def test_a_signal_handler_that_raises_while_an_exception_is_written_down_hides_nothing(
    tmp_path: Path,
) -> None:
    finished = _start(_script(tmp_path, _INTERRUPTED), tmp_path)
    assert finished.returncode == 1
    rank = _rank(tmp_path)
    assert rank.raised is not None
    assert rank.raised.text == "ValueError: mine\nnote"


def test_an_interrupted_line_of_the_journal_is_written_again(tmp_path: Path) -> None:
    finished = _start(_script(tmp_path, _INTERRUPTED_LINE), tmp_path, str(tmp_path))
    assert finished.returncode == 0, finished.stderr
    _, line = (tmp_path / "rank9.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(line)["value"] == "value"


def test_a_fatal_signal_leaves_a_stack(tmp_path: Path) -> None:
    text = "import os, signal\ndef crash():\n    os.kill(os.getpid(), signal.SIGSEGV)\ncrash()\n"
    answer = _start(_script(tmp_path, text), tmp_path)
    assert answer.returncode == -signal.SIGSEGV
    assert [frame.line for frame in _rank(tmp_path).fatal] == [4, 3]


def test_heartbeats_tell_where_a_killed_rank_was(tmp_path: Path) -> None:
    text = (
        "import os, pathlib, signal, sys, time\nbeat = pathlib.Path(sys.argv[1])\n"
        "while not beat.exists():\n    time.sleep(0.05)\nos.kill(os.getpid(), signal.SIGKILL)\n"
    )
    _start(_script(tmp_path, text), tmp_path, str(tmp_path / "rank0.beat"))
    rank = _rank(tmp_path)
    assert not rank.ended
    assert rank.beat[-1].line in (3, 4)


@pytest.mark.since_python(11)
@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="the heartbeat reads no files")
def test_the_heartbeat_holds_no_frames_while_it_reads_files(tmp_path: Path) -> None:
    _start(_script(tmp_path, _RETURNED_WHILE_FILES_ARE_READ), tmp_path)
    assert (tmp_path / "rank0.stdout").read_text(encoding="utf-8") == "let go\n"


def test_a_frame_between_two_lines_is_at_the_line_before(tmp_path: Path) -> None:
    text = """import os, signal, sys, time

def wait():
    time.sleep(1.6)
    os.kill(os.getpid(), signal.SIGKILL)

no_line = bytes([0xFF]) if sys.version_info >= (3, 11) else bytes([16, 0x80])
length = len(wait.__code__.co_code) // 16 + 1
wait.__code__ = wait.__code__.replace(co_linetable=no_line * length)
wait()
"""
    script = _script(tmp_path, text)
    _start(script, tmp_path)
    frames = [frame for frame in _rank(tmp_path).beat if frame.filename == str(script)]
    assert [(frame.function, frame.line) for frame in frames] == [("<module>", 10), ("wait", 3)]


def test_the_journal_is_json_lines_without_the_environment(tmp_path: Path) -> None:
    _start(_script(tmp_path, "pass"), tmp_path, SECRET_TOKEN="hush-hush")
    entries: list[dict[str, Any]] = [
        json.loads(line) for line in (tmp_path / "rank0.jsonl").read_text().splitlines()
    ]
    assert [entry["event"] for entry in entries] == ["start", "exit"]
    assert entries[1]["clean"] is True
    everything = "".join(path.read_text() for path in tmp_path.glob("rank0.*"))
    assert not re.search("hush-hush", everything)
