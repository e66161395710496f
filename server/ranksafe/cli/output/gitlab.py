"""A Code Quality report of GitLab, which shows its entries on the merge request and in the changed lines."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ranksafe.checker.finding import Finding, Level
from ranksafe.checker.registry import Registry
from ranksafe.cli.results import FileResult
from ranksafe.localization import Language

_SEVERITIES = {Level.ERROR: "critical", Level.WARNING: "major", Level.INFORMATION: "info"}


def render(results: Sequence[FileResult], registry: Registry, language: Language) -> str:  # noqa: ARG001
    """One entry per finding. Paths are relative to where the check runs, which must be the top of the repository."""
    seen: Counter[str] = Counter()
    entries = [
        _entry(result, item.finding, language, seen)
        for result in results
        for item in result.reported
    ]
    return json.dumps(entries, ensure_ascii=False, indent=2) + "\n"


def _entry(
    result: FileResult, finding: Finding, language: Language, seen: Counter[str]
) -> dict[str, Any]:
    path = _in_repository(result.path)
    cell, start = result.place(finding.range.start)
    place = "" if cell is None else f"cell {cell}:{start.line + 1}:{start.column + 1}: "
    # Without the line, so that a finding that only moved is not a new one; GitLab shows equal fingerprints once.
    what = f"{path} {finding.code} {finding.message.en}"
    seen[what] += 1
    return {
        "check_name": finding.code,
        "description": f"{place}{finding.code} {finding.message.in_language(language)}",
        "fingerprint": hashlib.sha256(
            f"{what} {seen[what]}".encode("utf-8", "surrogateescape")
        ).hexdigest(),
        "severity": _SEVERITIES[finding.level],
        # Lines of a notebook are those of its JSON, which nobody reads.
        "location": {"path": path, "lines": {"begin": 1 if cell is not None else start.line + 1}},
    }


def _in_repository(path: Path) -> str:
    here = Path.cwd()
    return (path.relative_to(here) if path.is_relative_to(here) else path).as_posix()
