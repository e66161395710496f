"""How tests are dealt out to workers: pytest itself, run on small files beside a copy of our conftest."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
RECORDS = """
import os, pytest
@pytest.mark.parametrize("number", range(5))
def test_which_worker(number):
    with open({record!r}, "a") as file:
        print({name!r}, os.environ["PYTEST_XDIST_WORKER"], file=file)
"""
FILES = ("runs/test_a", "runs/test_b", "targets/test_slurm_a", "targets/test_slurm_b", "test_c")


def test_a_file_and_what_needs_one_cluster_stay_together(tmp_path: Path) -> None:
    record = tmp_path / "record"
    for name in FILES:
        file = tmp_path / "tests" / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(RECORDS.format(record=str(record), name=name))
    shutil.copy(TESTS / "conftest.py", tmp_path / "tests")
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadfile", "tests"]
    environment = {**os.environ, "PYTEST_ADDOPTS": "--import-mode=importlib"}
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, stdout=subprocess.PIPE)
    ran = [line.split() for line in record.read_text().splitlines()]
    assert len(ran) == 5 * len(FILES)
    workers = {name: {worker for ran_name, worker in ran if ran_name == name} for name in FILES}
    assert all(len(each) == 1 for each in workers.values()), workers
    assert workers["targets/test_slurm_a"] == workers["targets/test_slurm_b"]
    assert len(set.union(*workers.values())) == 2
    (of_clusters,) = workers["targets/test_slurm_a"]
    assert next(name for name, worker in ran if worker == of_clusters).startswith("targets/")
