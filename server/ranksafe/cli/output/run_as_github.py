"""A run's result as workflow commands of GitHub Actions."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ranksafe.cli.output.github import command
from ranksafe.localization import Language, Translated
from ranksafe.runs.model import Failure, Outcome, RunResult

_LIMIT = Translated("simulation limit", "模拟的限制")
_RANK = Translated("rank {rank}: {message}", "rank {rank} 上：{message}")
_MODIFIED = Translated("how it was rehearsed", "预演方式")
_NOT_SHOWN = Translated("what this run does not show", "此次运行未能体现的内容")
_NOT_STARTED = Translated("not started", "未能启动")


def render(result: RunResult, language: Language) -> str:
    """Errors for root causes, warnings for what followed from them, notices for everything that is no failure."""
    return "".join(_lines(result, language))


def not_started(message: str) -> str:
    """The error of a run that could not be started."""
    return command("error", {"title": f"ranksafe: {_NOT_STARTED.en}"}, message)


def _lines(result: RunResult, language: Language) -> Iterator[str]:
    for failure in result.failures:
        title = "ranksafe" if failure.code is None else f"ranksafe ({failure.code})"
        yield _placed("error" if failure.root_cause else "warning", title, failure, language)
    if result.simulation_limit is not None:
        title = f"ranksafe: {_LIMIT.in_language(language)}"
        yield _placed("notice", title, result.simulation_limit, language)
    for heading, sentences in ((_MODIFIED, result.modified), (_NOT_SHOWN, result.limits)):
        if sentences and result.outcome is not Outcome.CANCELLED:
            title = f"ranksafe: {heading.in_language(language)}"
            yield command("notice", {"title": title}, "\n".join(sentences))


def _placed(level: str, title: str, failure: Failure, language: Language) -> str:
    properties: dict[str, object] = {"title": title}
    if failure.filename is not None and failure.line is not None:
        properties |= {"file": in_checkout(failure.filename), "line": failure.line}
        for name, value in (
            ("col", failure.column),
            ("endLine", failure.end_line),
            ("endColumn", failure.end_column),
        ):
            if value is not None:
                properties[name] = value
    message = failure.message
    if failure.rank is not None:
        message = _RANK.filled(rank=failure.rank, message=message).in_language(language)
    text = f"{message}\n{failure.explanation.in_language(language)}"
    return command(level, properties, text)


def in_checkout(filename: str) -> str:
    """GitHub finds files relative to the checkout; others are named as they are."""
    root = Path(os.environ.get("GITHUB_WORKSPACE") or Path.cwd())
    path = Path(filename)
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()
