"""What is kept of runs: written by real runs, read back as history, compared."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ranksafe.localization import Translated
from ranksafe.runs.launch_plan import Plan
from ranksafe.runs.model import Outcome, RunRequest, RunResult
from ranksafe.runs.records import gpu_log, progress_log
from ranksafe.runs.records.comparison import compare
from ranksafe.runs.records.gpu_log import GpuLog
from ranksafe.runs.records.kept_runs import NoSuchRun, all_runs, run_named, runs_of
from ranksafe.runs.records.recorder import RESULT_FILE, START_FILE, Recorder
from ranksafe.runs.records.redaction import HIDDEN, redacted_command, redacted_text
from ranksafe.runs.records.snapshot import (
    LARGEST_FILE,
    add_unchanged,
    read_snapshot,
    take_snapshot,
)
from ranksafe.runs.records.timeline import load_timeline
from ranksafe.runs.start import start_run

from .conftest import StartRun

SECRET = "hf_" + "A1b2" * 6
FAILING = """\
import helper
helper.step(7)
"""
HELPER = """\
def step(number):
    if number == 7:
        raise ValueError("step seven")
"""

QuickRun = Callable[..., RunResult]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A small project whose script fails in another file of it."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "pyproject.toml").touch()
    (folder / "train.py").write_text(FAILING)
    (folder / "helper.py").write_text(HELPER)
    return folder


@pytest.fixture
def quick(project: Path) -> QuickRun:
    """Run a script of the project in one plain process, which needs no torch and takes a second."""

    def to_the_end(script: str = "train.py", **fields: Any) -> RunResult:
        request = RunRequest(
            script=project / script,
            interpreter=Path(sys.executable),
            working_directory=project,
            launcher="python",
            cpu_ranks=True,
            timeout_seconds=60,
            **fields,
        )
        result = start_run(request, lambda _event: None).wait()
        assert result is not None
        return result

    return to_the_end


def test_a_run_keeps_its_result_its_request_its_code_and_no_secret(
    quick: QuickRun, project: Path
) -> None:
    result = quick(
        arguments=("--hub-token", SECRET, "--lr", "0.1"),
        environment={"WANDB_API_KEY": SECRET, "RUN_NAME": "very private"},
    )
    assert result.run_directory is not None
    (kept,) = all_runs()
    assert (kept.run_id, kept.outcome, kept.script) == (
        result.run_id,
        "failed",
        project / "train.py",
    )
    assert kept.failures[0]["message"] == "ValueError: step seven"
    assert kept.failures[0]["filename"] == str(project / "helper.py")
    assert [each.zh_cn for each in kept.sentences("limits")] != [
        each.en for each in kept.sentences("limits")
    ]
    assert kept.request["arguments"] == ["--hub-token", HIDDEN, "--lr", "0.1"]
    assert kept.environment["environment_names"] == ["RUN_NAME", "WANDB_API_KEY"]
    assert "packages" in kept.environment
    assert "pytest" in kept.environment["packages"]
    assert {name: file.text for name, file in read_snapshot(kept.directory).named().items()} == {
        "train.py": FAILING,
        "helper.py": HELPER,
    }
    for path in result.run_directory.iterdir():
        content = path.read_bytes()
        assert SECRET.encode() not in content, path.name
        assert b"very private" not in content, path.name
    assert stat.S_IMODE(result.run_directory.stat().st_mode) == 0o700


def test_history_is_of_the_project_and_newest_first(
    quick: QuickRun, project: Path, tmp_path: Path
) -> None:
    first, second = quick(), quick()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert [run.run_id for run in runs_of(project)] == [second.run_id, first.run_id]
    (project / "deep").mkdir()
    assert len(runs_of(project / "deep")) == 2
    assert runs_of(elsewhere) == []
    assert len(all_runs()) == 2

    assert run_named(None, project).run_id == second.run_id
    assert run_named(first.run_id[-6:], elsewhere).run_id == first.run_id
    assert run_named(str(first.run_directory), elsewhere).run_id == first.run_id
    for wrong in ("nothing", first.run_id[:4], ""):
        with pytest.raises(NoSuchRun):
            run_named(wrong, project)
    with pytest.raises(NoSuchRun):
        run_named(None, elsewhere)


def test_a_run_that_goes_on_and_one_whose_owner_died_are_told_apart(
    project: Path, tmp_path: Path, cache: Path
) -> None:
    (project / "sleeps.py").write_text("import time\nprint('up', flush=True)\ntime.sleep(60)\n")
    owner = tmp_path / "owner.py"
    owner.write_text(
        "import sys\nfrom pathlib import Path\n"
        "from ranksafe.runs.model import RunRequest\nfrom ranksafe.runs.start import start_run\n"
        f"script = Path({str(project / 'sleeps.py')!r})\n"
        "request = RunRequest(script, interpreter=Path(sys.executable), launcher='python', cpu_ranks=True)\n"
        "start_run(request, lambda event: print(event.text, flush=True)).wait()\n"
    )
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": f"{root / 'server'}{os.pathsep}{root / 'rules'}"}
    with subprocess.Popen(
        [sys.executable, str(owner)], env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        while process.stdout.readline().strip() != "up":
            assert process.poll() is None
        (going,) = all_runs()
        assert (going.outcome, going.seconds, going.failures) == ("running", None, [])
        process.kill()
    (lost,) = all_runs()
    assert lost.outcome == "lost"


def test_what_is_damaged_or_foreign_is_no_run(quick: QuickRun, cache: Path) -> None:
    result = quick()
    runs = cache / "ranksafe" / "runs"
    for name, text in (("a", "{"), ("b", "[]"), ("c", '{"request": 1}'), ("d", "\x00\xff")):
        (runs / name).mkdir()
        (runs / name / RESULT_FILE).write_text(text)
    (runs / "e").mkdir()
    assert [run.run_id for run in all_runs()] == [result.run_id]
    assert result.run_directory is not None
    (result.run_directory / RESULT_FILE).write_text("{")
    (start,) = all_runs()
    assert (start.run_id, start.result) == (result.run_id, {}), "what the start left is there"


def test_a_snapshot_follows_imports_and_stays_inside_the_project(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    (folder / "package" / "deep").mkdir(parents=True)
    outside = tmp_path / "outside.py"
    outside.write_text("SECRET = 1\n")
    files = {
        "train.py": "import package.one, json\nfrom package.deep import two\nimport linked\nimport huge\n",
        "package/__init__.py": "",
        "package/one.py": "from .deep.three import x\nfrom . import four\n",
        "package/deep/__init__.py": "",
        "package/deep/two.py": "this does not parse (",
        "package/deep/three.py": "x = 1\nimport outside\n",
        "package/four.py": f"key = '{SECRET}'\n",
        "unused.py": "",
        "huge.py": "#" * (LARGEST_FILE + 1),
    }
    for name, text in files.items():
        (folder / name).write_text(text)
    (folder / "linked.py").symlink_to(outside)
    snapshot = take_snapshot(folder / "train.py", [folder])
    assert set(snapshot.named()) == set(files) - {"unused.py", "huge.py"}
    assert snapshot.left_out == ["huge.py"]
    assert snapshot.named()["package/four.py"].text == f"key = '{HIDDEN}'\n"

    started = time.time()
    late, early = folder / "late.py", folder / "unused.py"
    late.write_text("")
    os.utime(late, (started + 10, started + 10))
    add_unchanged(snapshot, [str(late), str(early), str(outside)], [folder], started + 5)
    assert "unused.py" in snapshot.named()
    assert "late.py" not in snapshot.named()
    assert len(snapshot.named()) == len(files) - 1


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (["--hub-token", "x", "y"], ["--hub-token", HIDDEN, "y"]),
        (["--hub_token=x"], [f"--hub_token={HIDDEN}"]),
        (["wandb.api_key=x"], [f"wandb.api_key={HIDDEN}"]),
        (["--apiKey", "x"], ["--apiKey", HIDDEN]),
        (["--tokenizer", "gpt2"], ["--tokenizer", "gpt2"]),
        (["--max-tokens", "12"], ["--max-tokens", "12"]),
        (["--pad-token", "<pad>"], ["--pad-token", "<pad>"]),
        (["--use-auth", "--lr", "1"], ["--use-auth", "--lr", "1"]),
        (["sk-" + "a" * 30], [HIDDEN]),
        (["https://me:pass@host/x"], [f"https://me:{HIDDEN}@host/x"]),
    ],
)
def test_secrets_are_blotted_out_of_command_lines(given: list[str], wanted: list[str]) -> None:
    assert redacted_command(given) == wanted


def test_secrets_are_blotted_out_of_text() -> None:
    text = f"401 for {SECRET}, token gh" + "p_" + "a" * 36 + ", WANDB_API_KEY=abcdef"
    assert redacted_text(text) == f"401 for {HIDDEN}, token {HIDDEN}, WANDB_API_KEY={HIDDEN}"
    assert redacted_text("risk-based, hf_hub, asking") == "risk-based, hf_hub, asking"


def test_a_comparison_tells_what_changed(quick: QuickRun, project: Path) -> None:
    quick(arguments=("--lr", "0.1"))
    # Of another length: Python takes a file of the same second and size for the one that it has compiled.
    (project / "helper.py").write_text(HELPER.replace("== 7", "== 77"))
    (project / "new.py").write_text("x = 1\n")
    (project / "train.py").write_text("import new\n" + FAILING)
    quick(arguments=("--lr", "0.2"))
    after, before = runs_of(project)
    found = compare(before, after)
    changes = {change.name: (change.before, change.after) for change in found.changes}
    assert changes["outcome"] == ("failed", "succeeded")
    assert changes["failure"] == ("ValueError: step seven (rank 0, helper.py:3)", "")
    assert changes["arguments"] == ("--lr 0.1", "--lr 0.2")
    assert set(changes) == {"outcome", "failure", "arguments", "command"}
    assert [line for line in found.code if line[0] in "+-" and line[:3] not in ("+++", "---")] == [
        "-    if number == 7:",
        "+    if number == 77:",
        "+x = 1",
        "+import new",
    ]
    assert json.loads(json.dumps(found.as_json()))["seconds"] == [before.seconds, after.seconds]
    assert compare(after, after).is_same


def test_a_change_of_version_or_commit_is_told(quick: QuickRun, project: Path) -> None:
    subprocess.run(["git", "init", "-q", "-b", "main", str(project)], check=True)
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.invalid")
    commit = ["git", "-C", str(project), *identity, "commit", "-q", "--allow-empty", "-m", "x"]
    subprocess.run(commit, check=True)
    result = quick()
    head = subprocess.run(
        ["git", "-C", str(project), "rev-parse", "HEAD"], check=True, capture_output=True, text=True
    ).stdout.strip()
    (kept,) = all_runs()
    assert kept.environment["git"] == {"commit": head, "branch": "main"}

    assert result.run_directory is not None
    other = result.run_directory.with_name("other")
    shutil.copytree(result.run_directory, other)
    data = json.loads((other / RESULT_FILE).read_text())
    data["environment"]["packages"]["torch"] = "2.13.0"
    data["environment"]["packages"]["pytest"] = "1.0"
    (other / RESULT_FILE).write_text(json.dumps(data))
    found = compare(kept, run_named("other", project))
    assert [(change.section, change.name, change.after) for change in found.changes] == [
        ("version", "pytest", "1.0"),
        ("version", "torch", "2.13.0"),
    ]


def test_packed_branches_worktrees_and_detached_heads_are_read(tmp_path: Path) -> None:
    from ranksafe.runs.records.git_commit import commit_of

    main, side = tmp_path / "main", tmp_path / "side"
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.invalid", "-C", str(main)]
    subprocess.run(["git", "init", "-q", "-b", "trunk", str(main)], check=True)
    assert commit_of(main) is None
    for words in (
        ["commit", "-q", "--allow-empty", "-m", "x"],
        ["worktree", "add", "-q", "-b", "feature/x", str(side)],
        ["pack-refs", "--all"],
    ):
        subprocess.run([*git, *words], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    commit = head.stdout.strip()
    for folder, branch in ((main, "trunk"), (side, "feature/x")):
        found = commit_of(folder)
        assert found is not None
        assert (found.commit, found.branch) == (commit, branch)
    subprocess.run([*git, "checkout", "-q", "--detach"], check=True)
    detached = commit_of(main)
    assert detached is not None
    assert (detached.commit, detached.branch) == (commit, None)
    assert commit_of(tmp_path) is None


@pytest.mark.torch
@pytest.mark.long
def test_the_timeline_has_steps_and_collectives_of_every_rank(
    run: StartRun, tmp_path: Path
) -> None:
    script = tmp_path / "waits.py"
    script.write_text(WAITS)
    result = run(str(script)).result
    assert result.outcome is Outcome.SUCCEEDED
    assert result.run_directory is not None
    timeline = load_timeline(result.run_directory)
    assert [lane.rank for lane in timeline.lanes] == [0, 1]
    for lane in timeline.lanes:
        assert lane.last_step == 4
        assert lane.started is not None
        assert lane.ended is not None
        assert lane.started < lane.steps[0][0] < lane.steps[-1][0] <= lane.ended
        entered = [mark.label for mark in lane.marks if mark.kind == "collective"]
        assert "all_reduce float32[4] waits.py:17" in entered
    waited = [span for span in timeline.lanes[0].spans if span.kind == "stall"]
    assert [(span.label, span.place) for span in waited] == [
        ("all_reduce float32[4]", "waits.py:17")
    ]
    assert not waited[0].is_open
    assert waited[0].end - waited[0].start > 2
    assert not [span for span in timeline.lanes[1].spans if span.kind == "stall"]
    assert timeline.steps_per_second is not None


WAITS = """\
import time
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
model = torch.nn.Linear(4, 1)
model = torch.nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(4):
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
    time.sleep(0.05)
