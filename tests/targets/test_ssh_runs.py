"""Runs on a host behind ssh: started, followed, explained on the local source, ended."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from ranksafe.runs.model import Outcome
from ranksafe.runs.watch import stacks

from .far_host import Far, processes_with, until


def test_a_script_runs_there_and_its_lines_come_here(far: Far) -> None:
    far.write("helper 数据.txt", "from the project")
    script = far.write(
        "train.py",
        "import os, pathlib, sys\n"
        "print(pathlib.Path('helper 数据.txt').read_text(), sys.argv[1:], os.environ['TOKEN'])\n"
        "print(os.environ['RANKSAFE_TEST_HOST'], 'HOME_ONLY' in os.environ, file=sys.stderr)\n",
    )
    os.environ["HOME_ONLY"] = "1"
    nasty = ("a b", "$(touch x)", "'\"", "new\nline", "--", "-x", "\U0001f600")
    result = far.run(script, arguments=nasty, environment={"TOKEN": "s3cret"})
    del os.environ["HOME_ONLY"]
    assert result.outcome is Outcome.SUCCEEDED, far.events
    assert f"from the project {list(nasty)!r} s3cret" in far.said("output")
    assert "yes False" in far.said("output")
    folder = far.run_folder(result.run_id)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert not [
        path
        for path in folder.rglob("*")
        if path.is_file() and b"s3cret" in path.read_bytes() and path.suffix != ".stdout"
    ]


def test_a_failure_there_is_a_failure_of_the_line_here(far: Far) -> None:
    far.write("pkg/model.py", "def forward(x):\n    total = 0\n    return total / x\n")
    script = far.write("train.py", "from pkg.model import forward\nforward(0)\n")
    result = far.run(script)
    assert result.outcome is Outcome.FAILED
    failure = result.failures[0]
    assert failure.message == "ZeroDivisionError: division by zero"
    assert failure.filename == str(far.project / "pkg" / "model.py")
    assert (failure.line, failure.rank) == (3, 0)
    assert next(frame.filename for frame in failure.frames if frame.in_user_code) == str(script)


def test_a_cancelled_run_leaves_nothing_there(far: Far) -> None:
    mark = f"ranksafe-test-{os.getpid()}-{time.monotonic_ns()}"
    script = far.write(
        "train.py",
        "import subprocess, sys, time\n"
        f"subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(300)', '{mark}'], start_new_session=True)\n"
        "print('started', flush=True)\ntime.sleep(300)\n",
    )
    run = far.start(script, arguments=(mark,))
    until(lambda: "started" in far.said("output"))
    assert len(processes_with(mark)) == 2
    run.cancel()
    result = run.wait(60)
    assert result is not None
    assert result.outcome is Outcome.CANCELLED
    assert processes_with(mark) == []


_TWO_RANKS = """\
import sys
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
value = torch.ones(2) * dist.get_rank()
dist.all_reduce(value)
print("sum", value.tolist(), flush=True)
if dist.get_rank() == 1 and "fail" in sys.argv:
    raise KeyError("labels of rank 1")
