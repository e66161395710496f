"""Writes the record of a run, in two goes: what it starts from, and how it ended."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ranksafe.localization import Translated
from ranksafe.runs.launch_plan import Plan
from ranksafe.runs.model import RunRequest, RunResult
from ranksafe.runs.records.facts import facts_at_end, facts_at_start, given_gpus, request_facts
from ranksafe.runs.records.gpu_log import GpuLog
from ranksafe.runs.records.progress_log import ProgressLog
from ranksafe.runs.records.redaction import redacted, redacted_command
from ranksafe.runs.records.snapshot import (
    Snapshot,
    add_unchanged,
    read_snapshot,
    take_snapshot,
    write_snapshot,
)
from ranksafe.runs.serialize import to_json

logger = logging.getLogger(__name__)

SCHEMA = "ranksafe-record/1"
START_FILE = "start.json"
RESULT_FILE = "result.json"


class Recorder:
    """Of one run. A record that cannot be made is no reason to lose the run's result: nothing here raises."""

    def __init__(self, request: RunRequest, plan: Plan, directory: Path) -> None:
        self._request = request
        self._plan = plan
        self._directory = directory
        self._roots = [request.script.absolute().parent, plan.working_directory]
        self._started = time.time()
        self._snapshot = Snapshot()
        self._start: dict[str, Any] = {}
        self._progress = ProgressLog(directory)
        self._gpus = GpuLog(directory, given_gpus(request, plan))

    def begin(self) -> None:
        """The run has started: keep the code it runs, which may be edited from now on."""
        self._attempt(self._begin)

    def resume(self) -> None:
        """The run was begun by another process, which kept the code."""
        try:
            self._start = json.loads((self._directory / START_FILE).read_text(encoding="utf-8"))
            self._started = float(self._start["started"])
            self._snapshot = read_snapshot(self._directory)
        except Exception:
            logger.warning("the start of run %s is not known", self._directory, exc_info=True)

    def look(self) -> None:
        """The run goes on: note what its ranks have come to; cheap, may be called many times a second."""
        self._attempt(self._progress.look)

    def end(
        self, result: RunResult, modified: Sequence[Translated], limits: Sequence[Translated]
    ) -> None:
        """The run is over: keep its result, with every sentence in both languages."""
        self._attempt(self._gpus.end)
        self._attempt(lambda: self._progress.look(final=True))
        self._attempt(lambda: self._end(result, modified, limits))

    def _attempt(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception:
            logger.warning("run %s is not recorded as it should", self._directory, exc_info=True)

    def _begin(self) -> None:
        self._start = {
            "schema": SCHEMA,
            "run_id": self._directory.name,
            "owner": os.getpid(),
            "started": self._started,
            "command": redacted_command(self._plan.command),
            "request": request_facts(self._request),
            "environment": facts_at_start(self._request, self._plan),
        }
        _write(self._directory / START_FILE, self._start)
        self._snapshot = take_snapshot(self._request.script, self._roots)
        write_snapshot(self._snapshot, self._directory)
        self._gpus.begin()

    def _end(
        self, result: RunResult, modified: Sequence[Translated], limits: Sequence[Translated]
    ) -> None:
        frames = {
            frame.filename
            for failure in (*result.failures, *_limit(result))
            for frame in failure.frames
            if frame.in_user_code
        }
        value = {
            **self._start,
            "ended": time.time(),
            "result": redacted({**to_json(result), "command": redacted_command(result.command)}),
            "explanations": [in_both(failure.explanation) for failure in result.failures],
            "limit_explanation": [in_both(each.explanation) for each in _limit(result)],
            "modified": [in_both(sentence) for sentence in modified],
            "limits": [in_both(sentence) for sentence in limits],
        }
        value["environment"] = {
            **value.get("environment", {}),
            **facts_at_end(result.ranks, _python_of_ranks(self._directory)),
        }
        _write(self._directory / RESULT_FILE, value)
        add_unchanged(self._snapshot, sorted(frames), self._roots, self._started)
        write_snapshot(self._snapshot, self._directory)


def _limit(result: RunResult) -> tuple[Any, ...]:
    return () if result.simulation_limit is None else (result.simulation_limit,)


def in_both(text: Translated) -> dict[str, str]:
    """As a record holds a sentence."""
    return {"en": text.en, "zh_cn": text.zh_cn}


def _python_of_ranks(directory: Path) -> str | None:
    """As the first rank's journal has it."""
    for path in sorted(directory.glob("rank*.jsonl")):
        try:
            with path.open(encoding="utf-8", errors="replace") as file:
                python = json.loads(file.readline(2**20)).get("python")
        except (OSError, ValueError, AttributeError):
            continue
        if isinstance(python, str):
            return python
    return None


def _write(path: Path, value: dict[str, Any]) -> None:
    """In one step: who looks for finished runs sees a whole file or none."""
    temporary = path.with_suffix(".new")
    temporary.write_text(json.dumps(value), encoding="utf-8")
    temporary.replace(path)