if rank == 1:
    time.sleep(5)

dist.all_reduce(torch.ones(4))
dist.destroy_process_group()
"""


def test_the_progress_log_is_short_while_nothing_changes(tmp_path: Path) -> None:
    log = progress_log.ProgressLog(tmp_path)
    beat = tmp_path / "rank0.beat"

    def told(at: float, **fields: Any) -> None:
        beat.write_text(json.dumps({"time": at, "steps": 3, **fields}))
        os.utime(beat, (at, at))
        log.look(final=at == 130)

    waiting = {"now": [{"call": "barrier", "since": 101.0, "frames": []}]}
    log._looked = -10.0
    for second in range(100, 131):
        log._looked = -10.0
        told(float(second), collectives=waiting if second > 100 else {"now": []})
    entries = [json.loads(line) for line in (tmp_path / progress_log.FILE).read_text().splitlines()]
    assert entries[0]["call"] is None
    assert entries[-1]["time"] == 130.0
    assert {entry["call"] for entry in entries[1:]} == {"barrier"}
    assert len(entries) < 16

    for damaged in ("{", "[]", '{"time": "x"}', '{"time": 1, "collectives": {"now": [3]}}', "\x00"):
        beat.write_text(damaged)
        log.look(final=True)


def test_gpus_are_sampled_until_the_run_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program in nvidia-smi's place, which repeats the lines a driver prints."""
    program = tmp_path / "bin" / "nvidia-smi"
    program.parent.mkdir()
    program.write_text(
        f"#!{sys.executable}\nimport sys, time\n"
        "assert '-lms' in sys.argv and '--format=csv,noheader,nounits' in sys.argv\n"
        "while True:\n"
        "    print('0, GPU-a, 100, 81920, 7\\n1, GPU-b, [N/A], 81920, [Not Supported]\\n2, GPU-c, 5, 6, 7\\nnoise', flush=True)\n"
        "    time.sleep(0.7)\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    log = GpuLog(tmp_path, ["GPU-a", "1"])
    log.begin()
    deadline = time.monotonic() + 30
    path = tmp_path / gpu_log.FILE
    while not path.exists() or len(path.read_text().splitlines()) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process = log._process
    assert process is not None
    log.end()
    assert process.returncode is not None
    samples = load_timeline(tmp_path).samples
    assert {(sample.device, sample.used_mib, sample.busy_percent) for sample in samples} == {
        ("0", 100.0, 7.0),
        ("1", None, None),
    }


def test_a_full_disk_costs_the_record_only(tmp_path: Path, project: Path) -> None:
    missing = tmp_path / "not" / "there"
    request = RunRequest(script=project / "train.py", working_directory=project)
    plan = Plan((sys.executable,), {}, project, 1, (), ())
    recorder = Recorder(request, plan, missing)
    recorder.begin()
    recorder.look()
    result = RunResult("id", Outcome.SUCCEEDED, "local", ("x",), (), (), (), (), 1.0, None, missing)
    recorder.end(result, [Translated("a", "b")], [])
    assert not missing.exists()
    assert START_FILE != RESULT_FILE
