"""Forecasts beside what others measured and published; ``measurements/published_memory.py`` has all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from .measurements.published_memory import PROGRAMS, UNITS, figures

pytestmark = pytest.mark.torch


def test_every_figure_has_a_name_a_unit_and_a_program() -> None:
    rows = figures()
    assert len({figure.name for figure in rows}) == len(rows)
    for figure in rows:
        assert figure.unit in UNITS
        assert bool(figure.published) != bool(figure.reference)
        assert (PROGRAMS / figure.program).is_file()


@pytest.mark.long
def test_gpt2_takes_what_torchs_own_tracker_says(torch_python: Path) -> None:
    figure = next(figure for figure in figures() if figure.reference == "mem_tracker.py")
    forecast = figure.forecast(figure.run(torch_python)["told"])
    assert forecast == pytest.approx(figure.expected(torch_python), rel=figure.target)
