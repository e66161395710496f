"""Logs of real runs, explained by their text alone. Paths were replaced; nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from ranksafe.runs.diagnosis.diagnose import diagnose

LOGS = Path(__file__).parent / "logs"


def _read(name: str) -> str:
    return (LOGS / name).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "rank", "kind", "message", "place"),
    [
        (
            "chained.log",
            1,
            "exception",
            "RuntimeError: cannot load sample 3 (caused by KeyError: 'label')",
            ("chained.py", 8),
        ),
        ("killed.log", 1, "killed", "killed by SIGKILL", None),
        (
            "two_workers_without_prefix.log",
            None,
            "exception",
            "KeyError: 'label' [DataLoader worker process 0]",
            ("plain.py", 10),
        ),
        (
            "spawned.log",
            1,
            "exception",
            "ValueError: replica one is unhappy [process 1]",
            ("spawned.py", 7),
        ),
        (
            "rich_box.log",
            0,
            "exception",
            "RuntimeError: cannot prepare the samples of this rank (caused by KeyError: 'label')",
            ("train.py", 9),
        ),
        (
            "rich_box_narrow_colored_locals.log",
            0,
            "exception",
            "RuntimeError: cannot prepare the samples of this rank (caused by KeyError: 'label')",
            ("train.py", 9),
        ),
    ],
)
def test_the_root_cause_of_a_saved_log(
    name: str, rank: int | None, kind: str, message: str, place: tuple[str, int] | None
) -> None:
    first = diagnose(_read(name))[0]
    assert (first.rank, first.kind, first.message) == (rank, kind, message)
    found = (Path(first.filename).name, first.line) if first.filename else None
    assert found == place
    assert first.root_cause


def test_what_every_rank_met_singles_out_no_rank() -> None:
    lines = [
        "Traceback (most recent call last):",
        '  File "/home/user/train.py", line 5, in <module>',
        "    one()",
        "IndexError: too far",
    ]
    text = "\n".join(f"[rank{rank}]: {line}" for rank in (0, 1) for line in lines)
    (failure,) = diagnose(text)
    assert (failure.rank, failure.line) == (None, 5)


def test_lost_peers_follow_the_cause() -> None:
    failures = diagnose(_read("chained.log"))
    assert [(failure.rank, failure.kind) for failure in failures[1:]] == [(0, "peer-lost")]
    assert not failures[1].root_cause


def test_timeouts_of_several_ranks_are_compared() -> None:
    failure = diagnose(_read("nccl_timeout.log"))[0]
    assert failure.kind == "collective-timeout"
    assert "rank 0: ALLREDUCE #1580, rank 1: BROADCAST #1580" in failure.explanation.en
    assert "different" in failure.explanation.en


@pytest.mark.parametrize(
    "prefix",
    ["[default1]:", "[default1]:[rank1]: ", "1: ", "[rank1]: ", "(TrainWorker rank=1, pid=7) "],
)
def test_prefixes_of_every_launcher_are_understood(prefix: str) -> None:
    lines = [
        "Traceback (most recent call last):",
        '  File "/home/user/train.py", line 12, in <module>',
        "    main()",
        "ValueError: on this rank",
    ]
    failure = diagnose("\n".join(prefix + line for line in lines))[0]
    assert (failure.rank, failure.line, failure.message) == (1, 12, "ValueError: on this rank")


def test_two_ranks_that_interleave_line_by_line_are_told_apart() -> None:
    first = [
        "Traceback (most recent call last):",
        '  File "/home/user/train.py", line 5, in <module>',
        "    one()",
        "RuntimeError: Connection closed by peer",
    ]
    second = [
        "Traceback (most recent call last):",
        '  File "/home/user/train.py", line 9, in <module>',
        "    two()",
        "IndexError: too far",
    ]
    mixed = [
        line
        for pair in zip(first, second, strict=True)
        for line in ("[rank0]: " + pair[0], "[rank1]: " + pair[1])
    ]
    failures = diagnose("\n".join(mixed))
    assert [(failure.rank, failure.line, failure.root_cause) for failure in failures] == [
        (1, 9, True),
        (0, 5, False),
    ]


def test_two_ranks_that_print_the_same_into_one_stream_are_one_traceback() -> None:
    lines = [
        "Traceback (most recent call last):",
        '  File "/home/user/train.py", line 5, in <module>',
        "    one()",
        '  File "/home/user/train.py", line 2, in one',
        "    two()",
        "IndexError: too far",
    ]
    (failure,) = diagnose("\n".join(line for line in lines for _ in (0, 1)))
    assert failure.message == "IndexError: too far"
    assert [frame.line for frame in failure.frames] == [5, 2]


@pytest.mark.parametrize(
    "text", ["", "epoch 1 loss 0.3\nepoch 2 loss 0.2\n", "\x00\xff garbage \n\n]["]
)
def test_a_log_without_a_failure_has_none(text: str) -> None:
    assert diagnose(text) == []


def test_only_the_launchers_summary_is_said_to_be_that() -> None:
    text = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
    assert [failure.kind for failure in diagnose(text)] == ["launcher"]


def test_the_rank_that_reports_no_timeout_is_the_one_that_was_missing() -> None:
    lines = [
        f"[rank{rank}]:[E816 01:45:40.1 ProcessGroupNCCL.cpp:632] [Rank {rank}] Watchdog caught collective operation "
        f"timeout: WorkNCCL(SeqNum=80, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600026 milliseconds before timing out."
        for rank in (0, 2)
    ]
    summary = "\n".join(
        f"  rank      : {rank} (local_rank: {rank})\n  exitcode  : {code} (pid: {100 + rank})"
        for rank, code in ((0, -6), (1, -15), (2, -6))
    )
    failure = diagnose("\n".join([*lines, "Failures: ChildFailedError", summary]))[0]
    assert (failure.kind, failure.rank) == ("collective-timeout", 1)
    assert "Rank 1 reported no timeout" in failure.explanation.en


def test_ranks_that_time_out_at_different_lines_are_compared() -> None:
    text = "\n".join(
        f"[rank{rank}]: {line}"
        for rank, number in ((0, 15), (1, 43))
        for line in (
            "Traceback (most recent call last):",
            f'  File "/home/user/train.py", line {number}, in <module>',
            "    step()",
            "RuntimeError: Timed out waiting 8000ms for recv operation to complete",
        )
    )
    failure = diagnose(text)[0]
    assert "rank 0: train.py:15, rank 1: train.py:43" in failure.explanation.en
    assert "rank 0: train.py:15, rank 1: train.py:43" in failure.explanation.zh_cn


@pytest.mark.parametrize(
    "line",
    [
        "slurmstepd-gpu20: error: Detected 1 oom-kill event(s) in StepId=94.0. Some of your processes may have been",
        "srun: error: gpu001: task 1: Out Of Memory",
        "[9.1] Memory cgroup out of memory: Killed process 27274 (python) total-vm:9kB, anon-rss:65536kB, x",
        "  reason: OOMKilled",
    ],
)
def test_a_kill_is_out_of_memory_where_somebody_says_so(line: str) -> None:
    launcher = (
        "E1120 api.py:1002] failed (exitcode: -9) local_rank: 1 (pid: 27274) of binary: python"
    )
    assert diagnose(launcher)[0].kind == "killed"
    failure = diagnose(f"{launcher}\n{line}")[0]
    assert (failure.kind, failure.rank) == ("host-out-of-memory", 1)
    assert "not of the GPU" in failure.explanation.en


def test_other_processes_on_a_gpu_are_named_as_ranks_of_this_run() -> None:
    text = (
        "[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 572.00 MiB. GPU 0 has a total capacity of "
        "39.49 GiB of which 321.31 MiB is free. Process 102 has 414.00 MiB memory in use. Including non-PyTorch memory, "
        "this process has 37.46 GiB memory in use.\n"
        "  rank      : 0 (local_rank: 0)\n  exitcode  : 1 (pid: 101)\n"
        "  rank      : 1 (local_rank: 1)\n  exitcode  : -15 (pid: 102)\n"
    )
    explanation = diagnose(text)[0].explanation
    assert "102 (414.00 MiB), are this run's own ranks 1" in explanation.en
    assert "set_device" in explanation.zh_cn


def test_a_kernels_check_is_named_however_often_it_is_printed() -> None:
    check = (
        "../aten/src/ATen/native/cuda/Loss.cu:250: nll_loss: block: [0,0,0], thread: [{},0,0] Assertion "
        "`t >= 0 && t < n_classes` failed."
    )
    error = [
        "[rank0]: Traceback (most recent call last):",
        '[rank0]:   File "/home/user/train.py", line 5, in <module>',
        "[rank0]:     loss.item()",
        "[rank0]: RuntimeError: CUDA error: device-side assert triggered",
    ]
    text = "\n".join([*(check.format(thread) for thread in range(2000)), *error])
    failure = diagnose(text)[0]
    assert (failure.kind, failure.line) == ("cuda-assert", 5)
    assert "A label was outside of the classes" in failure.explanation.en


@pytest.mark.parametrize(
    "record", ["ERROR:root:bad record, skipped", "2026-11-20 21:14:20,003 | ERROR | data: bad"]
)
def test_what_a_script_logged_and_survived_is_no_failure(record: str) -> None:
    trace = [
        "Traceback (most recent call last):",
        '  File "/home/user/data.py", line 5, in read',
        "    json.loads(line)",
        "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
    ]
    log = "\n".join([record, *trace, "saved the model"])
    assert diagnose(log) == []
    launcher = "E1120 api.py:1002] failed (exitcode: 1) local_rank: 0 (pid: 7) of binary: python"
    assert diagnose(f"{log}\n{launcher}")[0].line == 5


def test_another_processs_line_in_a_traceback_does_not_end_it() -> None:
    text = (
        'Traceback (most recent call last):\n  File "/home/user/train.py", line 5, in <module>\n'
        'rank 0 step 3 loss -5.2\n    one()\n  File "/home/user/train.py", line 2, in one\n    two()\nIndexError: too far\n'
    )
    (failure,) = diagnose(text)
    assert [frame.line for frame in failure.frames] == [5, 2]


def test_an_unknown_end_shows_the_raw_tail() -> None:
    text = (
        "step 1\nwhat the rank said last\n"
        "E1120 api.py:1002] failed (exitcode: 85) local_rank: 1 (pid: 7) of binary: python\n"
    )
    (failure,) = diagnose(text)
    assert (failure.kind, failure.rank) == ("exit-status", 1)
    assert failure.excerpt == ("step 1", "what the rank said last")


def test_an_ordinary_error_is_said_to_be_one() -> None:
    def told(source: str, error: str) -> str:
        text = (
            'Traceback (most recent call last):\n  File "/home/user/data.py", line 5, in load\n'
            f"    {source}\n{error}\n"
        )
        return diagnose(text)[0].explanation.en

    assert "ordinary KeyError" in told('return row["label"]', "KeyError: 'label'")
    assert "ordinary" not in told("return parts[rank]", "IndexError: list index out of range")
    assert "ordinary" not in told("check(n)", "ValueError: batch size 5 does not divide over 2")


def test_several_machines_each_with_a_root_cause_blame_the_earliest() -> None:
    def block(time: str, rank: int, code: int) -> str:
        return (
            "Root Cause (first observed failure):\n[0]:\n"
            f"  time      : 2026-11-20_21:18:{time}\n  host      : node{rank}\n"
            f"  rank      : {rank} (local_rank: 0)\n  exitcode  : {code} (pid: {rank + 100})\n"
        )

    failures = diagnose(block("43", 0, 1) + "\n" + block("41", 8, 3))
    assert failures[0].rank == 8


@pytest.mark.parametrize(
    ("text", "kind", "rank"),
    [
        ("bash: torchrun: command not found", "missing-launcher", None),
        (
            "/var/spool/slurmd/job9/slurm_script: line 4: accelerate: command not found",
            "missing-launcher",
            None,
        ),
        (
            "python: can't open file '/home/user/trian.py': [Errno 2] No such file or directory",
            "user-error",
            None,
        ),
        ("train.sh: line 7: 12345 Killed                  python train.py", "killed", None),
        ("srun: error: n1: task 1: Exited with exit code 137", "killed", None),
        ("Reason: OOMKilled\nExit Code:    137", "host-out-of-memory", None),
        (
            "[rank: 2] Child process with PID 123 terminated with code 1. Forcefully terminating",
            "exit-status",
            2,
        ),
        ("['python', 'run.py', '--local_rank=1'] exits with return code = 1", "launcher", None),
        (
            "torch.distributed.elastic.multiprocessing.api.SignalException: Process 46 got signal: 2",
            "terminated",
            None,
        ),
    ],
)
def test_what_ends_a_run_without_an_exception(text: str, kind: str, rank: int | None) -> None:
    failure = diagnose(f"step 1\n{text}\n")[0]
    assert (failure.kind, failure.rank) == (kind, rank)


@pytest.mark.parametrize(
    "text",
    [
        "thrown while requesting HEAD https://huggingface.co: Max retries exceeded with url\nRetrying in 1s [Retry 1/5].",
        "wandb: WARNING error rate of uploads is high",
        "host:1:1 [0] NCCL INFO NET/IB : No device found.",
        "W1120 11:00:00.0 1 run.py:79] Setting OMP_NUM_THREADS environment variable for each process to be 1",
        "FutureWarning: `clean_up_tokenization_spaces` was not set; an exception will be raised later",
        "Exception ignored in: <function A.__del__ at 0x7f>\nTraceback (most recent call last):\n"
        '  File "/home/user/a.py", line 3, in __del__\n    self.x\nAttributeError: no x',
    ],
)
def test_a_run_that_went_on_has_no_failure(text: str) -> None:
    steps = "\n".join(f"step {step} loss 0.1" for step in range(9))
    assert diagnose(f"{steps}\n{text}\n{steps}\n") == []


def _traceback(rank: int | None, error: str, source: str = "go()", line: int = 5) -> str:
    mark = "" if rank is None else f"[rank{rank}]: "
    lines = [
        "Traceback (most recent call last):",
        f'  File "/home/user/train.py", line {line}, in <module>',
        f"    {source}",
        error,
    ]
    return "\n".join(mark + line for line in lines)


_MISSING = "FileNotFoundError: [Errno 2] No such file or directory: 'vocab.json'"
_STOPPED = "W1 api.py:1028] Sending process 7 closing signal SIGTERM\n"


@pytest.mark.parametrize("error", [_MISSING, "NameError: name 'x' is not defined"])
def test_an_error_is_independent_of_the_ranks_only_where_every_rank_met_it(error: str) -> None:
    def told(*ranks: int | None, more: str = "") -> str:
        text = "\n".join([*(_traceback(rank, error) for rank in ranks), more])
        return diagnose(text)[0].explanation.en

    claim = "one GPU would show"
    assert claim in told(None)
    assert claim in told(0, 1)
    assert claim not in told(0)
    assert claim not in told(1)
    lost = "[rank0]: RuntimeError: Connection closed by peer [127.0.0.1]:3"
    unnumbered = told(None, more=_STOPPED)
    for alone in (told(1, more=lost), told(0, more=_STOPPED), told(0, 1, 3), unnumbered):
        assert claim not in alone
    assert "Only this one of the run's ranks" in told(1, more=lost)
    assert "Only this one" not in told(0)
    assert "Only this one" not in unnumbered


def test_the_attempts_of_one_rank_are_not_several_ranks() -> None:
    one = _traceback(None, "IndexError: too far", "rows[at]")
    restart = "[default] Worker group FAILED. 1/3 attempts left; will restart worker group"
    failed = "E1 api.py:1002] failed (exitcode: 1) local_rank: 0 (pid: {}) of binary: python"

    def told(pid: int, *parts: str) -> str:
        return diagnose("\n".join([*parts, failed.format(pid)]))[0].explanation.en

    assert "one GPU" in told(9, one, _STOPPED, "", one)
    assert "one GPU" not in told(9, one, restart, _STOPPED, one)
    assert "one GPU" not in told(7, one, restart, _STOPPED, one)


@pytest.mark.parametrize(
    ("library", "error", "ordinary"),
    [
        ("transformers/trainer.py", "ValueError: too many rows", True),
        ("torch/distributed/fsdp/x.py", "ValueError: too many rows", False),
        ("deepspeed/runtime/engine.py", "ValueError: too many rows", False),
        ("torch/nn/modules/linear.py", "RuntimeError: shapes (16x96 and 64x10)", True),
        ("torch/nn/modules/linear.py", "RuntimeError: shapes (16x96 and 0x10)", False),
        ("transformers/trainer.py", "ValueError: not for a world size of 2", False),
    ],
)
def test_what_every_rank_met_is_ordinary_only_where_ranks_have_no_part(
    library: str, error: str, ordinary: bool
) -> None:
    lines = [
        "Traceback (most recent call last):",
        '  File "/home/user/train.py", line 5, in <module>',
        "    go()",
        f'  File "/opt/env/lib/python3.11/site-packages/{library}", line 9, in go',
        "    stop()",
        error,
    ]
    text = "\n".join(f"[rank{rank}]: {line}" for rank in (0, 1) for line in lines)
    assert ("one GPU would show too" in diagnose(text)[0].explanation.en) == ordinary


def test_a_log_that_was_cut_to_its_last_line_is_unknown_and_not_well() -> None:
    (failure,) = diagnose("SomethingError: that nobody knows\n")
    assert (failure.kind, failure.rank) == ("exception", None)
    assert failure.excerpt == ("SomethingError: that nobody knows",)
    assert diagnose("SomethingError: that nobody knows\nand the run goes on\n") == []


@pytest.mark.parametrize(
    ("name", "kind", "rank", "line"),
    [
        ("thread_dies.log", "exception", 1, 38),
        ("crash_with_stack.log", "fatal-signal", 1, 35),
        ("wrong_arguments.log", "script-arguments", None, None),
        ("left_without_a_word.log", "exit-status", 1, None),
    ],
)
def test_the_cause_among_ranks_that_write_into_one_stream(
    name: str, kind: str, rank: int | None, line: int | None
) -> None:
    first, *others = diagnose(_read(name))
    assert (first.kind, first.rank, first.line) == (kind, rank, line)
    assert {other.kind for other in others} <= {"peer-lost"}


def test_a_run_that_logged_tracebacks_and_finished_has_no_failure() -> None:
    assert diagnose(_read("logged_and_survived.log")) == []


@pytest.mark.parametrize("prefix", ["", "[default1]:"])
@pytest.mark.parametrize("above", ["Exception in thread prefetch:", "Process SpawnProcess-3:"])
def test_what_ended_a_thread_goes_before_the_wait_for_it(prefix: str, above: str) -> None:
    thread = [above, *_traceback(None, "KeyError: 'a'", line=18).splitlines()]
    text = "\n".join(
        [
            *(prefix + line for line in thread),
            *(f"step {number}" for number in range(9)),
            _traceback(1, "_queue.Empty", line=23),
            _traceback(0, "RuntimeError: Connection closed by peer [127.0.0.1]:3"),
        ]
    )
    first, *others = diagnose(text)
    assert (first.kind, first.rank, first.line) == ("exception", 1, 18)
    assert first.message.startswith("KeyError: 'a' [")
    assert "in vain (Empty)" in first.explanation.en
    assert [(other.kind, other.rank) for other in others] == [("peer-lost", 0)]


def test_a_thread_of_one_rank_explains_no_other_rank() -> None:
    threads = [
        f"Exception in thread t:\n{_traceback(None, error, line=line)}"
        for error, line in (("KeyError: 'a'", 18), ("OSError: b", 19))
    ]
    text = "\n".join([*threads, *(_traceback(rank, "_queue.Empty", line=23) for rank in (0, 1))])
    assert diagnose(text)[0].line == 23


def _exits(*exits: tuple[int, int]) -> str:
    blocks = [
        f"  rank      : {rank} (local_rank: {rank})\n  exitcode  : {code} (pid: {100 + rank})"
        for rank, code in exits
    ]
    return "\n".join(["ChildFailedError: ", *blocks])


_WATCHDOG = (
    "[rank3]:[E623 21:21:18.8 ProcessGroupNCCL.cpp:2197] [PG ID 0 PG GUID 0 Rank 3] Process group watchdog thread "
    "terminated with exception: [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=10, "
    "OpType=BROADCAST, NumelIn=2, NumelOut=2, Timeout(ms)=600000) ran for 600007 milliseconds before timing out."
)


def test_a_rank_that_the_watchdog_aborted_is_no_cause() -> None:
    exits = _exits((1, -6), (0, -15), (2, -6), (3, -6))
    (failure,) = diagnose(f"{_WATCHDOG}\n{exits}")
    assert (failure.kind, failure.rank) == ("collective-timeout", 0)
    assert "Rank 0 reported no timeout" in failure.explanation.en
    assert "Ranks 1, 2 were aborted too" in failure.explanation.en
    crashed = diagnose(
        f"{_WATCHDOG}\nfree(): invalid pointer\n{_exits((1, -6), (0, -15), (3, -6))}"
    )
    assert (crashed[0].kind, crashed[0].rank) == ("fatal-signal", 1)
    killed = diagnose(f"{_WATCHDOG}\n{_exits((1, -9), (0, -15), (3, -6))}")
    assert (killed[0].kind, killed[0].rank) == ("killed", 1)


def test_ranks_that_all_crashed_single_out_none() -> None:
    assert diagnose(_exits((0, -11), (1, -11)))[0].rank is None
    assert diagnose(_exits((0, -11), (1, -15)))[0].rank == 0
    assert diagnose(f"{_STOPPED}{_exits((1, -11), (0, -11))}")[0].rank is not None


@pytest.mark.parametrize(("missing", "rank"), [("Rank 1", 1), ("Ranks 1", 1), ("Ranks 1, 3", None)])
def test_a_monitored_barrier_names_who_did_not_come(missing: str, rank: int | None) -> None:
    error = f"RuntimeError: [Rank 0]: {missing} failed to pass monitoredBarrier in 5000 ms"
    failure = diagnose(_traceback(0, error))[0]
    assert (failure.kind, failure.rank, failure.line) == ("collective-timeout", rank, 5)
    assert f"Rank {missing.split(' ', 1)[1]} did not come" in failure.explanation.en


def test_slurm_names_the_task_that_ran_out_of_memory() -> None:
    lines = [
        "slurmstepd: error: Detected 1 oom_kill event in StepId=8.0. Some of the step tasks have been OOM Killed.",
        "srun: error: nid1: task 2: Out Of Memory",
        "srun: error: nid2: task 3: Terminated",
    ]
    (failure,) = diagnose("\n".join(lines))
    assert (failure.kind, failure.rank) == ("host-out-of-memory", 2)
    assert "task 2 on node nid1" in failure.explanation.en
    launched = diagnose("\n".join(["torchrun --nproc_per_node 4 train.py: gloo", *lines]))[0]
    assert launched.rank is None
    assert "task 2 on node nid1" in launched.explanation.en


def test_a_log_that_begins_in_a_traceback_shows_its_line() -> None:
    text = (
        '  File "/home/user/unet.py", line 257, in embed\n    x = x / n\n'
        "RuntimeError: CUDA error: uncorrectable ECC error encountered\n\n"
        "[E ProcessGroupNCCL.cpp:916] [Rank 1] NCCL watchdog thread terminated with exception: CUDA error: "
        "uncorrectable ECC error encountered\n"
    )
    (failure,) = diagnose(text)
    assert (failure.kind, failure.rank, failure.line) == ("gpu-hardware", 1, 257)
    assert diagnose('  File "/home/user/a.py", line 3, in f\n    g()\nstep: 1\n') == []


def test_a_rank_whose_line_was_cut_off_borrows_the_line_of_one_that_said_the_same() -> None:
    error = "RuntimeError: CUDA error: an illegal memory access was encountered"
    text = f"[rank3]: {error}\n[rank3]: For debugging\n{_traceback(0, error, line=169)}\n"
    (failure,) = diagnose(text)
    assert (failure.kind, failure.rank, failure.line) == ("cuda-illegal-access", None, 169)
    other = f"[rank3]: {error}\n{_traceback(0, 'ValueError: other', line=169)}\n"
    assert [each.line for each in diagnose(other)] == [None, 169]


@pytest.mark.parametrize(
    "end",
    [
        "done",
        "Job finished at Sun Nov 22 03:36:14 UTC 2026",
        "real\t0m34.1s",
        "saved logs to run.tar.gz",
    ],
)
def test_what_a_launchers_script_says_at_the_end_hides_no_failure(end: str) -> None:
    log = (
        "step 1 loss 0.5\nTraceback (most recent call last):\n"
        '  File "/w/train.py", line 9, in <module>\n    run()\nValueError: bad value\n' + end + "\n"
    )
    assert [failure.line for failure in diagnose(log)] == [9]


@pytest.mark.parametrize(
    ("end", "failed"),
    [
        ("rank 0 returned 3\nrank 1 returned 3\n2026-11-22 03:36:14 finished rc=3", True),
        ("[launch] rank 1 exited with 1", True),
        ("", True),
        ("rank 0 exited with code 0\nrank 1 exited with code 0", True),
        ("2026-11-22 03:36:14 INFO job: restarting from the last checkpoint", False),
        ("step 2 loss 0.4\nstep 3 loss 0.3\nstep 4 loss 0.2\nfinished", False),
    ],
)
def test_a_logged_failure_ends_the_run_unless_something_goes_on(end: str, failed: bool) -> None:
    log = (
        "step 1 loss 0.5\n2026-11-22 03:36:13 ERROR job: training job failed\n"
        'Traceback (most recent call last):\n  File "/w/train.py", line 9, in <module>\n    run()\n'
        f"ValueError: bad value\n{end}\n"
    )
    assert bool(diagnose(log)) is failed


def test_frames_of_cython_are_nobodys_own_code() -> None:
    log = (
        'Traceback (most recent call last):\n  File "/w/train.py", line 9, in <module>\n    df[name]\n'
        '  File "/opt/lib/python3.11/site-packages/pandas/core/indexes/base.py", line 3, in get_loc\n    find(key)\n'
        "  File \"pandas/_libs/hashtable_class_helper.pxi\", line 7734, in pandas._libs.get_item\nKeyError: 'age'\n"
    )
    failure = diagnose(log)[0]
    assert (failure.filename, failure.line) == ("/w/train.py", 9)
    assert "no column 'age'" in failure.explanation.en


def test_tasks_of_srun_are_ranks_where_nothing_else_starts_any() -> None:
    log = (
        "srun: error: node1: task 0: Exited with exit code 1\n"
        "[rank1]:[E ProcessGroupNCCL.cpp:1414] [PG 0 Rank 1] Process group watchdog thread terminated with exception: "
        "NCCL error: remote process exited or there was a network error, NCCL version 2.20.5\n"
        "srun: error: node2: task 1: Exited with exit code 134\n"
    )
    failures = diagnose(log)
    assert (failures[0].kind, failures[0].rank) == ("exit-status", 0)
    assert (failures[1].kind, failures[1].rank, failures[1].root_cause) == ("peer-lost", 1, False)


def test_the_rank_that_mpirun_saw_killed_is_the_one() -> None:
    log = "step 1 loss 0.5\nmpirun noticed that process rank 3 with PID 0 on node n1 exited on signal 9 (Killed).\n"
    failure = diagnose(log)[0]
    assert (failure.kind, failure.rank) == ("killed", 3)


def test_what_four_processes_wrote_into_one_another_is_alike_whatever_the_order_of_its_sets() -> (
    None
):
    frame = '  File "/w/train.py", line 9, in train\n'
    said = "ValueError: Target modules {%s} not found in the base model. Please check the target modules.\n"
    log = (
        "Traceback (most recent call last):\nTraceback (most recent call last):\n"
        + frame * 2
        + "    model = get(model)\n    model = get(model)\n"
        + '  File "/opt/lib/python3.12/site-packages/peft/model.py", line 3, in get\n' * 2
        + "    raise ValueError(\n    raise ValueError(\n"
        + said % "'query', 'value'"
        + said % "'value', 'query'"
        + "E1 api.py: failed (exitcode: 1) local_rank: 0 (pid: 5) of binary: python\n"
    )
    failure = diagnose(log)[0]
    assert (failure.kind, failure.line) == ("exception", 9)
    assert "Only this one" not in failure.explanation.en


@pytest.mark.parametrize(
    ("end", "said"), [("job ended with status 124", True), ("job ended", False)]
)
def test_a_time_limit_of_timeout_is_told_by_its_status(end: str, said: bool) -> None:
    log = (
        "step 5 loss 0.5\nW1122 04:52:26.553000 26528 torch/distributed/elastic/agent/server/api.py:753] Received 15 "
        f"death signal, shutting down workers\n{end}\n"
    )
    failure = diagnose(log)[0]
    assert failure.kind == "terminated"
    assert ("timeout(1)" in failure.explanation.en) is said


_ONE_TIMEOUT = (
    "[rank{0}]:[E ProcessGroupNCCL.cpp:523] [Rank {0}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, "
    "OpType=ALLREDUCE, NumelIn={1}, NumelOut={1}, Timeout(ms)=120000) ran for 120092 milliseconds before timing out.\n"
)


def test_ranks_that_bring_different_numbers_of_elements_are_in_different_collectives() -> None:
    log = (
        _ONE_TIMEOUT.format(1, 8388608)
        + _ONE_TIMEOUT.format(2, 8388608)
        + _ONE_TIMEOUT.format(3, 1024)
    )
    failure = diagnose(log)[0]
    assert failure.kind == "collective-timeout"
    assert "rank 2: 8388608, rank 3: 1024" in failure.explanation.en
    same = diagnose(_ONE_TIMEOUT.format(1, 64) + _ONE_TIMEOUT.format(2, 64))[0]
    assert "waited in the same collective" in same.explanation.en


def test_the_abort_of_a_watchdog_is_no_crash_of_its_own() -> None:
    log = (
        _ONE_TIMEOUT.format(2, 64)
        + "./launcher.sh: line 14: 191644 Aborted                 (core dumped) $@\n"
    )
    assert diagnose(log)[0].kind == "collective-timeout"


def test_memory_that_nobody_is_listed_for_is_somebody_elses() -> None:
    said = (
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 984.00 MiB (GPU 0; 47.50 GiB total capacity; "
        "{held} GiB already allocated; 68.88 MiB free; {held} GiB reserved in total by PyTorch)"
    )
    log = 'Traceback (most recent call last):\n  File "/w/train.py", line 9, in <module>\n    step()\n'
    others = diagnose(log + said.format(held="22.15") + "\n")[0].explanation.en
    assert "About 25.3 GiB are held by something else" in others
    for held in ("46.90", "22.1.5"):  # and what is no number
        own = diagnose(log + said.format(held=held) + "\n")[0].explanation.en
        assert "held by something else" not in own


def test_the_compilers_own_words_are_quoted() -> None:
    log = (
        "/usr/include/crt/host_config.h:139:2: error: #error -- unsupported GNU version! gcc versions later than 11\n"
        '[rank0]: Traceback (most recent call last):\n[rank0]:   File "/w/train.py", line 9, in <module>\n'
        "[rank0]:     train()\n[rank0]: RuntimeError: Error building extension 'fused_adam'\n"
    )
    failure = diagnose(log)[0]
    assert failure.kind == "extension-not-built"
    assert "unsupported GNU version! gcc versions later than 11" in failure.explanation.en


def test_what_a_rank_without_a_number_raised_is_not_told_by_one() -> None:
    own = '  File "/w/train.py", line {}, in <module>\n    load()\n'
    log = (
        "Traceback (most recent call last):\n" + own.format(5) + "OSError: no such shard\n"
        "[rank0]: Traceback (most recent call last):\n"
        + "".join(f"[rank0]: {line}\n" for line in own.format(9).splitlines())
        + "[rank0]: ValueError: sizes differ\n[rank1]: Traceback (most recent call last):\n"
        + "".join(f"[rank1]: {line}\n" for line in own.format(7).splitlines())
        + "[rank1]: KeyError: 'shard_01'\n"
    )
    failure = diagnose(log)[0]
    assert failure.line == 9
    assert (
        "Rank 1 raised another exception by itself: KeyError: 'shard_01' (train.py:7)"
        in failure.explanation.en
    )
    assert "-1000000" not in "".join(each.explanation.en for each in diagnose(log))


@pytest.mark.parametrize(
    ("end", "kind", "said"),
    [
        (
            "[INFO] [launch.py:325:sigkill_handler] Main process received SIGINT, exiting",
            "terminated",
            "SIGINT",
        ),
        (
            "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2024-05-01T10:00:00 DUE to SIGNAL Terminated ***",
            "cancelled",
            "Terminated",
        ),
    ],
)
def test_a_run_stopped_from_outside_is_told_as_one(end: str, kind: str, said: str) -> None:
    (failure,) = diagnose(f"step 10 loss 3.0\nstep 11 loss 2.9\n{end}\n")
    assert (failure.kind, failure.rank) == (kind, None)
    assert said in failure.explanation.en
    assert said in failure.explanation.zh_cn
    error = (
        'Traceback (most recent call last):\n  File "/w/train.py", line 3, in <module>\n    run()\n'
    )
    after = f"[rank1]: {error}".replace("\n", "\n[rank1]: ") + f"ValueError: no\n{end}\n"
    assert diagnose(after)[0].line == 3


def test_a_wrapper_in_the_call_chain_forbids_the_claim_of_one_gpu() -> None:
    def told(wrapper: str) -> str:
        frames = ["/home/user/train.py", wrapper, "/home/user/model.py"]
        lines = [f'  File "{name}", line 5, in forward\n    return x' for name in frames]
        log = "\n".join(
            ["Traceback (most recent call last):", *lines, "NameError: name 'x' is not defined"]
        )
        return diagnose(log)[0].explanation.en

    claim = "one GPU would show"
    assert claim in told("/opt/lib/python3.12/site-packages/torch/nn/modules/module.py")
    assert claim not in told("/opt/lib/python3.12/site-packages/torch/nn/parallel/data_parallel.py")


def test_of_a_long_message_the_beginning_and_the_end_are_kept() -> None:
    log = (
        "Traceback (most recent call last):\n"
        '  File "/home/user/train.py", line 5, in <module>\n    build()\n'
        f"RuntimeError: Error building extension: {'-O3 ' * 900}the reason"
    )
    message = diagnose(log)[0].message
    assert message.startswith("RuntimeError: Error building extension")
    assert message.endswith("the reason")
    assert len(message) < 2100


def test_no_smaller_batch_is_advised_first_where_a_barrier_met_a_full_gpu() -> None:
    def told(function: str) -> str:
        log = (
            "[rank2]: Traceback (most recent call last):\n"
            '[rank2]:   File "/home/user/train.py", line 9, in <module>\n[rank2]:     start()\n'
            '[rank2]:   File "/opt/lib/python3.12/site-packages/torch/distributed/distributed_c10d.py", '
            f"line 4159, in {function}\n[rank2]:     work = group.barrier(opts=opts)\n"
            "[rank2]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 MiB."
        )
        return diagnose(log)[0].explanation.en

    assert "a smaller batch per process" in told("all_gather")
    assert "a smaller batch per process" not in told("barrier")
    assert "torch.cuda.set_device(local_rank)" in told("barrier")


def test_of_an_unknown_error_the_package_and_its_line_are_told_and_nothing_else() -> None:
    log = (
        "Traceback (most recent call last):\n"
        '  File "/home/user/train.py", line 5, in <module>\n    data = load(name)\n'
        '  File "/opt/lib/python3.12/site-packages/loader/read.py", line 71, in load\n    fail()\n'
        "loader.BadHeader: 17 is not a version"
    )
    told = diagnose(log)[0].explanation
    assert "inside loader (read.py:71 in load), called from this line of yours." in told.en
    assert "loader（read.py:71 in load）" in told.zh_cn


def test_a_long_chain_of_a_librarys_exceptions_is_walked_once() -> None:
    """Twice per link would be 2 to the 200th."""
    link = """\
