"""What checking one file gave, in a form that can be cached, sent between processes and printed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ranksafe.checker.finding import Applicability, Finding, FixOffer, Level, Related
from ranksafe.localization import Translated
from ranksafe.source.notebook import CellStart, in_cell
from ranksafe.source.position import Edit, Position, Range


@dataclass(frozen=True, slots=True)
class Repair:
    """A finding's first fix and, where they were asked for, its edits."""

    offer: FixOffer
    edits: tuple[Edit, ...]


@dataclass(frozen=True, slots=True)
class Reported:
    """A finding as it is printed. ``repair`` is None when it has no fix, or fixes were not asked for."""

    finding: Finding
    repair: Repair | None = None


@dataclass(frozen=True, slots=True)
class FileResult:
    """What checking one file gave."""

    path: Path
    reported: tuple[Reported, ...] = ()
    problem: Translated | None = None
    """Why the file was not checked."""
    given_up: tuple[str, ...] = ()
    """See `DocumentAnalysis.given_up`."""
    failed_rules: tuple[tuple[str, str], ...] = ()
    """Codes of the rules that broke, each with the error and its place. Such a result is not kept."""
    cells: tuple[CellStart[int], ...] = ()
    """Where the cells of a notebook begin in the text that the ranges are those of."""

    def place(self, position: Position) -> tuple[int | None, Position]:
        """The cell of a notebook that a position stands in, and the position there; no cell in other files."""
        return in_cell(self.cells, position) if self.cells else (None, position)


def to_json(result: FileResult) -> dict[str, Any]:
    """A form for the cache: JSON values only."""
    return {
        "reported": [_reported_to_json(item) for item in result.reported],
        "problem": None if result.problem is None else _text_to_json(result.problem),
        "given_up": list(result.given_up),
        "cells": [[cell.name, cell.first_line, cell.line_count] for cell in result.cells],
    }


def from_json(path: Path, value: dict[str, Any]) -> FileResult:
    """The inverse of `to_json`. Raises KeyError, TypeError, ValueError or IndexError for anything else."""
    problem = value["problem"]
    return FileResult(
        path,
        tuple(_reported_from_json(item) for item in value["reported"]),
        None if problem is None else _text_from_json(problem),
        tuple(value["given_up"]),
        cells=tuple(CellStart(*map(int, cell)) for cell in value["cells"]),
    )


def _reported_to_json(item: Reported) -> dict[str, Any]:
    finding = item.finding
    return {
        "code": finding.code,
        "name": finding.name,
        "level": int(finding.level),
        "message": _text_to_json(finding.message),
        "range": _range_to_json(finding.range),
        "related": [
            [
                _text_to_json(related.message),
                _range_to_json(related.range),
                None if related.path is None else str(related.path),
            ]
            for related in finding.related
        ],
        "fixes": [_offer_to_json(offer) for offer in finding.fixes],
        "data": [list(pair) for pair in finding.data],
        "repair": None
        if item.repair is None
        else [
            _offer_to_json(item.repair.offer),
            [[_range_to_json(edit.range), edit.new_text] for edit in item.repair.edits],
        ],
    }


def _reported_from_json(value: dict[str, Any]) -> Reported:
    repair = value["repair"]
    return Reported(
        Finding(
            code=value["code"],
            name=value["name"],
            level=Level(value["level"]),
            message=_text_from_json(value["message"]),
            range=_range_from_json(value["range"]),
            related=tuple(
                Related(
                    _text_from_json(message),
                    _range_from_json(place),
                    None if path is None else Path(path),
                )
                for message, place, path in value["related"]
            ),
            fixes=tuple(_offer_from_json(offer) for offer in value["fixes"]),
            data=tuple((name, fact) for name, fact in value["data"]),
        ),
        None
        if repair is None
        else Repair(
            _offer_from_json(repair[0]),
            tuple(Edit(_range_from_json(place), text) for place, text in repair[1]),
        ),
    )


def _text_to_json(text: Translated) -> list[str]:
    return [text.en, text.zh_cn]


def _text_from_json(value: list[str]) -> Translated:
    return Translated(value[0], value[1])


def _range_to_json(place: Range) -> list[int]:
    return [place.start.line, place.start.column, place.end.line, place.end.column]


def _range_from_json(value: list[int]) -> Range:
    first_line, first_column, last_line, last_column = value
    return Range(Position(first_line, first_column), Position(last_line, last_column))


def _offer_to_json(offer: FixOffer) -> list[Any]:
    return [offer.key, _text_to_json(offer.title), offer.applicability.value]


def _offer_from_json(value: list[Any]) -> FixOffer:
    return FixOffer(value[0], _text_from_json(value[1]), Applicability(value[2]))
