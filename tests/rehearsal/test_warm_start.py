"""Warm starts from end to end: the same as cold ones but for the time, and nothing stays behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from ranksafe.runs.model import Outcome, RunEvent, RunRequest, RunResult
from ranksafe.runs.start import start_run
from ranksafe.runs.warm import LivingTemplate, end_templates, living_templates
from ranksafe.runs.warm.first_imports import first_imports

from .conftest import RehearsalEnvironment

PROGRAMS = Path(__file__).parent / "programs"
LONGEST_SECONDS = 240.0
_SAID_WARM = "started warm"
_FAILING = """
import time
import torch
import torch.distributed as dist


def train(rank):
    if rank == 0:
        time.sleep(600)
    raise ValueError(f"{dist.get_world_size()} ranks, {torch.cuda.device_count()} devices, {__name__}")


if __name__ == "__main__":
    dist.init_process_group("nccl")
    print("started", dist.get_rank(), flush=True)
    train(dist.get_rank())
"""
_WAITING = """
import time
import torch

print("waits", torch.cuda.device_count(), flush=True)
time.sleep(600)
"""
pytestmark = pytest.mark.torch


@pytest.fixture(autouse=True)
def cache(
    rehearsal_environment: RehearsalEnvironment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """A cache of its own: its templates are the test's, and end with it."""
    native = next(
        folder
        for folder in Path(rehearsal_environment.native.devices).parents
        if folder.name in ("native", "prebuilt")
    )
    folder = tmp_path / "cache"
    (folder / "ranksafe").mkdir(parents=True, mode=0o700)
    if native.name == "native":
        (folder / "ranksafe" / "native").symlink_to(native)
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    monkeypatch.setenv("RANKSAFE_WARM", "auto")
    monkeypatch.delenv("CI", raising=False)
    yield folder
    end_templates()
    _wait_for(lambda: not _forks())


@dataclass(frozen=True)
class Told:
    """What a user is told of a run."""

    result: RunResult
    output: tuple[str, ...]
    """Of the ranks, without warnings, which name times; the launcher names processes."""

    @classmethod
    def of(cls, result: RunResult | None, events: Sequence[RunEvent]) -> Told:
        assert result is not None
        output = sorted(
            f"{each.rank} {line}"
            for each in events
            if each.rank is not None and each.kind == "output"
            for line in each.lines
        )
        return cls(result, tuple(each for each in output if "Warning" not in each))

    @property
    def was_warm(self) -> bool:
        return any(text.startswith(_SAID_WARM) for text in self.result.modified)

    @property
    def outcome(self) -> tuple[object, ...]:
        """Everything that may not depend on how it was started."""
        result = self.result
        failures = [(f.kind, f.code, f.filename, f.line) for f in result.failures]
        modified = [text for text in result.modified if not text.startswith(_SAID_WARM)]
        ranks = [(rank.rank, rank.exit, rank.outcome) for rank in result.ranks]
        return (result.outcome, failures, modified, result.limits, ranks, self.output)


class Runs:
    """Starts rehearsals of scripts in one folder."""

    def __init__(self, python: Path, folder: Path) -> None:
        self.python = python
        self.folder = folder

    def script(self, text: str) -> Path:
        path = self.folder / "train.py"
        path.write_text(text, encoding="utf-8")
        return path

    def start(self, script: Path, **fields: Any) -> tuple[Any, list[RunEvent]]:
        events: list[RunEvent] = []
        request = RunRequest(
            script,
            "simulated:2",
            interpreter=self.python,
            working_directory=self.folder,
            timeout_seconds=LONGEST_SECONDS,
            **fields,
        )
        return start_run(request, events.append, agrees=lambda question: True), events

    def finish(self, script: Path, **fields: Any) -> Told:
        run, events = self.start(script, **fields)
        return Told.of(run.wait(), events)

    def warmed(self, script: Path, **fields: Any) -> Told:
        """The cold run, after which the template is ready."""
        cold = self.finish(script, **fields)
        assert not cold.was_warm
        if "not isolated" in " ".join(cold.result.limits):
            pytest.skip("nothing can be isolated here, and so nothing be started warm")
        _wait_for(living_templates)
        return cold


@pytest.fixture
def runs(rehearsal_environment: RehearsalEnvironment, tmp_path: Path) -> Runs:
    folder = tmp_path / "project"
    folder.mkdir()
    return Runs(rehearsal_environment.interpreter, folder)


@pytest.mark.long
def test_a_failure_is_told_alike(runs: Runs) -> None:
    script = runs.script(_FAILING)
    cold = runs.warmed(script)
    warm = runs.finish(script)
    assert warm.was_warm, warm
    assert cold.result.outcome is Outcome.FAILED
    assert warm.outcome == cold.outcome
    frames = [(frame.filename, frame.line) for frame in warm.result.failures[0].frames]
    assert frames == [(str(script), 16), (str(script), 10)]


