"""``ranksafe rehearse`` from end to end: the seeds' failures on their lines, their fixed twins, and every other end."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from ranksafe.checker.registry import Registry
from ranksafe.rehearsal.settings import Isolation, RehearsalOptions
from ranksafe.runs.model import Outcome, RunEvent, RunRequest, RunResult
from ranksafe.runs.proofs.environment import overlay_for
from ranksafe.runs.proofs.header import ExpectedException, Launch, RunsOn, read_header
from ranksafe.runs.rehearsals.verdict import NOT_SIMULATED
from ranksafe.runs.start import Run, start_run

from .conftest import RehearsalEnvironment

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).parent / "programs"
LONGEST_SECONDS = 240.0
pytestmark = pytest.mark.torch


@pytest.fixture(autouse=True)
def cache(
    rehearsal_environment: RehearsalEnvironment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """Runs leave their files here; what was compiled stays where it is."""
    native = next(
        folder
        for folder in Path(rehearsal_environment.native.devices).parents
        if folder.name in ("native", "prebuilt")
    )
    folder = tmp_path / "cache"
    (folder / "ranksafe").mkdir(parents=True)
    if native.name == "native":
        (folder / "ranksafe" / "native").symlink_to(native)
    monkeypatch.setenv("RANKSAFE_CACHE", os.environ.get("RANKSAFE_CACHE") or _users_cache())
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    return folder


def _users_cache() -> str:
    """Where library versions for proofs are kept (``proofs/environment.py``)."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return str(Path(base) / "ranksafe")


@dataclass
class Rehearsed:
    """A rehearsal that is over."""

    result: RunResult
    events: list[RunEvent] = field(default_factory=list)

    @property
    def blamed_line(self) -> str:
        """The source text the first failure is drawn on."""
        failure = self.result.failures[0]
        assert failure.filename is not None
        assert failure.line is not None
        lines = Path(failure.filename).read_text(encoding="utf-8").splitlines()
        return lines[failure.line - 1].strip()

    @property
    def output(self) -> list[str]:
        return [line for event in self.events if event.kind == "output" for line in event.lines]

    def explained(self) -> str:
        """For a test that fails."""
        failures = [(each.kind, each.message) for each in self.result.failures]
        limit = self.result.simulation_limit
        said = "\n".join(self.output[-40:])
        return f"{self.result.outcome} {failures} {limit and (limit.kind, limit.message)}\n{said}"


class Rehearsals:
    """Starts rehearsals the way the command line and the editor do."""

    def __init__(self, python: Path, folder: Path) -> None:
        self.python = python
        self.folder = folder

    def write(self, source: str) -> Path:
        path = self.folder / "train.py"
        path.write_text(source, encoding="utf-8")
        return path

    def start(
        self, script: Path, target: str = "simulated:2", **fields: Any
    ) -> tuple[Run, Rehearsed]:
        events: list[RunEvent] = []
        given = {"launcher": "python", "timeout_seconds": LONGEST_SECONDS, **fields}
        request = RunRequest(
            script, target, interpreter=self.python, working_directory=self.folder, **given
        )
        run = start_run(request, events.append, agrees=lambda question: True)
        return run, Rehearsed(None, events)  # type: ignore[arg-type]

    def finish(self, script: Path, target: str = "simulated:2", **fields: Any) -> Rehearsed:
        run, rehearsed = self.start(script, target, **fields)
        result = run.wait()
        assert result is not None
        rehearsed.result = result
        return rehearsed


@pytest.fixture
def rehearsals(rehearsal_environment: RehearsalEnvironment, tmp_path: Path) -> Rehearsals:
    folder = tmp_path / "project"
    folder.mkdir()
    return Rehearsals(rehearsal_environment.interpreter, folder)


# -- the seeds

_SEEDS = {"RS501": "000", "RS101": "001", "RS203": "002", "RS510": "004", "RS302": "BatchNorm"}
_IN_GATE = {"RS510"}
"""Of the others, most of a minute is the import of transformers' Trainer or a hang that has to be told from patience."""


