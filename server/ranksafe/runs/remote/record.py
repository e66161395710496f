"""What is kept here of a run on another host, so that it is found again: no secrets, no values of variables."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal

from ranksafe.localization import Language, Translated
from ranksafe.runs.launch_plan import Plan
from ranksafe.runs.model import RunRequest
from ranksafe.runs.plain_files import read_json
from ranksafe.runs.records.redaction import redacted_command

FILE: Final = "remote.json"
_LARGEST_RECORD: Final = 16 * 2**20


@dataclass(frozen=True, slots=True)
class RemoteRun:
    """A run on a host."""

    target: str
    host: str
    directory: str
    """Of the run, on the host."""
    project: str
    """The project's folder on the host."""
    root: str
    """The project's folder here."""
    script: str
    """Here."""
    working_directory: str
    """Here."""
    lease_seconds: float
    stop_when_lost: bool
    command: tuple[str, ...]
    ranks: int | None
    steps: int | None
    started: float
    """Seconds since 1970."""
    modified: tuple[tuple[str, str], ...]
    limits: tuple[tuple[str, str], ...]
    timeout_seconds: float | None = None
    on_hang: Literal["stop", "report"] = "stop"
    patience_seconds: float = 15 * 60.0
    """How long the host is sought when it is lost, before the run is left to itself."""
    finished: bool = False
    """Whether its end was seen here."""

    def plan(self) -> Plan:
        """As when it was started, without its environment."""
        return Plan(
            self.command,
            {},
            Path(self.working_directory),
            self.ranks,
            tuple(Translated(*each) for each in self.modified),
            tuple(Translated(*each) for each in self.limits),
        )

    def request(self, language: Language) -> RunRequest:
        """As when it was started, as far as its end depends on it."""
        return RunRequest(
            Path(self.script),
            self.target,
            steps=self.steps,
            working_directory=Path(self.working_directory),
            timeout_seconds=self.timeout_seconds,
            on_hang=self.on_hang,
            stop_when_lost=self.stop_when_lost,
            language=language,
        )


def sentences(texts: Sequence[Translated]) -> tuple[tuple[str, str], ...]:
    """Sentences as they are kept."""
    return tuple((each.en, each.zh_cn) for each in texts)


def write_record(run: RemoteRun, directory: Path) -> None:
    """Keep ``run`` in its folder here. Raises OSError."""
    path = directory / (FILE + ".new")
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        # The script's arguments may hold a token.
        json.dump({**asdict(run), "command": redacted_command(run.command)}, file)
    path.replace(directory / FILE)


def read_record(directory: Path) -> RemoteRun | None:
    """The record in a run's folder; None where there is none that can be read."""
    try:
        value: dict[str, Any] = read_json(directory / FILE, _LARGEST_RECORD)
        for key in ("command", "modified", "limits"):
            value[key] = tuple(each if key == "command" else tuple(each) for each in value[key])
        return RemoteRun(**value)
    except (OSError, ValueError, TypeError, KeyError):
        return None