Traceback (most recent call last):
  File "/usr/lib/python3.12/site-packages/retrying/core.py", line {number}, in call
    raise Retried from error
retrying.Retried: try {number}
"""
    cause = "\nThe above exception was the direct cause of the following exception:\n\n"
    failure = diagnose(cause.join(link.format(number=number) for number in range(200)))[0]
    assert "try 199" in failure.message


def test_of_two_launchers_the_one_whose_ranks_say_why_is_told() -> None:
    """The other could not bind its port, which is no reason for these ranks to end."""
    elastic = "/usr/lib/python3.12/site-packages/torch/distributed"
    log = f"""\
Traceback (most recent call last):
  File "/usr/bin/torchrun", line 8, in <module>
    sys.exit(main())
  File "{elastic}/run.py", line 901, in main
    run(args)
  File "{elastic}/elastic/agent/server/api.py", line 621, in _rendezvous
    spec.rdzv_handler.next_rendezvous()
torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: 29500, \
useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use
"""
    ranks = """\
/usr/bin/python: can't open file '/home/a/trian.py': [Errno 2] No such file or directory
E0423 03:10:00.1 381 api.py:869] failed (exitcode: 2) local_rank: 0 (pid: 77) of binary: python
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
Root Cause (first observed failure):
[0]:
  rank      : 0 (local_rank: 0)
  exitcode  : 2 (pid: 77)