@pytest.fixture(scope="module")
def registry() -> Registry:
    return Registry.load(entry_points=False)


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(
            code,
            marks=[] if code in _IN_GATE else [pytest.mark.long],
            id=f"{code}, seed {seed}",
        )
        for code, seed in _SEEDS.items()
    ],
)
def test_a_seed_fails_on_its_line_and_its_fixed_twin_passes(
    code: str, registry: Registry, rehearsals: Rehearsals
) -> None:
    rule = registry.by_code(code)
    assert rule is not None
    failed = _rehearsed_proof(rule.failing_proof, rehearsals)
    header = read_header(rule.failing_proof)
    expected = header.expectations[0]
    assert isinstance(expected, ExpectedException)
    assert failed.result.outcome is Outcome.FAILED, failed.explained()
    first = failed.result.failures[0]
    assert " ".join(expected.text.split()) in " ".join(first.message.split()), failed.explained()
    assert failed.blamed_line == header.frame
    assert first.code == code
    assert not any("ranksafe_rehearsal" in frame.filename for frame in first.frames)
    passed = _rehearsed_proof(rule.fixed_proof, rehearsals)
    assert passed.result.outcome is Outcome.SUCCEEDED, passed.explained()
    assert NOT_SIMULATED.en in passed.result.limits


def test_a_silent_failure_is_found_and_its_fixed_twin_is_not_accused(
    registry: Registry, rehearsals: Rehearsals
) -> None:
    rule = registry.by_code("RS305")
    assert rule is not None
    silent = _rehearsed_proof(rule.failing_proof, rehearsals)
    assert silent.result.outcome is Outcome.SILENT_FAILURE, silent.explained()
    assert silent.result.failures[0].code == "RS305"
    assert silent.blamed_line == "output, rows = model(x.to(device))"
    passed = _rehearsed_proof(rule.fixed_proof, rehearsals)
    assert passed.result.outcome is Outcome.SUCCEEDED, passed.explained()


@pytest.mark.long
def test_the_message_of_an_affected_version_comes_out(rehearsals: Rehearsals) -> None:
    program = PROGRAMS / "device_map_under_launcher.py"
    failed = _rehearsed_proof(program, rehearsals)
    assert failed.result.outcome is Outcome.FAILED, failed.explained()
    first = failed.result.failures[0]
    assert "got mixed torch.Tensor and DTensor" in first.message
    assert (failed.blamed_line, first.code) == ("trainer.train()", "RS201")


@pytest.mark.long
def test_half_of_a_batch_that_is_dropped_without_an_error_is_found(rehearsals: Rehearsals) -> None:
    program = PROGRAMS / "half_of_the_batch.py"
    silent = _rehearsed_proof(program, rehearsals)
    assert silent.result.outcome is Outcome.SILENT_FAILURE, silent.explained()
    first = silent.result.failures[0]
    assert first.kind == "dropped-replicas"
    assert first.code in ("RS101", "RS501")
    assert silent.blamed_line == "trainer.train()"
    launched = _rehearsed_proof(program, rehearsals, launcher="accelerate")
    assert launched.result.outcome is Outcome.SUCCEEDED, launched.explained()


def _rehearsed_proof(
    program: Path, rehearsals: Rehearsals, launcher: str | None = None
) -> Rehearsed:
    header = read_header(program)
    overlay = overlay_for(header.requires, rehearsals.python, lambda text: None)
    launched = header.runs_on is RunsOn.CPU_RANKS or header.launch is Launch.ACCELERATE
    return rehearsals.finish(
        program,
        f"simulated:{header.ranks}",
        launcher=launcher or ("accelerate" if launched else "python"),
        environment={} if overlay is None else {"PYTHONPATH": str(overlay)},
    )


# -- the other ends; these scripts import no torch, which takes the longest part of a second

_NO_TORCH_SECONDS = 60.0


def test_a_script_without_gpus_is_rehearsed_too(rehearsals: Rehearsals) -> None:
    script = rehearsals.write("import os\nprint(os.environ.get('CUDA_VISIBLE_DEVICES'))\n")
    passed = rehearsals.finish(script)
    assert passed.result.outcome is Outcome.SUCCEEDED, passed.explained()
    assert passed.output == ["None"]
    assert "2 simulated GPUs (NVIDIA A100-SXM4-80GB, 79.3 GiB each)" in passed.result.modified[0]
    assert passed.result.target == "simulated:2"