@pytest.mark.long
def test_a_training_is_told_alike_also_two_at_once(runs: Runs) -> None:
    script = PROGRAMS / "ddp.py"
    cold = runs.warmed(script)
    assert cold.result.outcome is Outcome.SUCCEEDED
    together = [runs.start(script) for _ in range(2)]
    for run, events in together:
        warm = Told.of(run.wait(), events)
        assert warm.was_warm
        assert warm.outcome == cold.outcome


def test_killing_anything_leaves_no_process(runs: Runs) -> None:
    """The command line of a fork is the template's."""
    runs.warmed(runs.script("import time\nimport torch\n"), launcher="python")
    (template,) = _forks()
    script = runs.script(_WAITING)
    for victim in ("rank", "launcher", "template"):
        run, events = runs.start(script, launcher="torchrun")
        _wait_for(
            lambda events=events: (
                sum(len(each.lines) for each in events if each.kind == "output") >= 2
            )
        )
        os.kill(
            template if victim == "template" else _process_of_run(victim, template), signal.SIGKILL
        )
        if victim == "template":
            run.cancel()
        ended = Told.of(run.wait(), events)
        assert ended.was_warm, victim
        assert ended.result.outcome is (
            Outcome.CANCELLED if victim == "template" else Outcome.FAILED
        )
        _wait_for(lambda: len(_forks()) == 1)
    # The last run found no template any more and has started another.
    assert _forks() != [template]


@pytest.mark.long
@pytest.mark.parametrize("program", sorted(each.name for each in PROGRAMS.glob("*.py")))
def test_every_program_is_told_alike(runs: Runs, program: str) -> None:
    script = PROGRAMS / program
    cold = runs.warmed(script, steps=2)
    warm = runs.finish(script, steps=2)
    assert warm.was_warm or first_imports(script).orders_by_hash
    assert warm.result.outcome is cold.result.outcome
    # Of ranks that fail at once the launcher may end one before it has ended by itself.
    assert [(each.rank, each.outcome) for each in warm.result.ranks] == [
        (each.rank, each.outcome) for each in cold.result.ranks
    ]
    assert [each.message for each in warm.result.failures] == [
        each.message for each in cold.result.failures
    ]


@pytest.mark.long
def test_a_changed_package_is_imported_anew(runs: Runs) -> None:
    installed = runs.folder / "lib" / "site-packages"
    installed.mkdir(parents=True)
    package = installed / "small_package.py"
    package.write_text("VALUE = 'first'\n")
    script = runs.script("import small_package\nimport torch\n\nprint(small_package.VALUE)\n")
    chosen = {"environment": {"PYTHONPATH": str(installed)}, "launcher": "python"}
    assert runs.warmed(script, **chosen).output == ("0 first",)
    warm = runs.finish(script, **chosen)
    assert (warm.was_warm, warm.output) == (True, ("0 first",))
    package.write_text("VALUE = 'changed'\n")
    changed = runs.finish(script, **chosen)
    assert (changed.was_warm, changed.output) == (False, ("0 changed",))


@pytest.mark.long
def test_what_an_editor_kept_ready_ends_with_it(runs: Runs) -> None:
    script = runs.script("import torch\n")
    program = f"""
import sys
from pathlib import Path
from ranksafe.rehearsal.settings import RehearsalOptions
from ranksafe.runs.model import RunRequest
from ranksafe.runs.start import start_run

request = RunRequest(
    Path({str(script)!r}), "simulated:2", interpreter=Path({str(runs.python)!r}), launcher="python",
    rehearsal=RehearsalOptions(warm_afterwards=False),
)
start_run(request, lambda event: None, agrees=lambda question: True).wait()
print("over", flush=True)
sys.stdin.read()
"""
    command = [sys.executable, "-c", program]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, cwd=runs.folder) as editor:
        assert editor.stdout is not None
        assert editor.stdout.readline() == b"over\n"
        _wait_for(living_templates)
        editor.kill()
    _wait_for(lambda: not living_templates())


def _forks() -> list[int]:
    """This test's template and what was forked from it, which keeps its command line and first environment."""
    mark = b"XDG_CACHE_HOME=" + os.environ["XDG_CACHE_HOME"].encode() + b"\0"
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and b"warm/start.py" in _bytes(folder / "cmdline"):
            if mark in _bytes(folder / "environ"):
                found.append(int(folder.name))
    return found


def _process_of_run(which: str, template: int) -> int:
    """A rank is a child of the launcher without children; what the launcher keeps to fork from is its oldest."""
    parents = {pid: _parent(pid) for pid in _forks() if pid != template}
    ranks = sorted(pid for pid, parent in parents.items() if parent in parents)
    return ranks[-1] if which == "rank" else parents[ranks[-1]]


def _parent(pid: int) -> int:
    fields = _bytes(Path(f"/proc/{pid}/stat")).rpartition(b")")[2].split()
    return int(fields[1]) if len(fields) > 1 else 0


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _wait_for(condition: Callable[[], bool | list[LivingTemplate]]) -> None:
    end = time.monotonic() + LONGEST_SECONDS
    while not condition():
        assert time.monotonic() < end, "it did not come"
        threading.Event().wait(0.1)
