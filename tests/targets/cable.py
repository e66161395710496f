"""Two network namespaces with a cable between them: a host that can be lost without a word."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from .ssh_server import SshServer, ssh_server

_ADDRESS = "10.77.7.2"
_IMPATIENT = (
    "BatchMode=yes",
    "ConnectTimeout=3",
    "ServerAliveCountMax=2",
    "ServerAliveInterval=1",
    "LogLevel=ERROR",
)


@dataclass
class Cable:
    """Two network namespaces with a cable between them."""

    near: str
    far: str

    def set(self, state: str) -> None:
        _ip("-n", self.near, "link", "set", "rs-near", state)

    def plug_in(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Have ssh connect through it, and notice soon that nothing comes."""
        program = folder / "bin" / "ssh"
        program.parent.mkdir()
        program.write_text(
            f'#!/bin/sh\nexec ip netns exec {self.near} {shutil.which("ssh")} "$@"\n'
        )
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
        monkeypatch.setattr("ranksafe.runs.hosts.ssh._OPTIONS", _IMPATIENT)

    @contextlib.contextmanager
    def server(self, folder: Path) -> Iterator[SshServer]:
        """An sshd at its far end."""
        inside = ("ip", "netns", "exec", self.far)
        with ssh_server(folder / "sshd", address=_ADDRESS, port=2222, prefix=inside) as server:
            yield server

    def end_far_side(self) -> None:
        """The far host is switched off: every process of it is gone."""
        answer = subprocess.run(
            ["ip", "netns", "pids", self.far], capture_output=True, text=True, check=True
        )
        for pid in answer.stdout.split():
            with contextlib.suppress(OSError):
                os.kill(int(pid), signal.SIGKILL)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


@pytest.fixture
def cable() -> Iterator[Cable]:
    if os.getuid() != 0 or shutil.which("ip") is None:
        pytest.skip("needs root and ip: sudo, apt-get install iproute2")
    both = Cable(f"rs-near-{os.getpid()}", f"rs-far-{os.getpid()}")
    try:
        _ip("netns", "add", both.near)
    except subprocess.CalledProcessError:
        pytest.skip("network namespaces are not permitted here")
    try:
        _ip("netns", "add", both.far)
        _ip(
            "link",
            "add",
            "rs-near",
            "netns",
            both.near,
            "type",
            "veth",
            "peer",
            "name",
            "rs-far",
            "netns",
            both.far,
        )
        for name, device, address in (
            (both.near, "rs-near", "10.77.7.1/24"),
            (both.far, "rs-far", f"{_ADDRESS}/24"),
        ):
            _ip("-n", name, "addr", "add", address, "dev", device)
            _ip("-n", name, "link", "set", device, "up")
            _ip("-n", name, "link", "set", "lo", "up")
        yield both
    finally:
        _ip("netns", "del", both.near)
        subprocess.run(["ip", "netns", "del", both.far], capture_output=True, check=False)
