"""A host behind an sshd of the matrix's own, so that its ssh rows need nobody's machine."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.fault_matrix.changed_environment import changed_environment
from tests.targets.ssh_server import HOST, find_sshd, ssh_server

TARGET = f"ssh:{HOST}"
_DESCRIPTION = """\
[{host}]
interpreter = '{interpreter}'
folder = '{folder}/far side'
despite-slurm = true
"""


@contextmanager
def own_host(interpreter: Path) -> Iterator[None]:
    """`TARGET` is this host until the end. Raises SystemExit where no sshd is installed."""
    if find_sshd() is None:
        raise SystemExit("needs sshd: apt-get install openssh-server")
    with (
        tempfile.TemporaryDirectory(prefix="ranksafe-matrix-") as folder,
        ssh_server(Path(folder) / "sshd") as server,
        changed_environment(
            RANKSAFE_SSH_CONFIG=str(server.config), XDG_CONFIG_HOME=f"{folder}/config"
        ),
    ):
        settings = Path(folder) / "config" / "ranksafe" / "hosts.toml"
        settings.parent.mkdir(parents=True)
        settings.write_text(
            _DESCRIPTION.format(host=HOST, interpreter=interpreter, folder=folder),
            encoding="utf-8",
        )
        yield
