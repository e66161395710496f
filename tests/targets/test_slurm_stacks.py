"""``ranksafe stacks`` for a job that nobody follows."""

from __future__ import annotations

import json

import pytest
from ranksafe.cli.main import main
from ranksafe.runs.attach import attach, waiting_runs

from .slurm_user import PLAIN, Cluster


@pytest.mark.long
def test_ranks_of_a_job_that_nobody_follows(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.describe()
    script = cluster.script(PLAIN)
    run = cluster.start(script, "3000", launcher="python", cpu_ranks=True)
    cluster.wait_until(run, lambda: "second 1" in cluster.output_of(0))
    assert run.leave() is False
    capsys.readouterr()
    status = main(["stacks", "--output-format", "json"])
    told = capsys.readouterr()
    assert status == 0, told.err
    rank = json.loads(told.out)["ranks"][0]
    assert (str(script), 4) in {
        (each["filename"], each["line"]) for each in rank["threads"][0]["frames"]
    }
    assert rank["answered"]
    assert waiting_runs() == [run.run_id]
    again = attach(None, cluster.events.append)
    again.cancel()
    assert again.wait(60) is not None
    assert waiting_runs() == []
