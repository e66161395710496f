"""What changed between two runs: code, versions, launch, outcome, speed."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ranksafe.localization import Translated
from ranksafe.runs.records.kept_runs import OUTCOMES, KeptRun
from ranksafe.runs.records.snapshot import read_snapshot
from ranksafe.runs.records.timeline import load_timeline

MOST_DIFF_LINES = 2000
_PORT = re.compile(r"(?<=port[= ])\d+")
_REQUEST_KEYS = (
    "script",
    "target",
    "gpus",
    "cpu_ranks",
    "steps",
    "arguments",
    "config_file",
    "interpreter",
    "working_directory",
    "launcher",
    "rehearsal",
)
_ENVIRONMENT_KEYS = ("ranksafe", "python", "platform", "hosts", "gpus", "environment_names")


@dataclass(frozen=True, slots=True)
class Change:
    """One fact that is not the same."""

    section: str
    """``outcome``, ``launch``, ``version`` or ``environment``."""
    name: str
    """What it is called in the records (``torch``, ``gpus``)."""
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs side by side; ``before`` is the one that started first or was named first."""

    before: KeptRun
    after: KeptRun
    changes: tuple[Change, ...]
    code: tuple[str, ...]
    """A unified diff of the files both runs kept, and of those that only one did; at most `MOST_DIFF_LINES`."""
    speed: tuple[float | None, float | None]
    """Optimizer steps per second of each, by its slowest rank."""

    @property
    def is_same(self) -> bool:
        """Nothing differs but the times."""
        return not self.changes and not self.code

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "schema": "ranksafe-comparison/1",
            "runs": [self.before.as_json(), self.after.as_json()],
            "changes": [
                {
                    "section": change.section,
                    "name": change.name,
                    "before": change.before,
                    "after": change.after,
                }
                for change in self.changes
            ],
            "seconds": [self.before.seconds, self.after.seconds],
            "steps_per_second": list(self.speed),
            "code": list(self.code),
        }


def compare(before: KeptRun, after: KeptRun) -> Comparison:
    """What changed from one run to the other."""
    changes = [
        *_outcome_changes(before, after),
        *_changes("launch", before.request, after.request, _REQUEST_KEYS),
        *_command_change(before, after),
        *_package_changes(before, after),
        *_changes("environment", before.environment, after.environment, _ENVIRONMENT_KEYS),
        *_commit_change(before, after),
    ]
    speeds = (
        load_timeline(before.directory).steps_per_second,
        load_timeline(after.directory).steps_per_second,
    )
    return Comparison(before, after, tuple(changes), tuple(code_changes(before, after)), speeds)


def code_changes(before: KeptRun, after: KeptRun) -> list[str]:
    """A unified diff of the two snapshots, file by file."""
    old, new = read_snapshot(before.directory).named(), read_snapshot(after.directory).named()
    lines: list[str] = []
    for name in sorted({*old, *new}):
        was, now = old.get(name), new.get(name)
        if was is not None and now is not None and was.digest == now.digest:
            continue
        lines += difflib.unified_diff(
            [] if was is None else was.text.splitlines(),
            [] if now is None else now.text.splitlines(),
            f"{name} ({before.run_id})",
            f"{name} ({after.run_id})",
            lineterm="",
        )
    return lines[:MOST_DIFF_LINES]


def section_text(section: str) -> Translated:
    """The heading of a section of changes."""
    return _SECTIONS[section]


def name_text(change: Change) -> Translated:
    """What a fact is called."""
    return _NAMES.get(change.name, Translated(change.name, change.name))


def value_texts(change: Change) -> tuple[Translated, Translated]:
    """Both values; an outcome in words, nothing as a dash."""
    known = OUTCOMES if change.name == "outcome" else {}
    before, after = (
        known.get(value, Translated(value or "–", value or "–"))
        for value in (change.before, change.after)
    )
    return before, after