dist.barrier()
"""


@pytest.mark.torch
def test_the_rank_that_failed_there_is_named_with_its_line_here(
    far: Far, torch_python: Path
) -> None:
    far.settle(interpreter=str(torch_python))
    script = far.write("train.py", _TWO_RANKS)
    result = far.run(script, launcher="torchrun", gpus=2, arguments=("fail",))
    assert result.outcome is Outcome.FAILED
    failure = result.failures[0]
    assert (failure.rank, failure.filename, failure.line) == (1, str(script), 10), result
    assert "labels of rank 1" in failure.message
    outputs = {
        (event.rank, line) for event in far.events if event.kind == "output" for line in event.lines
    }
    assert {(0, "sum [1.0, 1.0]"), (1, "sum [1.0, 1.0]")} <= outputs
    assert any("ranks on the CPU of gpu-box (gloo)" in each for each in result.limits)


@pytest.mark.torch
@pytest.mark.long
def test_two_ranks_that_succeed_there(far: Far, torch_python: Path) -> None:
    far.settle(interpreter=str(torch_python))
    script = far.write("train.py", "# accelerate\n" + _TWO_RANKS)
    result = far.run(script, launcher="accelerate", cpu_ranks=True)
    assert result.outcome is Outcome.SUCCEEDED, far.events
    assert [rank.outcome for rank in result.ranks] == ["succeeded", "succeeded"]


def test_a_file_that_was_edited_meanwhile_is_followed_to_its_new_lines(far: Far) -> None:
    far.write(
        "model.py",
        "import time\n\ndef forward(x):\n    time.sleep(1)\n    y = 1\n    return y / x\n",
    )
    script = far.write(
        "train.py", "from model import forward\nprint('started', flush=True)\nforward(0)\n"
    )
    run = far.start(script)
    until(lambda: "started" in far.said("output"))
    until(lambda: (far.cache / "runs" / run.run_id / "snapshot.json").exists())
    far.write(
        "model.py",
        "import time\n\n# new\n# lines\ndef forward(x):\n    time.sleep(1)\n    y = 1\n    return y / x\n",
    )
    far.write("train.py", "from model import forward\nprint('started', flush=True)\nforward(1)\n")
    result = run.wait(60)
    assert result is not None
    failure = result.failures[0]
    assert (failure.filename, failure.line) == (str(far.project / "model.py"), 8)
    called = next(frame for frame in failure.frames if frame.filename == str(script))
    assert called.source == "forward(0)"
    assert any("model.py was edited" in each for each in result.limits)
    assert any(
        'line 3 of train.py as it ran is no longer there: "forward(0)"' in each
        for each in result.limits
    )


@pytest.mark.long
def test_a_rank_that_kills_itself_there(far: Far) -> None:
    script = far.write(
        "train.py",
        "import os, signal\nprint('now', flush=True)\nos.kill(os.getpid(), signal.SIGKILL)\n",
    )
    result = far.run(script)
    assert result.outcome is Outcome.FAILED
    assert result.failures[0].rank == 0
    assert "SIGKILL" in result.failures[0].message


@pytest.mark.long
def test_what_is_left_behind_there_is_ended_with_the_run(far: Far) -> None:
    mark = f"ranksafe-test-left-{os.getpid()}-{time.monotonic_ns()}"
    script = far.write(
        "train.py",
        "import subprocess, sys\n"
        f"subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(300)', '{mark}'], start_new_session=True)\n",
    )
    result = far.run(script)
    assert result.outcome is Outcome.SUCCEEDED
    assert processes_with(mark) == []


@pytest.mark.long
def test_the_supervisor_there_is_killed(far: Far) -> None:
    mark = f"ranksafe-test-sup-{os.getpid()}-{time.monotonic_ns()}"
    script = far.write("train.py", "import time\nprint('started', flush=True)\ntime.sleep(300)\n")
    run = far.start(script, arguments=(mark,))
    until(lambda: "started" in far.said("output"))
    os.kill(far.report(run.run_id)["supervisor"], 9)
    result = run.wait(60)
    assert result is not None
    assert result.outcome is Outcome.FAILED
    until(lambda: processes_with(mark) == [])


_DEADLOCK = """\
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
value = torch.ones(2)
if dist.get_rank() == 0:
    dist.all_reduce(value)
else:
    dist.broadcast(value, 0)
    dist.barrier()
    dist.barrier()
"""


@pytest.mark.torch
@pytest.mark.long
def test_ranks_that_hang_there_are_shown_on_their_lines_here(far: Far, torch_python: Path) -> None:
    far.settle(interpreter=str(torch_python))
    script = far.write("train.py", _DEADLOCK)
    result = far.run(script, launcher="torchrun", gpus=2)
    assert result.outcome is Outcome.FAILED
    places = {(failure.rank, failure.filename) for failure in result.failures}
    assert {name for _, name in places} == {str(script)}, result
    assert result.failures[0].line in range(7, 13)


@pytest.mark.long
def test_a_question_to_the_ranks_there_is_answered_with_files_here(far: Far) -> None:
    script = far.write("train.py", "import time\nprint('started', flush=True)\ntime.sleep(60)\n")
    run = far.start(script)
    until(lambda: "started" in far.said("output"))
    directory = far.cache / "runs" / run.run_id
    question = stacks.ask(directory)
    until(lambda: 0 in stacks.answers(directory, question))
    frames = stacks.answers(directory, question)[0].threads[0].frames
    run.cancel()
    assert run.wait(60) is not None
    assert any((frame.filename, frame.line) == (str(script), 3) for frame in frames)


_BOTH_WRITE = """\
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
torch.save(torch.ones(2), "checkpoint.pt")
dist.barrier()
dist.destroy_process_group()
"""


@pytest.mark.torch
@pytest.mark.long
def test_what_is_silently_wrong_there_is_drawn_here(far: Far, torch_python: Path) -> None:
    far.settle(interpreter=str(torch_python))
    script = far.write("train.py", _BOTH_WRITE)
    result = far.run(script, launcher="torchrun", gpus=2)
    assert result.outcome is Outcome.SILENT_FAILURE, result
    assert (result.failures[0].filename, result.failures[0].line) == (str(script), 5)
