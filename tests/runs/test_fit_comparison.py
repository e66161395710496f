"""What a change costs: forecasts are compared by what memory was for and by lines that may have moved."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ranksafe.cli.output import fit_comparison as answer
from ranksafe.cli.output import forecast as forecast_output
from ranksafe.rehearsal.settings import RehearsalOptions
from ranksafe.runs.fit import Fits, Forecast, as_forecast, forecast_of
from ranksafe.runs.fit_comparison import Comparison, NotComparable, compare, read, seen_of
from ranksafe.runs.model import Frame, MemoryLine, MemoryPeak, Outcome, RunRequest, RunResult

GIBIBYTE = 2**30
REQUEST = as_forecast(
    RunRequest(Path("train.py"), "simulated:2", rehearsal=RehearsalOptions(device_model="h100"))
)


def _line(row: int, text: str, gibibytes: int, part: str = "activations") -> MemoryLine:
    frame = Frame("/project/train.py", row, "main", text, in_user_code=True)
    return MemoryLine(part, gibibytes * GIBIBYTE, 1, (frame,))


def _forecast(*lines: MemoryLine) -> Forecast:
    parts: dict[str, int] = {}
    for line in lines:
        parts[line.part] = parts.get(line.part, 0) + line.size
    size = sum(parts.values())
    peak = MemoryPeak(
        *(0, 0, size, size, 0, 0, "backward", 2, 3), *((), {}, 0), parts=parts, lines=lines
    )
    forecast = forecast_of(REQUEST, 2, _result(peak), None)
    assert forecast is not None
    return forecast


def _result(*peaks: MemoryPeak) -> RunResult:
    nothing: tuple[()] = ()
    return RunResult(
        "",
        *(Outcome.SUCCEEDED, "simulated:2", nothing, nothing, nothing, nothing, nothing, 1.0),
        *(None, None),
        memory=peaks,
    )


def _written(forecast: Forecast, path: Path, **fields: Any) -> Path:
    told = forecast_output.as_json(forecast, REQUEST, 2, _result(), "en")
    path.write_text(json.dumps({**told, **fields}), encoding="utf-8")
    return path


def _compared(tmp_path: Path, before: Forecast, after: Forecast, gpus: int = 2) -> Comparison:
    path = _written(before, tmp_path / "before.json")
    return compare(read(path), seen_of(after, gpus, "h100"))


BEFORE = (
    _line(80, "hidden = model(batch)", 4),
    _line(88, "logits = head(hidden)", 2),
    _line(90, "optimizer.step()", 8, "optimizer-states"),
)


def test_what_a_change_costs_is_told_with_its_line_though_lines_have_moved(tmp_path: Path) -> None:
    after = _forecast(
        _line(81, "hidden = model(batch)", 4),
        _line(89, "logits = head(hidden)", 2),
        _line(90, "logits = logits.float()", 4),
        _line(92, "optimizer.step()", 8, "optimizer-states"),
    )
    comparison = _compared(tmp_path, _forecast(*BEFORE), after)
    assert comparison.total.growth == 4 * GIBIBYTE
    assert answer.as_text(comparison, "before.json", "en") == [
        "compared with before.json: costs 4.0 GiB more per GPU, 14.7 → 18.7; most of it at train.py:90",
        "  activations +4.0",
        "  +4.0 GiB at train.py:90: activations",
    ]
    told = answer.as_json(comparison, "before.json", "en")
    assert told["parts"] == {
        "activations": {"before": 6 * GIBIBYTE, "after": 10 * GIBIBYTE, "growth": 4 * GIBIBYTE}
    }
    assert [line["after_at"] for line in told["lines"]] == [["train.py:90"]]


def test_what_a_change_saves_is_told_where_it_was(tmp_path: Path) -> None:
    comparison = _compared(tmp_path, _forecast(*BEFORE), _forecast(*BEFORE[:2]), gpus=4)
    assert answer.as_text(comparison, "before.json", "zh-cn") == [
        "与 before.json 相比：每个 GPU 节省 8.0 GiB，14.7 → 6.7；大部分位于 train.py:90",
        "  之前的预测用于 2 × h100，此次用于 4 × h100",
        "  优化器状态 −8.0",
        "  train.py:90 处 −8.0 GiB：优化器状态",
    ]


def test_what_is_the_same_is_said_to_be(tmp_path: Path) -> None:
    comparison = _compared(tmp_path, _forecast(*BEFORE), _forecast(*BEFORE))
    assert answer.as_text(comparison, "b.json", "en") == [
        "compared with b.json: the same, 14.7 GiB per GPU"
    ]


def test_where_an_end_was_not_seen_the_least_is_compared(tmp_path: Path) -> None:
    cut = replace(_forecast(*BEFORE), fits=Fits.TIGHT, is_whole=False)
    comparison = _compared(tmp_path, cut, _forecast(*BEFORE, _line(3, "x = big()", 1)))
    assert comparison.total.growth == GIBIBYTE
    assert answer.as_json(comparison, "", "en")["of"] == "at_least"
    assert "compared is what is needed at least" in answer.as_text(comparison, "", "en")[1]


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"schema": "ranksafe-run/1"}', "[" * 100_000],
    ids=["empty", "a list", "nothing", "a run", "deep"],
)
def test_what_is_no_forecast_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "before.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(NotComparable, match="no forecast"):
        read(path)


def test_a_forecast_without_an_answer_and_a_file_that_is_not_there_are_refused(
    tmp_path: Path,
) -> None:
    with pytest.raises(NotComparable, match="no forecast"):
        read(_written(_forecast(*BEFORE), tmp_path / "before.json", needs=None))
    with pytest.raises(NotComparable, match="cannot be read"):
        read(tmp_path / "gone.json")
