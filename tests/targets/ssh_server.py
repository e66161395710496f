"""A private sshd on the loopback address, with keys of its own: a real host for the tests of remote runs."""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

HOST = "gpu-box"
"""Its name in the private ssh configuration."""


def find_sshd() -> str | None:
    """sshd is not on every user's PATH."""
    return shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


@dataclass
class SshServer:
    """A running sshd."""

    folder: Path
    process: subprocess.Popen[bytes]
    port: int
    config: Path
    """For the client: knows the server as `HOST`, and its key."""

    def sessions(self) -> list[int]:
        """The processes that serve connections."""
        return _children(self.process.pid)

    def cut(self) -> None:
        """Break every connection; the server goes on."""
        for pid in self.sessions():
            for below in _children(pid):
                with contextlib.suppress(OSError):
                    os.kill(below, signal.SIGKILL) if _is_sshd(below) else None
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)

    @property
    def programs(self) -> Path:
        """First on the host's PATH."""
        return self.folder / "bin"

    def client_config(self, name: str, *lines: str) -> Path:
        """Another configuration for the client: this server's, with ``lines`` before it."""
        path = self.folder / name
        path.write_text("\n".join(lines) + "\n" + self.config.read_text(), encoding="utf-8")
        return path


@contextlib.contextmanager
def ssh_server(
    folder: Path,
    *,
    environment: dict[str, str] | None = None,
    settings: Sequence[str] = (),
    address: str = "127.0.0.1",
    port: int | None = None,
    prefix: Sequence[str] = (),
) -> Iterator[SshServer]:
    """Start one and end it, with all it started in its sessions. ``prefix``: what starts it (a network namespace)."""
    program = find_sshd()
    if program is None:
        pytest.skip("needs sshd: apt-get install openssh-server")
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    for key in ("host", "user"):
        if not (folder / key).exists():
            _key(folder / key)
    if os.getuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    port = port or _free_port()
    (folder / "bin").mkdir(exist_ok=True)
    path = f"{folder / 'bin'}:{os.environ['PATH']}"
    values = {"RANKSAFE_TEST_HOST": "yes", "PATH": path, **(environment or {})}
    set_environment = " ".join(f'"{name}={value}"' for name, value in values.items())
    _write(
        folder / "sshd_config",
        f"Port {port}",
        f"ListenAddress {address}",
        f"HostKey {folder / 'host'}",
        f"AuthorizedKeysFile {folder / 'user.pub'}",
        "PidFile none",
        "UsePAM no",
        "PasswordAuthentication no",
        "KbdInteractiveAuthentication no",
        "PermitRootLogin prohibit-password",
        "StrictModes no",
        "MaxStartups 100",
        f"SetEnv {set_environment}",
        *settings,
    )
    host_key = " ".join((folder / "host.pub").read_text().split()[:2])
    _write(folder / "known_hosts", f"[{address}]:{port} {host_key}")
    config = folder / "ssh_config"
    _write(
        config,
        f"Host {HOST}",
        f"  HostName {address}",
        f"  Port {port}",
        "Host *",
        f"  User {getpass.getuser()}",
        f"  IdentityFile {folder / 'user'}",
        "  IdentitiesOnly yes",
        f"  UserKnownHostsFile {folder / 'known_hosts'}",
        "  GlobalKnownHostsFile /dev/null",
        "  StrictHostKeyChecking yes",
    )
    log = folder / "sshd.log"
    # A server that ran here before has said that it listens, too.
    log.unlink(missing_ok=True)
    process = subprocess.Popen(
        [*prefix, program, "-D", "-f", str(folder / "sshd_config"), "-E", str(log)],
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    server = SshServer(folder, process, port, config)
    try:
        _wait_for(log, process)
        yield server
    finally:
        server.cut()
        process.terminate()
        process.wait()


def _write(path: Path, *lines: str) -> None:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _key(path: Path) -> None:
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(log: Path, process: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        text = log.read_text() if log.exists() else ""
        if "Server listening" in text:
            return
        if process.poll() is not None:
            raise AssertionError(f"sshd did not start: {text}")
        time.sleep(0.05)
    raise AssertionError("sshd does not listen")


def _children(pid: int) -> list[int]:
    answer = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True
    )
    return [int(each) for each in answer.stdout.split()]


def _is_sshd(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().startswith("sshd")
    return False