_VALIDATED_AT_THE_END = """
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def validate(model):
    if dist.get_rank() == 0:
        dist.barrier()


def main():
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    model = DistributedDataParallel(torch.nn.Linear(4, 1).cuda())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        model(torch.ones(2, 4, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    validate(model)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
"""


@pytest.mark.long
def test_what_the_steps_did_not_come_to_is_told(rehearsals: Rehearsals) -> None:
    script = rehearsals.write(_VALIDATED_AT_THE_END)
    passed = rehearsals.finish(script, steps=2, launcher="torchrun")
    assert passed.result.outcome is Outcome.SUCCEEDED, passed.explained()
    lines = _VALIDATED_AT_THE_END.splitlines()
    expected = [("RS401", "        dist.barrier()"), ("validate", "    validate(model)")]
    assert [(each.name, lines[each.line - 1]) for each in passed.result.unreached] == expected
    assert "RS401 (train.py:9), validate (train.py:21)" in passed.result.limits[-1]
    failed = rehearsals.finish(script, steps=None, launcher="torchrun")
    assert failed.result.outcome is Outcome.FAILED, failed.explained()
    assert (failed.blamed_line, failed.result.unreached) == ("dist.barrier()", ())


_TRAINED_FOR_LONG = """
import torch
from torch.utils.data import DataLoader, TensorDataset
model = torch.nn.Linear(2, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(90):
    for (rows,) in DataLoader(TensorDataset(torch.ones(200, 2)), batch_size=10):
        model(rows.cuda()).sum().backward()
        optimizer.step()
print("trained")
"""


@pytest.mark.long
def test_a_long_training_is_stopped_and_told_of(rehearsals: Rehearsals) -> None:
    script = rehearsals.write(_TRAINED_FOR_LONG)
    passed = rehearsals.finish(script, rehearsal=RehearsalOptions(short_epochs=True))
    assert passed.result.outcome is Outcome.SUCCEEDED, passed.explained()
    assert (
        "epochs of 20 batches are cut to 12: the first 4 and the last 8" in passed.result.modified
    )
    assert any("stopped after 100 optimizer steps" in limit for limit in passed.result.limits)
    assert "trained" not in passed.output
    script = rehearsals.write(_TRAINED_FOR_LONG.replace("range(90)", "range(3)"))
    whole = rehearsals.finish(script, rehearsal=RehearsalOptions(short_epochs=True))
    assert "trained" in whole.output, whole.explained()
    assert not any("stopped" in limit for limit in whole.result.limits)


_TRAINER = """
import torch
from torch import nn
from transformers import Trainer, TrainingArguments

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(2, 2)
    def forward(self, rows=None, labels=None):
        return {"loss": self.inner(rows).sum(), "logits": self.inner(rows)}

data = [{"rows": torch.ones(2), "labels": torch.tensor(0)} for _ in range(400)]
arguments = TrainingArguments(
    output_dir="out", num_train_epochs=100, per_device_train_batch_size=8, report_to=[], save_strategy="no",
    eval_strategy="epoch", disable_tqdm=True,
)
trainer = Trainer(model=Model(), args=arguments, train_dataset=data, eval_dataset=data[:20])
steps = trainer.train().global_step
print("went on after", steps, "steps, of", trainer.state.max_steps, "with", trainer.evaluate()["epoch"])
"""


@pytest.mark.long
def test_a_trainer_ends_its_training_and_the_script_goes_on(rehearsals: Rehearsals) -> None:
    script = rehearsals.write(_TRAINER)
    options = RehearsalOptions(short_epochs=True)
    passed = rehearsals.finish(script, target="simulated:1", rehearsal=options)
    assert passed.result.outcome is Outcome.SUCCEEDED, passed.explained()
    # 50 batches are cut to 10.
    assert any("went on after 100 steps, of 1000" in line for line in passed.output)
    assert any("ended after 100 optimizer steps" in limit for limit in passed.result.limits)


def test_the_users_files_stay_as_they_are(rehearsals: Rehearsals) -> None:
    kept = rehearsals.folder / "kept.txt"
    kept.write_text("mine")
    script = rehearsals.write("import pathlib\npathlib.Path('kept.txt').write_text('theirs')\n")
    passed = rehearsals.finish(script)
    if any("not isolated" in limit for limit in passed.result.limits):
        pytest.skip(passed.result.limits[0])
    assert passed.result.outcome is Outcome.SUCCEEDED, passed.explained()
    assert kept.read_text() == "mine"


