"""A conda environment as the interpreter of a job."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from ranksafe.runs.errors import RunNotPossible
from ranksafe.runs.model import Outcome
from ranksafe.runs.targets.slurm.settings import clusters_file

from .slurm_user import Cluster


def _describe(cluster: Cluster, conda: str) -> None:
    cluster.describe()
    lines = clusters_file().read_text(encoding="utf-8").splitlines()
    kept = [line for line in lines if not line.startswith("interpreter")]
    text = "\n".join([*kept, f"conda = '{conda}'", ""])
    clusters_file().write_text(text, encoding="utf-8")


def test_a_job_runs_in_the_environment_that_is_named(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = tmp_path / "my envs" / "train 数据"
    (prefix / "conda-meta").mkdir(parents=True)
    subprocess.run(
        ["/usr/bin/env", "python3", "-m", "venv", "--without-pip", str(prefix)], check=True
    )
    monkeypatch.setenv("CONDA_ENVS_DIRS", str(tmp_path / "my envs"))
    _describe(cluster, "trian")
    script = cluster.script("import sys\nprint('prefix', sys.prefix)\n")
    with pytest.raises(RunNotPossible) as caught:
        cluster.run(script, launcher="python", cpu_ranks=True)
    assert str(prefix) in caught.value.message.en
    _describe(cluster, "train 数据")
    result = cluster.run(script, launcher="python", cpu_ranks=True)
    assert result.outcome is Outcome.SUCCEEDED, result
    assert f"prefix {prefix}" in [event.text for event in cluster.events]
