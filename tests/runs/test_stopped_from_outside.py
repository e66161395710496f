"""What was stopped from outside is told so: what fails while its processes go is no cause."""

from __future__ import annotations

from ranksafe.runs.diagnosis.diagnose import diagnose
from ranksafe.runs.model import Failure

TORCH = "/usr/lib/python3.12/site-packages/torch/distributed"
SIGNALLED = f"""\
Traceback (most recent call last):
  File "{TORCH}/elastic/agent/server/api.py", line 736, in run
    result = self._invoke_run(role)
  File "{TORCH}/elastic/multiprocessing/api.py", line 62, in _terminate_process_handler
    raise SignalException(f"Process {{os.getpid()}} got signal: {{sigval}}", sigval=sigval)
torch.distributed.elastic.multiprocessing.api.SignalException: Process 47 got signal: 1
"""
DURING = """
During handling of the above exception, another exception occurred:

"""
CLOSING = (
    "[2025-02-18 15:50:58] torch.distributed.elastic.multiprocessing.api: [WARNING] Sending process 48 closing "
    "signal SIGTERM\n"
)


def first(log: str) -> Failure:
    return diagnose(log)[0]


def test_a_launcher_that_could_not_say_what_came() -> None:
    """Its own log record was interrupted by the same signal's second coming (torch 2.1)."""
    lock = f"""\
Traceback (most recent call last):
  File "/usr/lib/python3.12/logging/__init__.py", line 1697, in isEnabledFor
    return self._cache[level]
KeyError: 30
{DURING}{SIGNALLED}"""
    failure = first("step 1 loss 2.0\n" + CLOSING + SIGNALLED + DURING + lock + "wandb: done\n")
    assert failure.message == "SignalException: Process 47 got signal: 1"
    assert failure.rank is None
    assert "SIGHUP" in failure.explanation.en
    assert "SIGHUP" in failure.explanation.zh_cn
    # The launcher's word on other ranks stays what follows from a rank's failure.
    failed = (
        CLOSING
        + "E0423 api.py:869] failed (exitcode: -9) local_rank: 1 (pid: 77) of binary: python\n"
    )
    assert first(failed).kind == "killed"


def test_an_interrupted_program_fails_of_nothing_else() -> None:
    """A lock that the interruption took, workers whose parent has gone."""
    interrupted = """\
Traceback (most recent call last):
  File "/home/a/train.py", line 12, in <module>
    train()
KeyboardInterrupt
"""
    lock = """\
Traceback (most recent call last):
  File "/home/a/train.py", line 14, in <module>
    with lock:
RuntimeError: release unlocked lock
"""
    worker = """\
Exception in thread Thread-1 (_pin_memory_loop):
Traceback (most recent call last):
  File "/usr/lib/python3.12/threading.py", line 1073, in _bootstrap_inner
    self.run()
ConnectionResetError: [Errno 104] Connection reset by peer
"""
    for log in (interrupted + DURING + lock, interrupted + worker, interrupted + lock):
        failure = first(log)
        assert failure.message == "KeyboardInterrupt"
        assert failure.line == 12
    assert first(lock + interrupted).message.startswith("RuntimeError")


def test_what_logging_could_not_write_is_no_exception() -> None:
    log = f"""\
step 1 loss 2.0
--- Logging error ---
{SIGNALLED}{DURING}Traceback (most recent call last):
  File "/usr/lib/python3.12/logging/__init__.py", line 1160, in emit
    msg = self.format(record)
ValueError: cannot format
Call stack:
  File "/usr/bin/torchrun", line 7, in <module>
    sys.exit(main())
  File "{TORCH}/elastic/multiprocessing/api.py", line 906, in _close
    logger.warning(
Message: 'Sending process %s closing signal %s'
Arguments: (245402, 'SIGTERM')
slurmstepd: error: *** JOB 186 ON n7 CANCELLED AT 2026-04-15T11:31:51 DUE TO TIME LIMIT ***
"""
    failures = diagnose(log)
    assert failures[0].kind == "time-limit"
    assert not any("Message" in each.message for each in failures)
