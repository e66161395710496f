"""Workflow commands of GitHub Actions, which become annotations on the changed lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ranksafe.checker.finding import Finding, Level
from ranksafe.checker.registry import Registry
from ranksafe.cli.results import FileResult
from ranksafe.localization import Language

_WORDS = {Level.ERROR: "error", Level.WARNING: "warning", Level.INFORMATION: "notice"}


def render(results: Sequence[FileResult], registry: Registry, language: Language) -> str:  # noqa: ARG001
    """One command per finding; GitHub finds files relative to the checkout, where the check runs."""
    return "".join(
        _command(result, item.finding, language) for result in results for item in result.reported
    )


def _command(result: FileResult, finding: Finding, language: Language) -> str:
    cell, start = result.place(finding.range.start)
    end = finding.range.end
    properties: dict[str, object] = {
        "title": f"ranksafe ({finding.code})",
        "file": result.path.as_posix(),
    }
    text = f"{finding.code} {finding.message.in_language(language)}"
    if cell is None:
        properties |= {
            "line": start.line + 1,
            "col": start.column + 1,
            "endLine": end.line + 1,
            "endColumn": end.column + 1,
        }
    else:
        # GitHub counts lines of the notebook's JSON, which nobody reads.
        text = f"cell {cell}:{start.line + 1}:{start.column + 1}: {text}"
    return command(_WORDS[finding.level], properties, text)


def command(level: str, properties: Mapping[str, object], text: str) -> str:
    """One line for the runner. ``level``: ``error``, ``warning`` or ``notice``; lines and columns count from 1."""
    listed = ",".join(f"{name}={_property(str(value))}" for name, value in properties.items())
    return f"::{level} {listed}::{_message(text)}\n"


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