def _outcome_changes(before: KeptRun, after: KeptRun) -> list[Change]:
    changes = []
    if before.outcome != after.outcome:
        changes.append(Change("outcome", "outcome", before.outcome, after.outcome))
    reasons = [_reason(run) for run in (before, after)]
    if reasons[0] != reasons[1]:
        changes.append(Change("outcome", "failure", *reasons))
    return changes


def _reason(run: KeptRun) -> str:
    """Kind, message, rank and place of the root cause."""
    first = next(iter(run.failures), None)
    if first is None:
        return ""
    message = str(first.get("message") or first.get("kind") or "").partition("\n")[0]
    location = first.get("location")
    row = location.get("row") if isinstance(location, dict) else None
    name = str(first.get("filename") or "").rpartition("/")[2]
    place = ", ".join(
        part
        for part in (
            f"rank {first['rank']}" if first.get("rank") is not None else "",
            f"{name}:{row}" if name and row else "",
        )
        if part
    )
    return f"{message} ({place})" if place else message


def _changes(
    section: str, before: Mapping[str, Any], after: Mapping[str, Any], keys: tuple[str, ...]
) -> list[Change]:
    return [
        Change(section, key, _shown(before.get(key)), _shown(after.get(key)))
        for key in keys
        if before.get(key) != after.get(key)
    ]


def _command_change(before: KeptRun, after: KeptRun) -> list[Change]:
    """Ports are chosen anew each time and are no change."""
    commands = [shlex.join(run.command) for run in (before, after)]
    if _PORT.sub("", commands[0]) == _PORT.sub("", commands[1]):
        return []
    return [Change("launch", "command", *commands)]


def _package_changes(before: KeptRun, after: KeptRun) -> list[Change]:
    old, new = before.environment.get("packages"), after.environment.get("packages")
    if not isinstance(old, dict) or not isinstance(new, dict):
        return []
    return _changes("version", old, new, tuple(sorted({*old, *new})))


def _commit_change(before: KeptRun, after: KeptRun) -> list[Change]:
    commits = []
    for run in (before, after):
        git = run.environment.get("git")
        commits.append(str(git.get("commit", ""))[:12] if isinstance(git, dict) else "")
    return [Change("environment", "git", *commits)] if commits[0] != commits[1] else []


def _shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, (list, tuple)) and all(isinstance(each, str) for each in value):
        return shlex.join(value)
    if isinstance(value, (list, tuple)):
        return "; ".join(_shown(each) for each in value)
    if isinstance(value, dict):
        return ", ".join(f"{key}={_shown(each)}" for key, each in value.items() if each is not None)
    return str(value)


_SECTIONS = {
    "outcome": Translated("Outcome", "结果"),
    "launch": Translated("Launch", "启动方式"),
    "version": Translated("Versions", "版本"),
    "environment": Translated("Environment", "环境"),
}
_NAMES = {
    "outcome": Translated("outcome", "结果"),
    "failure": Translated("failure", "故障"),
    "script": Translated("script", "脚本"),
    "target": Translated("target", "目标"),
    "gpus": Translated("GPUs", "GPU"),
    "cpu_ranks": Translated("CPU ranks", "CPU 上的 rank"),
    "steps": Translated("steps", "步数"),
    "arguments": Translated("arguments", "参数"),
    "config_file": Translated("accelerate configuration", "accelerate 配置"),
    "interpreter": Translated("interpreter", "解释器"),
    "working_directory": Translated("working directory", "工作目录"),
    "launcher": Translated("launcher", "启动器"),
    "rehearsal": Translated("rehearsal", "预演"),
    "command": Translated("command", "命令"),
    "python": Translated("Python", "Python"),
    "platform": Translated("platform", "平台"),
    "hosts": Translated("hosts", "主机"),
    "environment_names": Translated("environment variables", "环境变量"),
    "git": Translated("commit", "提交"),
}
