"""Forecasts beside what others measured and published; ``measurements/published_memory.py`` has all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from .measurements.published_memory import PROGRAMS, UNITS, costs, figures

pytestmark = pytest.mark.torch


def test_every_figure_has_a_name_a_unit_and_a_program() -> None:
    rows = [*figures(), *costs()]
    assert len({row.name for row in rows}) == len(rows)
    assert all((PROGRAMS / row.program).is_file() for row in rows)
    for figure in figures():
        assert figure.unit in UNITS
        assert bool(figure.published) != bool(figure.reference)


@pytest.mark.long
def test_gpt2_takes_what_torchs_own_tracker_says(torch_python: Path) -> None:
    figure = next(figure for figure in figures() if figure.reference == "mem_tracker.py")
    forecast = figure.forecast(figure.run(torch_python)["told"])
    assert forecast == pytest.approx(figure.expected(torch_python), rel=figure.target)
