"""The template for GitLab: its script, run by a shell with its variables; GitLab reads the report that it leaves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from environments import ROOT

from tests.cli.conftest import DEVICE_MAP

TEMPLATE = yaml.safe_load((ROOT / "ci/gitlab.yml").read_text(encoding="utf-8"))
JOB = TEMPLATE["ranksafe"]


@pytest.mark.parametrize(
    ("variables", "status"), [({}, 1), ({"RANKSAFE_ARGS": "--fail-on error --gpus 4"}, 0)]
)
def test_the_report_is_left_where_gitlab_looks(
    tmp_path: Path, variables: dict[str, str], status: int
) -> None:
    (tmp_path / "train.py").write_text(DEVICE_MAP, encoding="utf-8")
    install, check = JOB["script"]
    assert install == 'pip install --quiet "$RANKSAFE_PACKAGE"'
    search = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {"PATH": search, "HOME": str(tmp_path), **TEMPLATE["variables"], **variables}
    words = ["sh", "-e", "-c", check]
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, check=False)
    assert done.returncode == status, done.stderr
    report = tmp_path / JOB["artifacts"]["reports"]["codequality"]
    (entry,) = json.loads(report.read_text(encoding="utf-8"))
    assert entry["location"] == {"path": "train.py", "lines": {"begin": 5}}
    assert JOB["artifacts"]["when"] == "always"
