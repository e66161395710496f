"""Processes end with their own status: no abort after success, no success after failure, nothing left running."""

from __future__ import annotations

from pathlib import Path

import pytest

from .compiled import needed_compiler, shared_library
from .conftest import Rehearse

_GLOO = """
import os, sys, time, threading, torch, torch.distributed as dist
torch.zeros(1, device="cuda")
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
done = dist.all_reduce(torch.ones(4), async_op=True).get_future().then(lambda _: time.sleep(1.0))
time.sleep(0.2)
"""
_NCCL = """
import atexit, os, sys, time, threading, torch, torch.distributed as dist
dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1)
x = torch.ones(4, device="cuda")
dist.all_reduce(x)
pending = dist.all_reduce(torch.ones(1_000_000, device="cuda"), async_op=True)
"""


def test_a_callback_on_a_thread_of_gloo_does_not_abort_the_exit(rehearse: Rehearse) -> None:
    """Without the exit handler this aborts: CPython unwinds the thread that asks for its lock too late."""
    done = rehearse(_GLOO + "print('end', flush=True)")
    assert (done.returncode, done.stdout) == (0, "end\n"), done.stderr[-2000:]
    assert "terminate called" not in done.stderr


def test_a_thread_that_is_unwound_does_not_abort_the_exit(
    rehearse: Rehearse, tmp_path: Path
) -> None:
    """The second line of defence: a thread that no exit handler knows of, with C++ frames that may not be unwound."""
    library = shared_library(
        needed_compiler(),
        tmp_path / "libthreads.so",
        "#include <thread>\n"
        'extern "C" void start(void (*body)()) { std::thread([body]() noexcept { body(); }).detach(); }\n',
        "-pthread",
    )
    body = f"""
import ctypes, time, torch, torch.distributed
library = ctypes.CDLL({str(library)!r})
@ctypes.CFUNCTYPE(None)
def body():
    time.sleep(0.6)
library.start(body)
time.sleep(0.2)
print("end", flush=True)
"""
    done = rehearse(body)
    assert (done.returncode, done.stdout) == (0, "end\n"), done.stderr[-2000:]


@pytest.mark.parametrize(
    ("ending", "status"),
    [
        pytest.param("", 0, id="the end of the script"),
        pytest.param("sys.exit(5)", 5, id="sys.exit"),
        pytest.param("raise SystemExit(6)", 6, id="SystemExit", marks=pytest.mark.long),
        pytest.param("sys.exit('words')", 1, id="sys.exit with words", marks=pytest.mark.long),
        pytest.param("os._exit(7)", 7, id="os._exit", marks=pytest.mark.long),
        pytest.param("raise ValueError('mine')", 1, id="an exception"),
        pytest.param("os.kill(os.getpid(), 15)", -15, id="a signal", marks=pytest.mark.long),
        pytest.param("os.abort()", -6, id="an abort of its own", marks=pytest.mark.long),
    ],
)
def test_the_status_is_the_programs_own(rehearse: Rehearse, ending: str, status: int) -> None:
    done = rehearse(_NCCL + ending)
    assert done.returncode == status, done.stderr[-2000:]
    if "ValueError" in ending:
        assert "ValueError: mine" in done.stderr
    if status >= 0:
        assert "terminate called" not in done.stderr


def test_the_programs_handlers_threads_and_output_come_first(rehearse: Rehearse) -> None:
    body = (
        "import atexit\natexit.register(lambda: last_words())\n"
        + _NCCL
        + """
def last_words():
    y = torch.ones(2, device="cuda")
    dist.all_reduce(y)
    sys.stdout.write(f"handler {dist.is_initialized()} {y.tolist()}\\n")
def late():
    time.sleep(0.5)
    dist.all_reduce(x)
    sys.stdout.write("thread\\n")
threading.Thread(target=late).start()
sys.stdout.write("main\\n")
"""
    )
    done = rehearse(body)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.lines == ["main", "thread", "handler True [1.0, 1.0]"]


def test_an_exception_on_one_rank_ends_the_job_at_once(rehearse: Rehearse) -> None:
    body = """
import os, torch, torch.distributed as dist
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("cpu:gloo,cuda:nccl")
x = torch.ones(4, device="cuda")
dist.all_reduce(x)
pending = dist.all_reduce(torch.ones(4), async_op=True) if dist.get_rank() else None
if dist.get_rank() == 0:
    raise RuntimeError("only here")
dist.all_reduce(x)
"""
    done = rehearse(body, launcher="torchrun")
    assert done.returncode == 1
    assert "RuntimeError: only here" in done.stderr
    assert "terminate called" not in done.stderr
