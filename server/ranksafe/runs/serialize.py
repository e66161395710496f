"""A `RunResult` as the JSON object that ``ranksafe run --output-format json`` prints."""

from __future__ import annotations

from typing import Any

from ranksafe.localization import Language
from ranksafe.runs.model import Failure, Frame, RunResult

SCHEMA = "ranksafe-run/1"


def to_json(result: RunResult, language: Language = "en") -> dict[str, Any]:
    """The object of DESIGN's CLI contract; rows and columns count from 1, columns in characters."""
    return {
        "schema": SCHEMA,
        "run_id": result.run_id,
        "outcome": result.outcome.value,
        "target": result.target,
        "command": list(result.command),
        "modified": list(result.modified),
        "limits": list(result.limits),
        "ranks": [
            {"rank": rank.rank, "host": rank.host, "exit": rank.exit, "outcome": rank.outcome}
            for rank in result.ranks
        ],
        "failures": [failure_json(failure, language) for failure in result.failures],
        "simulation_limit": (
            None
            if result.simulation_limit is None
            else failure_json(result.simulation_limit, language)
        ),
        "unreached": [
            {"name": each.name, "filename": each.filename, "location": _location(each.line, 1)}
            for each in result.unreached
        ],
        "seconds": round(result.seconds, 3),
        "log": None if result.log is None else str(result.log),
    }


def failure_json(failure: Failure, language: Language = "en") -> dict[str, Any]:
    """One failure; ``location`` and ``end_location`` are null where no line of the user's is known."""
    return {
        "kind": failure.kind,
        "code": failure.code,
        "rank": failure.rank,
        "message": failure.message,
        "filename": failure.filename,
        "location": _location(failure.line, failure.column),
        "end_location": _location(failure.end_line, failure.end_column),
        "frames": [frame_json(frame) for frame in failure.frames],
        "explanation": failure.explanation.in_language(language),
        "root_cause": failure.root_cause,
        "related": [
            {"filename": filename, "location": _location(line, None)}
            for filename, line in failure.related
        ],
        "excerpt": list(failure.excerpt),
    }


def _location(row: int | None, column: int | None) -> dict[str, int | None] | None:
    return None if row is None else {"row": row, "column": column}


def frame_json(frame: Frame) -> dict[str, Any]:
    """One line of a traceback."""
    return {
        "filename": frame.filename,
        "location": _location(frame.line, frame.column),
        "end_location": _location(frame.end_line, frame.end_column),
        "function": frame.function,
        "source": frame.source,
        "in_user_code": frame.in_user_code,
    }
