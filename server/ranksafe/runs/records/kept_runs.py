"""The runs that are kept: one by its id, or all of a project, the newest first."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ranksafe.localization import Language, Translated
from ranksafe.runs.directory import cache_directory, is_going_on
from ranksafe.runs.plain_files import finite, read_json
from ranksafe.runs.records.recorder import RESULT_FILE, START_FILE

RUNNING = "running"
DETACHED = "detached"
"""Outcome of a run on another host that nobody here follows, and whose end was not seen."""
LOST = "lost"
"""Outcome of a run whose owner ended before it could say how the run ended."""
_LARGEST_RECORD = 32 * 2**20
_MARKERS = (".git", "pyproject.toml", "ranksafe.toml", "setup.py", "setup.cfg")
_END_TAKES_SECONDS = 60.0
_OF_FAILURE = (
    "kind", "code", "rank", "message", "filename", "location", "end_location", "frames", "explanation",
    "root_cause",
)  # fmt: skip


class NoSuchRun(Exception):
    """No kept run, or more than one, goes by that name; `message` says which."""

    def __init__(self, message: Translated) -> None:
        super().__init__(message.en)
        self.message = message


@dataclass(frozen=True, slots=True)
class KeptRun:
    """A run that was recorded, as plain data; what is missing is empty."""

    directory: Path
    data: Mapping[str, Any]

    @property
    def run_id(self) -> str:
        """Also the name of its folder."""
        return self.directory.name

    @property
    def result(self) -> Mapping[str, Any]:
        """The object ``ranksafe run --output-format json`` printed; empty for a run without an end."""
        return _mapping(self.data.get("result"))

    @property
    def request(self) -> Mapping[str, Any]:
        """What was asked for."""
        return _mapping(self.data.get("request"))

    @property
    def environment(self) -> Mapping[str, Any]:
        """What it ran on."""
        return _mapping(self.data.get("environment"))

    @property
    def script(self) -> Path:
        """The script, absolute."""
        return Path(str(self.request.get("script", "")))

    @property
    def target(self) -> str:
        """Where it ran."""
        return str(self.request.get("target", ""))

    @property
    def started(self) -> float:
        """Seconds since the epoch; 0: unknown."""
        return finite(self.data.get("started")) or 0.0

    @property
    def seconds(self) -> float | None:
        """How long it took; None for a run without an end."""
        return finite(self.result.get("seconds"))

    @property
    def outcome(self) -> str:
        """A value of `ranksafe.runs.model.Outcome`, or `RUNNING`, `DETACHED`, or `LOST`."""
        if self.result:
            return str(self.result.get("outcome", LOST))
        if self._goes_on():
            return RUNNING
        return DETACHED if (self.directory / "remote.json").is_file() else LOST

    @property
    def failures(self) -> list[Mapping[str, Any]]:
        """Root cause first, in the JSON form of `ranksafe.runs.serialize`."""
        return [_mapping(failure) for failure in _list(self.result.get("failures"))]

    @property
    def command(self) -> list[str]:
        """The command line, secrets blotted out."""
        return [str(word) for word in _list(self.data.get("command"))]

    def sentences(self, key: str) -> list[Translated]:
        """``explanations``, ``limit_explanation``, ``modified`` or ``limits``."""
        return [translated(each) for each in _list(self.data.get(key))]

    def as_json(self, language: Language = "en") -> dict[str, Any]:
        """One line of the history."""
        meanings = self.sentences("explanations")
        failures = [{key: each.get(key) for key in _OF_FAILURE} for each in self.failures]
        for failure, meaning in zip(failures, meanings, strict=False):
            failure["explanation"] = meaning.in_language(language)
        return {
            "run_id": self.run_id,
            "started": self.started,
            "script": str(self.script),
            "target": self.target,
            "outcome": self.outcome,
            "seconds": self.seconds,
            "ranks": [
                {"rank": rank.get("rank"), "outcome": rank.get("outcome")}
                for rank in map(_mapping, _list(self.result.get("ranks")))
            ],
            "simulation_limit": _mapping(self.result.get("simulation_limit")).get("message"),
            "failures": failures,
            "steps": self.request.get("steps"),
            "unreached": _list(self.result.get("unreached")),
            "directory": str(self.directory),
        }

    def _goes_on(self) -> bool:
        """Somebody follows it, or has not had the time to write down an end that came."""
        if is_going_on(self.directory):
            return True
        owner = self.data.get("owner")
        if not isinstance(owner, int) or not _is_alive(owner):
            return False
        try:
            ended = (self.directory / "supervisor.json").stat().st_mtime
        except OSError:
            return False
        return time.time() - ended < _END_TAKES_SECONDS


def all_runs() -> list[KeptRun]:
    """Every recorded run of this user on this machine, the newest first."""
    try:
        folders = [entry for entry in (cache_directory() / "runs").iterdir() if entry.is_dir()]
    except OSError:
        return []
    found = (_load(folder) for folder in folders)
    runs = [run for run in found if run is not None]
    return sorted(runs, key=lambda run: (run.started, run.run_id), reverse=True)


def runs_of(folder: Path) -> list[KeptRun]:
    """The runs of the project around ``folder``, the newest first."""
    project = project_of(folder)
    return [run for run in all_runs() if run.script.is_relative_to(project)]


def project_of(folder: Path) -> Path:
    """The innermost folder around that is marked as a project's, else the folder itself."""
    folder = folder.absolute()
    for each in (folder, *folder.parents):
        if any((each / marker).exists() for marker in _MARKERS):
            return each
    return folder


