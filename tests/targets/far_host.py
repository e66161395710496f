"""A host behind a private sshd, a project here, and what a test asks of both."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from ranksafe.runs.model import RunEvent, RunRequest, RunResult
from ranksafe.runs.start import Run, start_run

from .ssh_server import HOST, SshServer, ssh_server

TARGET = f"ssh:{HOST}"


@pytest.fixture(scope="session")
def ssh_host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServer]:
    with ssh_server(tmp_path_factory.mktemp("sshd")) as running:
        yield running


class Far:
    """The host's files, and a project here."""

    def __init__(self, folder: Path, server: SshServer) -> None:
        self.server = server
        self.base = folder / "far side"
        self.project = folder / "my project"
        self.project.mkdir()
        self.settings = folder / "config" / "ranksafe" / "hosts.toml"
        self.settings.parent.mkdir(parents=True)
        self.config = folder / "ssh_config"
        self.connect()
        self.cache = folder / "cache" / "ranksafe"
        self.events: list[RunEvent] = []
        self.settle()

    def settle(self, *lines: str, interpreter: str = sys.executable) -> None:
        own = [f'folder = "{self.base}"', f'interpreter = "{interpreter}"', "despite-slurm = true"]
        self.settings.write_text("\n".join([f"[{HOST}]", *own, *lines]) + "\n", encoding="utf-8")

    def write(self, name: str, text: str) -> Path:
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def start(self, script: Path, **more: object) -> Run:
        options = {"working_directory": self.project, "launcher": "python", **more}
        request = RunRequest(script, TARGET, **options)  # type: ignore[arg-type]
        return start_run(request, self.events.append)

    def run(self, script: Path, **more: object) -> RunResult:
        result = self.start(script, **more).wait(120)
        assert result is not None
        return result

    def said(self, kind: str) -> list[str]:
        return [line for event in self.events if event.kind == kind for line in event.lines]

    def report(self, run_id: str) -> dict[str, int]:
        """The supervisor's, on the host."""
        value: dict[str, int] = json.loads(
            (self.run_folder(run_id) / "supervisor.json").read_text()
        )
        return value

    def cut_off(self) -> None:
        """Break the connections, and let no new one be made."""
        self.config.write_text("Host *\n  ProxyCommand false\n")
        self.server.cut()

    def connect(self) -> None:
        """Connections can be made again."""
        self.config.write_text(self.server.config.read_text())

    def run_folder(self, run_id: str) -> Path:
        return self.base / "runs" / run_id


@pytest.fixture
def far(ssh_host: SshServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Far:
    monkeypatch.setenv("RANKSAFE_SSH_CONFIG", str(tmp_path / "ssh_config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    return Far(tmp_path, ssh_host)


def until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def processes_with(mark: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                command = (entry / "cmdline").read_bytes()
                state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
            except OSError:
                continue
            if mark.encode() in command and state != "Z":
                found.append(int(entry.name))
    return found
