"""Logs that several launches wrote, one after the other: the last one counts, and ranks are no launches."""

from __future__ import annotations

import pytest
from ranksafe.runs.diagnosis.diagnose import diagnose
from ranksafe.runs.diagnosis.follow_log import FollowedLog
from ranksafe.runs.model import Failure

START = """\
W0423 03:00:{second:02d}.100 {pid} site-packages/torch/distributed/run.py:793] *****************************************
W0423 03:00:{second:02d}.100 {pid} site-packages/torch/distributed/run.py:793] Setting OMP_NUM_THREADS environment variable for each process to be 1 in default
"""
HEAD = """\
Reading the settings of experiment maple-syrup
Tokenizer has {size} pieces, the model {size}000 weights
worker is ready on port {size}
"""
STEPS = "".join(f"step {number} loss 2.{number}\n" for number in range(8))
STOPPED = """\
Traceback (most recent call last):
  File "/usr/lib/python3.12/site-packages/torch/distributed/elastic/multiprocessing/api.py", line 84, in _terminate_process_handler
    raise SignalException(f"Process {os.getpid()} got signal: {sigval}", sigval=sigval)
torch.distributed.elastic.multiprocessing.api.SignalException: Process 381 got signal: 15
"""
FAILED = """\
[rank1]: Traceback (most recent call last):
[rank1]:   File "/home/a/train.py", line {line}, in <module>
[rank1]:     main()
[rank1]: {error}
E0423 03:10:00.1 381 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: 1) local_rank: 1 (pid: 77) of binary: python
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
Root Cause (first observed failure):
[0]:
  rank      : 1 (local_rank: 1)
  exitcode  : 1 (pid: 77)
"""
CANCELLED = """\
srun: Job step aborted: Waiting up to 32 seconds for job step to finish.
slurmstepd: error: *** STEP 2556.0 ON n7 CANCELLED AT 2024-07-07T23:27:27 ***
srun: error: n7: task 0: Terminated
"""
TASK_FAILED = """\
Traceback (most recent call last):
  File "/home/a/main.py", line 16, in <module>
    from data import tokens
ModuleNotFoundError: No module named 'data'
srun: error: n7: task 0: Exited with exit code 1
"""
INTERRUPTED = """\
Traceback (most recent call last):
  File "/home/a/train.py", line 12, in <module>
    main()
KeyboardInterrupt
"""
KEY = FAILED.format(line=9, error="KeyError: 'text'")
FILE = FAILED.format(line=41, error="FileNotFoundError: data/b.bin")


def start(second: int = 1) -> str:
    return START.format(second=second, pid=1000 + second) + HEAD.format(size=32 + second)


def told(log: str) -> list[tuple[str | None, int | None]]:
    """What is told of a log, read at once; in small pieces it is the same."""
    failures = diagnose(log)
    follower = FollowedLog()
    data = log.encode()
    for at in range(0, len(data), 97):
        follower.feed(data[at : at + 97])
    assert [_place(each) for each in follower.finish()] == [_place(each) for each in failures]
    return [_place(each) for each in failures]


def _place(failure: Failure) -> tuple[str, int | None]:
    return failure.message.partition(":")[0], failure.line


@pytest.mark.parametrize(
    "first",
    [STOPPED, KEY, CANCELLED, TASK_FAILED, INTERRUPTED],
    ids=["stopped", "failed", "cancelled", "task failed", "interrupted"],
)
@pytest.mark.parametrize("banner", [True, False], ids=["launcher's first words", "own first lines"])
def test_the_last_launch_counts(first: str, banner: bool) -> None:
    one, two = (start(1), start(2)) if banner else (HEAD.format(size=1), HEAD.format(size=2))
    assert told(one + first)
    assert told(one + STEPS + first + two + STEPS) == []
    assert told(one + first + two + FILE) == [("FileNotFoundError", 41)]
    assert told(one + FILE + two + first + two + STEPS + KEY) == [("KeyError", 9)]


def test_a_launch_that_came_to_nothing_does_not_hide_the_one_before() -> None:
    assert told(start(1) + STEPS + KEY + start(2)) == [("KeyError", 9)]


def test_ranks_that_go_on_for_a_while_are_no_launch() -> None:
    """What they say was said before, again and again."""
    said = "sampler wraps around to shard {}\nreader waits for the shard after that\n"
    before = "".join(said.format(number) for number in range(60))
    after = "".join(said.format(number) for number in range(60, 70))
    assert told(said.format(0) + before + KEY + after + STEPS) == [("KeyError", 9)]


def test_a_line_that_comes_again_is_no_launch() -> None:
    assert told(HEAD.format(size=1) + KEY + HEAD.splitlines()[0] + "\n" + STEPS) == [
        ("KeyError", 9)
    ]


def test_a_command_line_that_was_mended_twice_is_told_as_it_is_now() -> None:
    usage = "usage: train.py [-h] [--lr LR]\n                [--fp16 FP16]\ntrain.py: error: argument {}\n"
    log = usage.format("--lr: invalid float value: 'x'") + 2 * usage.format("--fp16: invalid value")
    (failure,) = diagnose(log)
    assert "--fp16" in failure.message


def test_nohup_and_srun_say_when_they_begin() -> None:
    nohup = "nohup: ignoring input\n"
    assert told(nohup + KEY + STEPS) == [("KeyError", 9)]
    assert told(nohup + KEY + nohup + STEPS) == []
    queued = "srun: job 17{} queued and waiting for resources\n"
    other = TASK_FAILED.replace("line 16", "line 31").replace("'data'", "'models'")
    log = queued.format(1) + TASK_FAILED + queued.format(2) + other
    assert told(log) == [("ModuleNotFoundError", 31)]


@pytest.mark.parametrize(
    "said", ["=== trainer, try {}", "Attempt #{} of 3", "[run.sh] restart: {}"]
)
def test_a_script_that_counts_its_tries_begins_a_launch(said: str) -> None:
    first, second = (said.format(number) + "\n" for number in (1, 2))
    assert told(first + KEY + second + STEPS) == []
    assert told(first + KEY + second + FILE) == [("FileNotFoundError", 41)]
    # The last one's own end may be counted, too.
    assert told(first + KEY + second + FILE + second) == [("FileNotFoundError", 41)]


def _alone(line: int, error: str) -> str:
    return f'Traceback (most recent call last):\n  File "/home/a/train.py", line {line}, in <module>\n    main()\n{error}\n'


def test_a_traceback_ends_a_launch_where_the_log_begins_anew_from_its_first_line() -> None:
    first, second = HEAD.format(size=1), HEAD.format(size=2)
    key, file = _alone(9, "KeyError: 'text'"), _alone(41, "FileNotFoundError: data/b.bin")
    assert told(first + key + second + file) == [("FileNotFoundError", 41)]
    assert told(first + key + second + STEPS) == []
    # Another process of the same launch has printed its first lines before, and is only slower.
    later = "".join(second.splitlines(keepends=True)[1:])
    assert told(first + key + later + file) == [("KeyError", 9)]


def test_a_prompt_with_a_command_begins_a_launch() -> None:
    prompt = "(torch) me@gpu-box:~/work$ {}\n"
    again = prompt.format("bash train.sh")
    file = _alone(41, "FileNotFoundError: data/b.bin")
    assert told(again + _alone(9, "KeyError: 'text'") + again + file) == [("FileNotFoundError", 41)]
    looked = prompt.format("ls") + "out  train.py\n" + prompt.format("")
    assert told(again + _alone(9, "KeyError: 'text'") + looked) == [("KeyError", 9)]
