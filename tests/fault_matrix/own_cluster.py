"""A Slurm cluster of two nodes for the matrix alone, so that a node of it may be taken away."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ranksafe.runs.targets.slurm.settings import clusters_file

from tests.fault_matrix.changed_environment import changed_environment
from tests.targets.slurm_cluster import SlurmCluster, missing_program, running_cluster

TARGET = "slurm:own"
_DESCRIPTION = """\
[own]
interpreter = '{interpreter}'
folder = '{folder}/shared'
nodes = 2
gpus-per-node = 1
poll-seconds = 1
"""


@contextmanager
def own_cluster(interpreter: Path) -> Iterator[SlurmCluster]:
    """`TARGET` is this cluster until the end. Raises SystemExit where Slurm is not installed."""
    missing = missing_program()
    if missing is not None:
        raise SystemExit(f"needs {missing}: apt-get install slurm-wlm munge")
    with (
        tempfile.TemporaryDirectory(prefix="ranksafe-matrix-") as folder,
        running_cluster() as own,
        changed_environment(SLURM_CONF=str(own.configuration), XDG_CONFIG_HOME=f"{folder}/config"),
    ):
        clusters_file().parent.mkdir(parents=True)
        clusters_file().write_text(
            _DESCRIPTION.format(interpreter=interpreter, folder=folder), encoding="utf-8"
        )
        yield own
