"""The line to a host breaks: the run goes on there, is found again, or is ended by its lease."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from ranksafe.runs.attach import attach, waiting_runs
from ranksafe.runs.errors import RunNotPossible
from ranksafe.runs.hosts.errors import HostUnreachable
from ranksafe.runs.model import Outcome, RunEvent
from ranksafe.runs.remote.record import read_record, write_record

from .cable import Cable
from .far_host import Far, processes_with, until

_COUNTING = """\
import sys, time
for number in range({count}):
    print("line", number, flush=True)
    time.sleep(0.1)
{end}
"""


def _counting(far: Far, count: int, end: str = "") -> Path:
    return far.write("train.py", _COUNTING.format(count=count, end=end))


def _numbers(events: list[RunEvent]) -> list[int]:
    of_rank = [event for event in events if event.kind == "output" and event.rank == 0]
    texts = [line for event in of_rank for line in event.lines]
    return [int(text.split()[1]) for text in texts if text.startswith("line ")]


def test_a_broken_line_is_mended_and_no_output_is_lost(far: Far) -> None:
    run = far.start(_counting(far, 35, end="raise ValueError('in the end')"))
    until(lambda: len(_numbers(far.events)) > 10)
    far.server.cut()
    result = run.wait(60)
    assert result is not None
    assert _numbers(far.events) == list(range(35))
    said = far.said("status")
    assert any("is lost" in each and "goes on there" in each for each in said)
    assert any("connected to gpu-box again" in each for each in said)
    assert result.failures[0].message == "ValueError: in the end"
    assert result.failures[0].filename == str(far.project / "train.py")


@pytest.mark.long
def test_a_run_that_was_left_is_come_back_to_and_explained(far: Far) -> None:
    far.settle("patience-minutes = 0.03")
    script = _counting(far, 100, end="{}['key']")
    run = far.start(script)
    until(lambda: len(_numbers(far.events)) > 25)
    far.cut_off()
    result = run.wait(60)
    assert result is not None
    assert result.outcome is Outcome.FAILED
    assert result.failures[0].kind == "host-lost"
    assert f"ranksafe attach {run.run_id}" in result.failures[0].explanation.en
    assert waiting_runs() == [run.run_id]
    last = f'Rank 0 last printed "line {_numbers(far.events)[-1]}" and was at train.py:'
    assert last in result.failures[0].explanation.en
    with pytest.raises(HostUnreachable) as raised:
        attach(run.run_id, [].append)
    assert last in raised.value.message.en
    assert "rank 0 最后输出" in raised.value.message.zh_cn
    script.write_text("# edited meanwhile\n" + script.read_text())
    far.connect()
    events: list[RunEvent] = []
    again = attach(None, events.append)
    with pytest.raises(RunNotPossible, match="followed by another process"):
        attach(run.run_id, events.append)
    result = again.wait(60)
    assert result is not None
    assert _numbers(events) == list(range(100))
    assert (result.failures[0].message, result.failures[0].line) == ("KeyError: 'key'", 6)
    assert waiting_runs() == []
    with pytest.raises(RunNotPossible, match="has ended"):
        attach(run.run_id, events.append)


@pytest.mark.long
def test_who_comes_back_keeps_the_time_limit(far: Far) -> None:
    mark = f"ranksafe-test-limit-{os.getpid()}-{time.monotonic_ns()}"
    far.settle("patience-minutes = 0.03")
    run = far.start(_counting(far, 3000), timeout_seconds=12, on_hang="report", arguments=(mark,))
    until(lambda: len(_numbers(far.events)) > 5)
    far.cut_off()
    assert run.wait(60) is not None
    assert processes_with(mark) != []
    far.connect()
    events: list[RunEvent] = []
    again = attach(None, events.append)
    result = again.wait(60)
    assert result is not None
    assert any("no end after 12 s" in event.text for event in events)
    assert processes_with(mark) == []
    record = read_record(far.cache / "runs" / run.run_id)
    assert record is not None
    assert record.request("en").on_hang == "report"


def test_a_run_that_ended_in_time_while_nobody_looked(far: Far) -> None:
    far.settle("patience-minutes = 0.02")
    run = far.start(_counting(far, 30), timeout_seconds=12)
    until(lambda: len(_numbers(far.events)) > 5)
    far.cut_off()
    assert run.wait(60) is not None
    until(lambda: far.report(run.run_id).get("returncode", 1) == 0)
    record = read_record(far.cache / "runs" / run.run_id)
    assert record is not None
    write_record(replace(record, started=record.started - 60), far.cache / "runs" / run.run_id)
    far.connect()
    result = attach(None, far.events.append).wait(60)
    assert result is not None
    assert result.outcome is Outcome.SUCCEEDED


def _in_terminal(far: Far, script: Path, mark: str) -> subprocess.Popen[bytes]:
    """The command line in a process of its own, when the script has begun to print."""
    # Whoever starts the tests in the background has interrupts ignored, and children inherit that; a terminal does not.
    program = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from ranksafe.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", program, "run", str(script), "--target", "ssh:gpu-box"]
    process = subprocess.Popen(
        [*command, "--launcher", "python", "--", mark],
        cwd=far.project,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    while b"line 3" not in process.stdout.readline():
        assert process.poll() is None
    return process


def test_interrupting_the_command_ends_the_run_there(far: Far) -> None:
    mark = f"ranksafe-test-interrupted-{os.getpid()}-{time.monotonic_ns()}"
    terminal = _in_terminal(far, _counting(far, 3000), mark)
    terminal.send_signal(signal.SIGINT)
    terminal.communicate(timeout=60)
    assert terminal.returncode == 130
    assert processes_with(mark) == []
    assert waiting_runs() == []


@pytest.mark.long
def test_a_run_whose_terminal_was_killed_is_come_back_to(far: Far) -> None:
    terminal = _in_terminal(far, _counting(far, 70), "mark")
    terminal.kill()
    terminal.wait()
    until(lambda: len(waiting_runs()) == 1)
    events: list[RunEvent] = []
    result = attach(None, events.append).wait(60)
    assert result is not None
    assert result.outcome is Outcome.SUCCEEDED
    assert _numbers(events) == list(range(70))


@pytest.mark.long
def test_ssh_itself_is_killed(far: Far) -> None:
    run = far.start(_counting(far, 40))
    until(lambda: len(_numbers(far.events)) > 5)
    clients = processes_with(os.environ["RANKSAFE_SSH_CONFIG"])
    for pid in clients:
        os.kill(pid, signal.SIGKILL)
    result = run.wait(60)
    assert clients
    assert result is not None
    assert result.outcome is Outcome.SUCCEEDED
    assert _numbers(far.events) == list(range(40))


@pytest.mark.long
def test_the_lease_ends_a_run_that_nobody_comes_back_to(
    far: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = f"ranksafe-test-lease-{os.getpid()}-{time.monotonic_ns()}"
    far.settle("lease-hours = 0.0008")  # 3 seconds
    monkeypatch.setattr("ranksafe.runs.remote.process._BEAT_SECONDS", 0.5)
    run = far.start(_counting(far, 3000), arguments=(mark,))
    until(lambda: len(_numbers(far.events)) > 35)  # longer than the lease: it is renewed
    far.cut_off()
    until(lambda: processes_with(mark) == [])
    until(lambda: far.report(run.run_id).get("lease_over", False))
    far.connect()
    result = run.wait(60)
    assert result is not None
    assert result.outcome is Outcome.CANCELLED
    assert any("nobody here had looked at it" in each for each in far.said("status"))


@pytest.mark.long
def test_on_request_a_lost_line_ends_the_run(far: Far, monkeypatch: pytest.MonkeyPatch) -> None:
    mark = f"ranksafe-test-stop-{os.getpid()}-{time.monotonic_ns()}"
    monkeypatch.setattr("ranksafe.runs.targets.ssh.LOST_LEASE_SECONDS", 2.0)
    monkeypatch.setattr("ranksafe.runs.remote.process._BEAT_SECONDS", 0.3)
    run = far.start(_counting(far, 3000), arguments=(mark,), stop_when_lost=True)
    until(lambda: len(_numbers(far.events)) > 30)
    far.cut_off()
    until(lambda: processes_with(mark) == [], 20)
    run.cancel()
    assert run.wait(60) is not None


def test_the_network_goes_away_and_comes_back(
    far: Far, cable: Cable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing says so: no end of a connection, only silence."""
    cable.plug_in(tmp_path, monkeypatch)
    with cable.server(tmp_path) as server:
        monkeypatch.setenv("RANKSAFE_SSH_CONFIG", str(server.config))
        run = far.start(_counting(far, 110, end="raise ValueError('in the end')"))
        until(lambda: len(_numbers(far.events)) > 5)
        cable.set("down")
        until(lambda: any("is lost" in each for each in far.said("status")))
        cable.set("up")
        result = run.wait(90)
    assert result is not None
    assert _numbers(far.events) == list(range(110))
    assert result.failures[0].message == "ValueError: in the end"
