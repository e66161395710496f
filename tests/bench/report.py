"""Measured figures against their targets."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """One line of the table: what was measured must be at most, or at least, the target."""

    name: str
    measured: float | None
    target: float
    unit: str = "x"
    at_least: bool = False
    detail: str = ""

    @property
    def verdict(self) -> str:
        if self.measured is None:
            return "not measured"
        met = self.measured >= self.target if self.at_least else self.measured <= self.target
        return "met" if met else "MISSED"


def table(figures: list[Figure]) -> str:
    rows = [("", "measured", "target", "", "")]
    for figure in figures:
        measured = "-" if figure.measured is None else f"{figure.measured:.2f} {figure.unit}"
        sign = ">=" if figure.at_least else "<="
        target = f"{sign} {figure.target:g} {figure.unit}"
        rows.append((figure.name, measured, target, figure.verdict, figure.detail))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[4]])
        for row in rows
    )