def run_named(name: str | None, folder: Path, *, by_folder: bool = True) -> KeptRun:
    """A run by its id, the start or the end of its id, or (None) the last one of the project around ``folder``.

    With ``by_folder`` also by the run's own folder. Raises NoSuchRun.
    """
    if name is None:
        runs = runs_of(folder)
        if not runs:
            raise NoSuchRun(_NONE_YET.filled(folder=project_of(folder)))
        return runs[0]
    if by_folder and name and (Path(name) / RESULT_FILE).is_file():
        found = _load(Path(name))
        if found is not None:
            return found
    known = all_runs()
    exact = [run for run in known if run.run_id == name]
    similar = [run for run in known if run.run_id.startswith(name) or run.run_id.endswith(name)]
    chosen = exact or (similar if name else [])
    if len(chosen) != 1:
        raise NoSuchRun((_MANY if chosen else _UNKNOWN).filled(name=name))
    return chosen[0]


def started_text(run: KeptRun) -> str:
    """When it started, in local time."""
    try:
        moment = time.localtime(run.started)
    except (OSError, OverflowError, ValueError):
        return ""
    return time.strftime("%Y-%m-%d %H:%M:%S", moment) if run.started else ""


def outcome_text(outcome: str, language: Language) -> str:
    """An outcome in words."""
    known = OUTCOMES.get(outcome)
    return outcome if known is None else known.in_language(language)


def _load(directory: Path) -> KeptRun | None:
    for name in (RESULT_FILE, START_FILE):
        try:
            data = read_json(directory / name, _LARGEST_RECORD)
        except (OSError, ValueError):
            continue
        if isinstance(data, dict) and isinstance(data.get("request"), dict):
            return KeptRun(directory, data)
    return None


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def translated(value: Any) -> Translated:
    """A sentence of a record, which holds it in both languages."""
    pair = _mapping(value)
    english = str(pair.get("en", ""))
    return Translated(english, str(pair.get("zh_cn", english)))


OUTCOMES = {
    "succeeded": Translated("succeeded", "成功"),
    "failed": Translated("failed", "失败"),
    "silent-failure": Translated("wrong without an error", "未报错但结果有误"),
    "simulation-limit": Translated("limit of the simulation", "达到模拟的限制"),
    "cancelled": Translated("cancelled", "已取消"),
    "not-started": Translated("not started", "未能启动"),
    RUNNING: Translated("running", "正在运行"),
    DETACHED: Translated("end not seen yet", "尚未看到结束"),
    LOST: Translated("no end recorded", "没有记录到结束"),
}
_NONE_YET = Translated(
    "No run of the project {folder} is kept. Start one with: ranksafe run train.py",
    "没有保存项目 {folder} 的运行。用以下命令开始一次运行：ranksafe run train.py",
)
_UNKNOWN = Translated(
    "No kept run is called {name}; `ranksafe runs --all` lists them.",
    "没有名为 {name} 的已保存运行；`ranksafe runs --all` 会列出全部运行。",
)
_MANY = Translated(
    "Several kept runs match {name}; give more of the id.",
    "有多个已保存的运行与 {name} 匹配；请给出更完整的编号。",
)
