"""A JSON list in the shape of ``ruff check --output-format json``, so that tools that read one read the other.

Rows and columns are 1-based, columns count characters; in a notebook they are those of the cell.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ranksafe.checker.finding import Related
from ranksafe.checker.registry import Registry
from ranksafe.cli.results import FileResult, Repair, Reported
from ranksafe.localization import Language
from ranksafe.source.position import Position


def render(results: Sequence[FileResult], registry: Registry, language: Language) -> str:
    """The list, one object per finding."""
    findings = [
        _finding(result, item, registry, language) for result in results for item in result.reported
    ]
    return json.dumps(findings, ensure_ascii=False, indent=2) + "\n"


def _finding(
    result: FileResult, item: Reported, registry: Registry, language: Language
) -> dict[str, Any]:
    finding = item.finding
    folder = registry.by_code(finding.code)
    cell, start = result.place(finding.range.start)
    end = result.place(finding.range.end)[1]
    return {
        "code": finding.code,
        "name": finding.name,
        "level": finding.level.label,
        "message": finding.message.in_language(language),
        "filename": str(result.path.absolute()),
        "cell": cell,
        "location": location(start),
        "end_location": location(end),
        "fix": None if item.repair is None else _fix(result, item.repair, language),
        "related": [_related(result, related, language) for related in finding.related],
        "url": None if folder is None else folder.url,
    }


def location(position: Position) -> dict[str, int]:
    """A position as row and column from 1."""
    return {"row": position.line + 1, "column": position.column + 1}


def _fix(result: FileResult, repair: Repair, language: Language) -> dict[str, Any]:
    return {
        "applicability": repair.offer.applicability.value,
        "message": repair.offer.title.in_language(language),
        "edits": [
            {
                "content": edit.new_text,
                "location": location(result.place(edit.range.start)[1]),
                "end_location": location(result.place(edit.range.end)[1]),
            }
            for edit in repair.edits
        ],
    }


def _related(result: FileResult, related: Related, language: Language) -> dict[str, Any]:
    is_here = related.path in (None, result.path)
    cell, start = result.place(related.range.start) if is_here else (None, related.range.start)
    end = result.place(related.range.end)[1] if is_here else related.range.end
    return {
        "message": related.message.in_language(language),
        "filename": str((related.path or result.path).absolute()),
        "cell": cell,
        "location": location(start),
        "end_location": location(end),
    }