def test_a_cancelled_rehearsal_leaves_nothing_behind(rehearsals: Rehearsals) -> None:
    mark = f"mark{os.getpid()}"
    script = rehearsals.write(
        "import subprocess, sys, time\n"
        f"child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)', '{mark}'])\n"
        "print('started', flush=True)\n"
        "time.sleep(600)\n"
    )
    run, rehearsed = rehearsals.start(script)
    _wait_for(lambda: "started" in rehearsed.output)
    assert _processes_with(mark)
    run.cancel()
    result = run.wait(_NO_TORCH_SECONDS)
    assert result is not None
    assert result.outcome is Outcome.CANCELLED
    assert (result.failures, result.simulation_limit) == ((), None)
    assert not _processes_with(mark)


def test_a_rank_that_is_killed_is_a_failure(rehearsals: Rehearsals) -> None:
    script = rehearsals.write("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    killed = rehearsals.finish(script)
    assert killed.result.outcome is Outcome.FAILED, killed.explained()
    assert killed.result.failures[0].kind == "killed"


def test_processes_that_the_script_spawns_are_ranks(rehearsals: Rehearsals) -> None:
    done = rehearsals.finish(PROGRAMS / "spawned.py", steps=None)
    assert done.result.outcome is Outcome.FAILED, done.explained()
    first = done.result.failures[0]
    assert first.rank == 1, done.explained()
    assert done.blamed_line.startswith("assert rank == 0"), done.explained()
    assert [rank.rank for rank in done.result.ranks] == [0, 1]
    assert {event.rank for event in done.events if event.kind == "step"} >= {0}


def test_time_that_runs_out_is_a_limit(rehearsals: Rehearsals) -> None:
    script = rehearsals.write("while True:\n    pass\n")
    late = rehearsals.finish(script, timeout_seconds=4.0)
    assert late.result.outcome is Outcome.SIMULATION_LIMIT
    assert late.result.failures == ()
    assert late.result.simulation_limit is not None
    assert late.result.simulation_limit.kind == "time"


@pytest.mark.skipif(sys.platform != "linux", reason="bounds are watched on Linux")
@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("kept = []\nwhile True:\n    kept.append(bytearray(2 ** 24))\n", "host-memory"),
        (
            "with open('big.bin', 'wb') as file:\n    while True:\n        file.write(bytes(2 ** 24))\n",
            "disk",
        ),
    ],
)
def test_a_machine_that_is_too_small_is_a_limit(
    rehearsals: Rehearsals, source: str, kind: str
) -> None:
    options = RehearsalOptions(host_memory_bytes=2**29)
    ended = rehearsals.finish(rehearsals.write(source), rehearsal=options)
    assert ended.result.outcome is Outcome.SIMULATION_LIMIT, ended.explained()
    assert ended.result.simulation_limit is not None
    assert ended.result.simulation_limit.kind == kind
    assert ended.result.failures == ()


# -- as a program