"""
    assert diagnose(log)[0].kind == "port-in-use"
    assert "trian.py" in diagnose(log + ranks)[0].message


def test_an_error_long_before_the_end_was_survived() -> None:
    traceback = 'Traceback (most recent call last):\n  File "/home/a/train.py", line {}, in <module>\n    main()\n'
    early = traceback.format(4) + "OSError: cannot write the cache\n\n"
    late = traceback.format(9) + "KeyError: 'text'\n"
    between = "".join(f"reader waits for shard {number}\n" for number in range(90))
    assert [each.line for each in diagnose(early + late)] == [4]
    assert [each.line for each in diagnose(early + between + late)] == [9]


_OWN = "Traceback (most recent call last):\n  File \"/home/a/train.py\", line 9, in <module>\n    main()\nKeyError: 'x'\n"
_MARKED = "".join(f"[rank{{0}}]: {line}\n" for line in _OWN.splitlines())


def test_what_a_rank_printed_twice_is_one_ranks() -> None:
    """Python's own way, and with its number."""
    assert diagnose(_OWN + _MARKED.format(0))[0].rank == 0
    (failure,) = diagnose(2 * _OWN + _MARKED.format(0) + _MARKED.format(1))
    assert failure.rank is None


def test_of_several_processes_none_is_rank_0_for_want_of_a_number() -> None:
    assert diagnose(_OWN)[0].rank == 0
    assert diagnose(f"initializing ddp: GLOBAL_RANK: 3, MEMBER: 4/4\n{_OWN}")[0].rank is None
    assert diagnose(f"initializing ddp: GLOBAL_RANK: 0, MEMBER: 1/1\n{_OWN}")[0].rank == 0


