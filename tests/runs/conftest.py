"""Real runs: scripts of this folder, started the way users start them, in a cache folder of their own."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from ranksafe.runs.model import Failure, RunEvent, RunRequest, RunResult
from ranksafe.runs.start import start_run

SCRIPTS = Path(__file__).parent / "scripts"
LONGEST_RUN_SECONDS = 180.0
_NO_TORCH = (
    "RANKSAFE_TEST_TORCH_PYTHON names no Python with torch and accelerate (make test sets it up)"
)


@pytest.fixture(scope="session")
def torch_python() -> Path:
    """The interpreter that has torch, accelerate and transformers."""
    python = Path(os.environ.get("RANKSAFE_TEST_TORCH_PYTHON", "missing"))
    if not python.is_file():
        if os.environ.get("CI") == "true":
            pytest.fail(_NO_TORCH)
        pytest.skip(_NO_TORCH)
    return python


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Runs leave their files here instead of in the user's cache."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    return folder


@dataclass(frozen=True)
class Finished:
    """A run that is over."""

    result: RunResult
    events: list[RunEvent]

    @property
    def root(self) -> Failure:
        """The failure that is blamed."""
        return self.result.failures[0]

    @property
    def blamed_line(self) -> str:
        """The source text the root failure is drawn on."""
        assert self.root.filename is not None
        assert self.root.line is not None
        return (
            Path(self.root.filename)
            .read_text(encoding="utf-8")
            .splitlines()[self.root.line - 1]
            .strip()
        )

    def output_of(self, rank: int) -> list[str]:
        """The lines a rank wrote, both streams."""
        return [
            line
            for event in self.events
            if event.kind == "output" and event.rank == rank
            for line in event.lines
        ]


StartRun = Callable[..., Finished]


_finished: dict[tuple[str, ...], Finished] = {}


@pytest.fixture
def run(torch_python: Path) -> StartRun:
    """Run a script of `scripts` on two CPU ranks to its end; equal runs are made once, they take seconds."""

    def to_the_end(script: str, *arguments: str, **fields: Any) -> Finished:
        if fields:
            return start(script, *arguments, **fields)
        key = (script, *arguments)
        if key not in _finished:
            _finished[key] = start(script, *arguments)
        return _finished[key]

    def start(script: str, *arguments: str, **fields: Any) -> Finished:
        events: list[RunEvent] = []
        given = {"cpu_ranks": True, "timeout_seconds": LONGEST_RUN_SECONDS, **fields}
        request = RunRequest(
            script=SCRIPTS / script,
            arguments=arguments,
            interpreter=torch_python,
            working_directory=SCRIPTS,
            **given,
        )
        result = start_run(request, events.append).wait()
        assert result is not None
        return Finished(result, events)

    return to_the_end