def test_the_command_line_draws_the_failure_and_doctor_says_what_there_is(
    rehearsals: Rehearsals,
) -> None:
    rehearsals.write("def train():\n    raise ValueError('one, two')\n\n\ntrain()\n")
    words = ["rehearse", "train.py", "--python", str(rehearsals.python), "--launcher", "python"]
    answer = _ranksafe(rehearsals.folder, *words, "--yes", "--lang", "en")
    assert answer.returncode == 1, answer.stderr
    assert "train.py:2:5: failure rank 0: ValueError: one, two" in answer.stderr
    answer = _ranksafe(rehearsals.folder, *words, "--yes", "--output-format", "json")
    told = json.loads(answer.stdout)
    assert (told["outcome"], told["target"]) == ("failed", "simulated:2")
    assert told["simulation_limit"] is None
    answer = _ranksafe(
        rehearsals.folder, "doctor", "--target", "simulated:2", "--python", str(rehearsals.python)
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "2 simulated GPUs (NVIDIA A100-SXM4-80GB" in answer.stdout


def test_where_nothing_can_be_isolated_it_must_be_said_beforehand(rehearsals: Rehearsals) -> None:
    """In a user namespace that may make no further ones, and has no overlays."""
    unable = ["unshare", "--user", "--map-root-user", "sh", "-c"]
    forbid = "echo 0 > /proc/sys/user/max_user_namespaces && exec "
    if subprocess.run([*unable, forbid + "true"], capture_output=True, check=False).returncode:
        pytest.skip("no user namespaces here")
    rehearsals.write("print('ran')\n")
    words = ["rehearse", "train.py", "--python", str(rehearsals.python), "--launcher", "python"]

    def answer(*more: str) -> subprocess.CompletedProcess[str]:
        command = shlex.join([sys.executable, "-m", "ranksafe", *words, *more])
        return _call([*unable, forbid + command], rehearsals.folder)

    asked = answer()
    assert (asked.returncode, asked.stdout) == (2, "")
    assert "--isolation off" in asked.stderr
    assert answer("--isolation", "required").returncode == 2
    for agreed in (["--yes"], ["--isolation", "off"]):
        went_on = answer(*agreed)
        assert went_on.returncode == 0, went_on.stderr
        assert "[rank 0] ran" in went_on.stdout
        assert "not isolated" in went_on.stderr


# -- the documented workflow


def _documented_steps() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    for name in ("rehearsal.md", "rehearsal.zh-cn.md"):
        text = (ROOT / "docs" / "guide" / name).read_text(encoding="utf-8")
        workflow = yaml.safe_load(text.partition("```yaml\n")[2].partition("```")[0])
        assert workflow["permissions"] == {"contents": "read"}
        yield name, workflow["jobs"]["rehearse"]["steps"]


@pytest.mark.parametrize(
    ("source", "status", "annotation"),
    [
        ("def train():\n    raise ValueError('on 4')\n\n\ntrain()\n", 1, "::error "),
        ("raise NotImplementedError('ranksafe simulation limit: aten::foo')\n", 0, "::notice "),
        ("print('fine')\n", 0, "::notice "),
    ],
)
def test_the_documented_workflow_annotates_the_line(
    rehearsals: Rehearsals, source: str, status: int, annotation: str
) -> None:
    (_, steps), (_, in_chinese) = _documented_steps()
    assert steps == in_chinese
    step = next(each for each in steps if "ranksafe rehearse" in each.get("run", ""))
    rehearsals.write(source)
    # The runner's own words, with this checkout's ranksafe, the interpreter with torch, and one process for speed.
    tool = rehearsals.folder / "bin" / "ranksafe"
    tool.parent.mkdir()
    words = shlex.join([sys.executable, "-m", "ranksafe"])
    more = shlex.join(["--python", str(rehearsals.python), "--launcher", "python"])
    isolation = Isolation.OFF.value
    tool.write_text(
        f'#!/bin/sh\nfor word do shift; [ "$word" = required ] && word={isolation}; set -- "$@" "$word"; done\n'
        f'exec {words} "$@" {more}\n'
    )
    tool.chmod(0o755)
    path = os.pathsep.join([str(tool.parent), os.environ["PATH"]])
    answer = _call(["bash", "-e", "-c", step["run"]], rehearsals.folder, PATH=path, LANG="C.UTF-8")
    assert answer.returncode == status, answer.stdout + answer.stderr
    first = answer.stdout.splitlines()[0]
    assert first.startswith(annotation), answer.stdout
    if "def train" in source:
        assert ",file=train.py,line=2,col=5," in first
    assert "4 simulated GPUs" in answer.stdout


def _ranksafe(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return _call([sys.executable, "-m", "ranksafe", *words], folder)


def _call(command: list[str], folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    paths = [str(ROOT / "server"), str(ROOT / "rules")]
    inherited: Mapping[str, str] = {k: v for k, v in os.environ.items() if k[:7] != "GITHUB_"}
    return subprocess.run(
        command,
        cwd=folder,
        env={**inherited, "PYTHONPATH": os.pathsep.join(paths), **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=LONGEST_SECONDS,
    )


def _wait_for(condition: Any) -> None:
    end = time.monotonic() + _NO_TORCH_SECONDS
    while not condition():
        assert time.monotonic() < end, "it did not come"
        threading.Event().wait(0.05)


def _processes_with(mark: str) -> list[str]:
    found = []
    for folder in Path("/proc").iterdir():
        try:
            text = (folder / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if folder.name.isdigit() and mark in text:
            found.append(folder.name)
    return found
