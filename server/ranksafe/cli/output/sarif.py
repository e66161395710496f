"""SARIF 2.1.0 (OASIS), for code scanning services."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ranksafe import __version__
from ranksafe.checker.finding import Finding, Level, Related
from ranksafe.checker.registry import Registry
from ranksafe.checker.rule_folder import RuleFolder
from ranksafe.cli.results import FileResult, Repair, Reported
from ranksafe.localization import Language
from ranksafe.source.position import Range

_LEVELS = {Level.ERROR: "error", Level.WARNING: "warning", Level.INFORMATION: "note"}


def render(results: Sequence[FileResult], registry: Registry, language: Language) -> str:
    """One run with all rules and all findings."""
    run = {
        "tool": {
            "driver": {
                "name": "ranksafe",
                "version": __version__,
                "rules": [_rule(folder, language) for folder in registry.rules],
            }
        },
        "columnKind": "unicodeCodePoints",
        "results": [
            _result(result, item, language) for result in results for item in result.reported
        ],
    }
    log = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [run],
    }
    return json.dumps(log, ensure_ascii=False, indent=2) + "\n"


def _rule(folder: RuleFolder, language: Language) -> dict[str, Any]:
    metadata = folder.metadata
    return {
        "id": metadata.code,
        "name": metadata.name,
        "shortDescription": {"text": metadata.summary.in_language(language)},
        "helpUri": folder.url,
        "defaultConfiguration": {"level": _LEVELS[metadata.level]},
    }


def _result(result: FileResult, item: Reported, language: Language) -> dict[str, Any]:
    finding = item.finding
    written: dict[str, Any] = {
        "ruleId": finding.code,
        "level": _LEVELS[finding.level],
        "message": {"text": _in_cell(result, finding, language)},
        "locations": [_location(result, result.path, finding.range)],
    }
    if finding.related:
        written["relatedLocations"] = [
            {
                "id": number,
                **_location(result, related.path or result.path, related.range),
                "message": {"text": _in_cell(result, related, language)},
            }
            for number, related in enumerate(finding.related)
        ]
    if item.repair is not None and item.repair.edits and not result.cells:
        written["fixes"] = [_fix(result.path, item.repair, language)]
    return written


def _in_cell(result: FileResult, item: Finding | Related, language: Language) -> str:
    """The message; after the place in a notebook, whose cells SARIF cannot name."""
    message = item.message.in_language(language)
    if isinstance(item, Related) and item.path not in (None, result.path):
        return message
    cell, start = result.place(item.range.start)
    if cell is None:
        return message
    return f"cell {cell}:{start.line + 1}:{start.column + 1}: {message}"


def _location(result: FileResult, path: Path, place: Range) -> dict[str, Any]:
    location: dict[str, Any] = {"artifactLocation": _artifact(path)}
    if path != result.path or not result.cells:
        location["region"] = _region(place)
    return {"physicalLocation": location}


def _artifact(path: Path) -> dict[str, str]:
    if path.is_absolute():
        return {"uri": path.as_uri()}
    return {"uri": quote(path.as_posix(), errors="surrogateescape")}


def _region(place: Range) -> dict[str, int]:
    return {
        "startLine": place.start.line + 1,
        "startColumn": place.start.column + 1,
        "endLine": place.end.line + 1,
        "endColumn": place.end.column + 1,
    }


def _fix(path: Path, repair: Repair, language: Language) -> dict[str, Any]:
    return {
        "description": {"text": repair.offer.title.in_language(language)},
        "artifactChanges": [
            {
                "artifactLocation": _artifact(path),
                "replacements": [
                    {
                        "deletedRegion": _region(edit.range),
                        "insertedContent": {"text": edit.new_text},
                    }
                    for edit in repair.edits
                ],
            }
        ],
    }