def test_who_started_the_launcher_is_not_why_it_failed() -> None:
    launcher = (
        'Traceback (most recent call last):\n  File "/opt/torch/distributed/launcher/api.py", line 138, in __call__\n'
        "    raise ChildFailedError(\ntorch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
        "Root Cause (first observed failure):\n[0]:\n  rank      : 0 (local_rank: 0)\n  exitcode  : 1 (pid: 77)\n"
    )
    starter = (
        'Traceback (most recent call last):\n  File "/home/a/cli.py", line 110, in launch\n    subprocess.run(\n'
        "subprocess.CalledProcessError: Command '[{}]' returned non-zero exit status 1.\n"
    )
    header, frame, source, error = _OWN.splitlines()
    interleaved = "\n".join(
        [header, header, frame, f"{source}  {header}", f"^^^{frame}", " ^^^", frame, source, error]
    )
    interleaved += "\n"
    after = _OWN.replace("line 9", "line 40")
    first = diagnose(interleaved + launcher + starter.format("'torchrun', 'train.py'") + after)[0]
    assert (first.kind, first.line) == ("exception", 9)
    assert diagnose(starter.format("'ffmpeg', '-i'"))[0].line == 110


def test_rays_text_of_an_exception_without_its_header() -> None:
    header = "Error: ray::TaskRunner.run() (pid=7351, ip=10.0.0.7, actor_id=65, repr=<a.TaskRunner object>)"
    settings = [f"CUDA setting {number}" for number in range(9)]
    (failure,) = diagnose("\n".join([*settings, header, *_OWN.splitlines()[1:]]))
    assert (failure.line, failure.message) == (9, "KeyError: 'x'")
