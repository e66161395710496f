"""The interpreter with torch; see ``tools/environments.py torch``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from .cable import cable  # noqa: F401 - a fixture
from .far_host import far, ssh_host  # noqa: F401 - fixtures
from .slurm_cluster import SlurmCluster, missing_program, running_cluster
from .slurm_user import cluster, small_disk  # noqa: F401 - fixtures


@pytest.fixture(scope="session")
def torch_python() -> Path:
    chosen = os.environ.get("RANKSAFE_TEST_TORCH_PYTHON")
    if not chosen:
        pytest.skip("needs torch: RANKSAFE_TEST_TORCH_PYTHON=$(python tools/environments.py torch)")
    return Path(chosen)


@pytest.fixture(scope="session")
def slurm_cluster() -> Iterator[SlurmCluster]:
    """A Slurm cluster of two nodes on this machine."""
    yield from _cluster()


@pytest.fixture
def slurm_cluster_to_break() -> Iterator[SlurmCluster]:
    """The same, for one test alone."""
    yield from _cluster()


def _cluster() -> Iterator[SlurmCluster]:
    missing = missing_program()
    if missing is not None:
        pytest.skip(f"needs {missing}: apt-get install slurm-wlm munge")
    with running_cluster() as started:
        yield started
