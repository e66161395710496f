"""A JSON list in the shape of ``ruff check --output-format json``, so that tools that read one read the other.

Rows and columns are 1-based, columns count characters.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ranksafe.checker.finding import Related
from ranksafe.checker.registry import Registry
from ranksafe.cli.results import FileResult, Repair, Reported
from ranksafe.localization import Language
from ranksafe.source.position import Position


def render(results: Sequence[FileResult], registry: Registry, language: Language) -> str:
    """The list, one object per finding."""
    findings = [
        _finding(result.path, item, registry, language)
        for result in results
        for item in result.reported
    ]
    return json.dumps(findings, ensure_ascii=False, indent=2) + "\n"


def _finding(path: Path, item: Reported, registry: Registry, language: Language) -> dict[str, Any]:
    finding = item.finding
    folder = registry.by_code(finding.code)
    return {
        "code": finding.code,
        "name": finding.name,
        "level": finding.level.label,
        "message": finding.message.in_language(language),
        "filename": str(path.absolute()),
        "cell": None,
        "location": location(finding.range.start),
        "end_location": location(finding.range.end),
        "fix": None if item.repair is None else _fix(item.repair, language),
        "related": [_related(path, related, language) for related in finding.related],
        "url": None if folder is None else folder.url,
    }


def location(position: Position) -> dict[str, int]:
    """A position as row and column from 1."""
    return {"row": position.line + 1, "column": position.column + 1}


def _fix(repair: Repair, language: Language) -> dict[str, Any]:
    return {
        "applicability": repair.offer.applicability.value,
        "message": repair.offer.title.in_language(language),
        "edits": [
            {
                "content": edit.new_text,
                "location": location(edit.range.start),
                "end_location": location(edit.range.end),
            }
            for edit in repair.edits
        ],
    }


def _related(path: Path, related: Related, language: Language) -> dict[str, Any]:
    return {
        "message": related.message.in_language(language),
        "filename": str((related.path or path).absolute()),
        "location": location(related.range.start),
        "end_location": location(related.range.end),
    }
