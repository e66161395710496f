"""What a job outlives: the editor, its watcher, a silent controller; and what ends it from outside."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from ranksafe.runs.attach import attach
from ranksafe.runs.errors import RunNotPossible
from ranksafe.runs.model import Outcome

from .slurm_cluster import SlurmCluster
from .slurm_user import LONGEST_SECONDS, PLAIN, Cluster, cluster_of

_STARTS = """\
import sys, time
from pathlib import Path
from ranksafe.runs.model import RunRequest
from ranksafe.runs.start import start_run
script = Path(sys.argv[1])
request = RunRequest(script, "slurm:mine", arguments=("5",), working_directory=script.parent, launcher="python")
run = start_run(request, lambda event: print(event.text, flush=True))
print("run", run.run_id, flush=True)
run.wait()
"""


@pytest.mark.torch
def test_a_job_outlives_the_editor_and_is_found_again(cluster: Cluster) -> None:
    script = cluster.script(PLAIN)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    editor = subprocess.Popen(
        [sys.executable, "-c", _STARTS, str(script)],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert editor.stdout is not None
    lines = []
    for line in editor.stdout:
        lines.append(line)
        if line == "second 1\n":
            break
    editor.send_signal(signal.SIGKILL)
    editor.wait()
    editor.stdout.close()
    (run_id,) = [line.split()[1] for line in lines if line.startswith("run ")]
    assert len(cluster.slurm.jobs()) == 1
    result = attach(run_id, cluster.events.append).wait(LONGEST_SECONDS)
    assert result is not None
    assert (result.run_id, result.outcome) == (run_id, Outcome.SUCCEEDED)
    assert cluster.output_of(0) == [f"second {number}" for number in range(5)]
    with pytest.raises(RunNotPossible):
        attach(None, cluster.events.append)


@pytest.mark.torch
@pytest.mark.long
def test_a_job_goes_on_when_the_editor_is_closed(cluster: Cluster) -> None:
    run = cluster.start(cluster.script(PLAIN), "4", launcher="python")
    cluster.wait_until(run, lambda: "second 1" in cluster.output_of(0))
    assert not run.leave()
    assert len(cluster.slurm.jobs()) == 1
    assert run.wait(1.0) is None
    cluster.slurm.wait_until_idle()
    result = attach(run.run_id, cluster.events.append).wait(LONGEST_SECONDS)
    assert result is not None
    assert result.outcome is Outcome.SUCCEEDED
    assert cluster.output_of(0)[-1] == "second 3"


@pytest.mark.torch
@pytest.mark.long
def test_a_controller_that_is_silent_for_a_while_has_not_forgotten_the_job(
    cluster: Cluster,
) -> None:
    run = cluster.start(cluster.script(PLAIN), "30", launcher="python")
    cluster.wait_until(run, lambda: "second 1" in cluster.output_of(0))
    controller = int((cluster.slurm.folder / "slurmctld.pid").read_text())
    os.kill(controller, signal.SIGSTOP)
    try:
        cluster.wait_until(run, lambda: any("does not answer" in each for each in cluster.said()))
    finally:
        os.kill(controller, signal.SIGCONT)
    result = run.wait(LONGEST_SECONDS)
    assert result is not None
    assert result.outcome is Outcome.SUCCEEDED
    assert cluster.output_of(0)[-1] == "second 29"


@pytest.mark.torch
@pytest.mark.long
@pytest.mark.parametrize(
    ("has_word", "outcome"), [(True, Outcome.SUCCEEDED), (False, Outcome.FAILED)]
)
def test_a_job_that_slurm_has_forgotten_is_explained_from_its_own_files(
    cluster: Cluster, has_word: bool, outcome: Outcome
) -> None:
    run = cluster.start(cluster.script(PLAIN), "2", launcher="python")
    cluster.wait_until(run, lambda: "second 1" in cluster.output_of(0))
    run.leave()
    cluster.slurm.wait_until_idle()
    here = cluster.folder / "cache" / "ranksafe" / "runs" / run.run_id
    state = json.loads((here / "target.json").read_text())
    # As after MinJobAge: a number that the controller does not know, and no accounting.
    (here / "target.json").write_text(json.dumps({**state, "number": "1"}))
    if not has_word:
        Path(state["directory"], "over.json").unlink()
    result = attach(run.run_id, cluster.events.append).wait(LONGEST_SECONDS)
    assert result is not None
    assert result.outcome is outcome
    assert [failure.kind for failure in result.failures] == ([] if has_word else ["run-lost"])
    if not has_word:
        assert "Slurm does not know any more" in result.failures[0].message


@pytest.mark.torch
@pytest.mark.long
def test_a_watcher_that_dies_is_replaced_and_a_cancel_meanwhile_is_not_lost(
    cluster: Cluster,
) -> None:
    run = cluster.start(cluster.script(PLAIN), "100", launcher="python")
    cluster.wait_until(run, lambda: "second 1" in cluster.output_of(0))
    conversation: Any = run._process._conversation  # type: ignore[attr-defined]
    conversation.kill()
    cluster.wait_until(run, lambda: any("goes on" in text for text in cluster.said()))
    run.cancel()
    result = run.wait(LONGEST_SECONDS)
    assert result is not None
    assert result.outcome is Outcome.CANCELLED
    assert any("reached again" in text for text in cluster.said())
    seconds = [line for line in cluster.output_of(0) if line.startswith("second")]
    assert seconds == [f"second {number}" for number in range(len(seconds))]
    assert cluster.slurm.jobs() == []


@pytest.mark.torch
@pytest.mark.long
def test_the_time_limit_is_told_with_the_line_that_was_reached(cluster: Cluster) -> None:
    cluster.describe(partition="short", time="1")
    script = cluster.script(PLAIN)
    result = cluster.run(script, "1000", launcher="python", timeout_seconds=300.0)
    assert result.outcome is Outcome.FAILED
    root = result.failures[0]
    assert root.kind == "time-limit"
    assert "time limit" in root.explanation.en
    assert root.line in (3, 4)


@pytest.mark.torch
@pytest.mark.long
def test_a_node_that_fails_is_no_fault_of_the_script(
    slurm_cluster_to_break: SlurmCluster,
    torch_python: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = cluster_of(slurm_cluster_to_break, torch_python, tmp_path, monkeypatch)
    cluster.describe(nodes=1)
    run = cluster.start(cluster.script(PLAIN), "1000", launcher="python")
    cluster.wait_until(run, lambda: "second 1" in cluster.output_of(0))
    threading.Timer(0.0, lambda: slurm_cluster_to_break.lose_node("n1")).start()
    result = run.wait(LONGEST_SECONDS)
    assert result is not None
    assert result.outcome is Outcome.FAILED
    assert result.failures[0].kind == "node-failure"
    assert "n1" in result.failures[0].message
