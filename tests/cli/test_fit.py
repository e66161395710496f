"""What ``ranksafe fit`` understands, how it judges what a forecast saw, and what it says."""

from __future__ import annotations

import argparse
import pickletools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ranksafe.cli import fit
from ranksafe.cli.output import forecast as answer
from ranksafe.cli.output import memory_viz
from ranksafe.cli.run_options import request_of
from ranksafe.localization import Language, Translated
from ranksafe.rehearsal.settings import Confirm, Shrink
from ranksafe.runs import fit_words
from ranksafe.runs.explain.signatures.gpu_memory import KIND
from ranksafe.runs.fit import Fits, Forecast, as_forecast, forecast_of
from ranksafe.runs.model import (
    Failure,
    Frame,
    MemoryBlocks,
    MemoryLine,
    MemoryPeak,
    Outcome,
    RunRequest,
    RunResult,
)

from .conftest import Call

GIBIBYTE = 2**30
USED_BY_CUDA = 9_240_576 + 518 * 2**20
CODE = 240 * 2**20
GROUP = 558 * 2**20
PEAK = MemoryPeak(
    rank=0,
    device=0,
    allocated=20 * GIBIBYTE,
    reserved=22 * GIBIBYTE,
    refused=0,
    retries=0,
    phase="backward",
    step=2,
    steps=3,
    frames=(
        Frame("/project/train.py", 41, "main", in_user_code=True),
        Frame("/lib/model.py", 88, "forward"),
    ),
    phases={"backward": (20 * GIBIBYTE, 22 * GIBIBYTE)},
    groups=0,
    parts={
        "activations": 12 * GIBIBYTE,
        "parameters": 5 * GIBIBYTE,
        "workspaces": GIBIBYTE // 32,
        "gradients": 3 * GIBIBYTE - GIBIBYTE // 32,
    },
    lines=tuple(
        MemoryLine("activations", GIBIBYTE, 9, (Frame("/project/model.py", row, "forward"),))
        for row in range(7)
    ),
)
OUT_OF_MEMORY = Failure.without_place(
    KIND, Translated("out of memory", ""), Translated("too much", ""), "en"
)


def _request(*words: str) -> RunRequest:
    parser = argparse.ArgumentParser()
    fit.add_arguments(parser, "en")
    arguments = parser.parse_args(words)
    target = f"simulated:{arguments.gpus}"
    return as_forecast(request_of(arguments, "en", target=target, gpus=None))


def _result(*peaks: MemoryPeak, failed: bool = False, **fields: Any) -> RunResult:
    given: dict[str, Any] = {
        "run_id": "",
        "outcome": Outcome.FAILED if failed else Outcome.SUCCEEDED,
        "target": "simulated:2",
        "command": (),
        "modified": (),
        "limits": (),
        "ranks": (),
        "failures": (OUT_OF_MEMORY,) if failed else (),
        "seconds": 1.0,
        "log": None,
        "run_directory": None,
        "memory": peaks,
    }
    return RunResult(**{**given, **fields})


def _forecast(*peaks: MemoryPeak, memory: str = "80GiB") -> Forecast:
    request = _request("train.py", "--gpu-memory", memory)
    forecast = forecast_of(request, 2, _result(*peaks), None)
    assert forecast is not None
    return forecast


def test_a_forecast_is_a_rehearsal_at_true_size_for_a_few_steps() -> None:
    request = _request("train.py", "--gpus", "8", "--device-model", "a100-40g", "--", "--lr", "1")
    options = request.rehearsal
    assert (request.target, request.steps, request.arguments) == ("simulated:8", 3, ("--lr", "1"))
    assert options.forecast
    assert not options.unbounded
    assert not options.short_epochs
    assert (options.shrink, options.confirm) == (Shrink.OFF, Confirm.OFF)
    assert options.device_model == "a100-40g"
    assert _request("train.py").rehearsal.device_model == "h100"


def test_what_is_counted() -> None:
    need = _forecast(PEAK).largest.need
    assert need.least == 20 * GIBIBYTE + USED_BY_CUDA
    assert need.likely == need.least + 2 * GIBIBYTE + CODE
    assert need.most == need.likely + int(0.08 * 22 * GIBIBYTE)
    convolved = _forecast(replace(PEAK, convolves=True)).largest.need
    assert convolved.most == need.likely + int(0.2 * 22 * GIBIBYTE)
    grouped = _forecast(replace(PEAK, groups=3)).largest.need
    assert (grouped.least, grouped.likely) == (need.least, need.likely + GROUP)
    assert grouped.most == need.most + 3 * GROUP


@pytest.mark.parametrize(
    ("memory", "fits"),
    [("25GiB", Fits.YES), ("24GiB", Fits.TIGHT), ("21GiB", Fits.TIGHT), ("20GiB", Fits.NO)],
)
def test_it_fits_where_at_most_does_and_does_not_where_at_least_does_not(
    memory: str, fits: Fits
) -> None:
    assert _forecast(PEAK, memory=memory).fits is fits


def test_what_is_compiled_may_fit_all_the_same() -> None:
    compiled = replace(PEAK, compiled=True)
    forecast = _forecast(compiled, memory="20GiB")
    assert forecast.fits is Fits.TIGHT
    assert any("counts as eager" in line for line in answer.details(forecast, "en"))
    request = _request("train.py")
    told = answer.headline(forecast, request, 1, "en")
    assert "eager code needs 20.5 – 24.5 of 20.0 GiB per GPU, compiled code less" in told
    assert _forecast(compiled).fits is Fits.YES
    told = answer.headline(_forecast(compiled), request, 1, "en")
    assert "needs at most 24.5 of 80.0 GiB per GPU; eager code 20.5 – 24.5" in told
    assert fit_words.title(_forecast(compiled), request, 1).en.endswith("at most 24.5 of 80.0 GiB")


def test_ranks_that_share_a_device_need_what_both_take() -> None:
    other = replace(PEAK, rank=1, allocated=GIBIBYTE, reserved=GIBIBYTE)
    forecast = _forecast(PEAK, other, replace(other, device=1))
    assert [device.number for device in forecast.devices] == [0, 1]
    shared = forecast.largest
    assert (shared.number, shared.peak) == (0, PEAK)
    assert shared.need.allocated == 21 * GIBIBYTE
    assert shared.need.context == USED_BY_CUDA + 518 * 2**20
    assert forecast.smallest.need.allocated == GIBIBYTE


def test_memory_that_ran_out_is_never_said_to_fit() -> None:
    request = _request("train.py")
    first = _result(replace(PEAK, refused=21 * GIBIBYTE), failed=True)
    alone = forecast_of(request, 2, first, None)
    assert alone is not None
    assert (alone.fits, alone.is_whole) == (Fits.TIGHT, False)
    assert alone.largest.need.allocated == 21 * GIBIBYTE
    more = replace(PEAK, allocated=90 * GIBIBYTE, reserved=91 * GIBIBYTE)
    whole = forecast_of(request, 2, first, _result(more))
    assert whole is not None
    assert (whole.fits, whole.is_whole) == (Fits.NO, True)
    assert whole.largest.need.allocated == 90 * GIBIBYTE
    broken = forecast_of(request, 2, first, _result(more, failed=True))
    assert broken is not None
    assert not broken.is_whole


def test_what_failed_otherwise_or_took_nothing_has_no_forecast() -> None:
    request = _request("train.py")
    failure = replace(OUT_OF_MEMORY, kind="user-error")
    assert forecast_of(request, 2, _result(PEAK, failed=True, failures=(failure,)), None) is None
    assert forecast_of(request, 2, _result(PEAK, outcome=Outcome.SIMULATION_LIMIT), None) is None
    assert forecast_of(request, 2, _result(), None) is None


@pytest.mark.parametrize(
    ("language", "headline", "peak", "composition"),
    [
        (
            "en",
            "fits 2 × NVIDIA H100 80GB HBM3: needs 20.5 – 24.5 of 80.0 GiB per GPU, most likely 22.7",
            "peak in a backward pass, step 2: model.py:88 ← train.py:41",
            "parameters 5.0 · gradients 3.0 · activations 12.0",
        ),
        (
            "zh-cn",
            "可放入 2 × NVIDIA H100 80GB HBM3：每个 GPU 需要 20.5 – 24.5 GiB（共 80.0 GiB），最可能为 22.7",
            "峰值出现在反向传播中，第 2 步：model.py:88 ← train.py:41",
            "参数 5.0 · 梯度 3.0 · 激活 12.0",
        ),
    ],
)
def test_the_answer_says_what_is_in_it(
    language: Language, headline: str, peak: str, composition: str
) -> None:
    request, forecast = _request("train.py"), _forecast(PEAK)
    assert answer.headline(forecast, request, 2, language) == headline
    lines = answer.details(forecast, language)
    assert lines[:2] == [peak, composition]
    assert "20.0" in lines[2]
    assert "0.51" in lines[2]
    assert "1.8" in lines[2]
    assert [f"model.py:{row}" in lines[3 + row] for row in range(5)] == [True] * 5
    assert "3" in lines[8]
    assert "H100" in lines[9]


def test_devices_that_differ_and_memory_that_ran_short_are_told() -> None:
    other = replace(PEAK, rank=1, device=1, reserved=30 * GIBIBYTE, refused=1, retries=4)
    lines = answer.details(_forecast(PEAK, other), "en")
    assert lines[0].startswith("peak in a backward pass, step 2 of GPU 1: model.py:88")
    assert "GPUs differ: most likely 22.7 GiB on GPU 0, 30.7 GiB on GPU 1" in lines
    assert any("went on with something that needs less" in line for line in lines)
    assert any("gave its cache back 4 times" in line for line in lines)


def test_github_is_told_of_an_error_only_where_it_must_fit() -> None:
    request, forecast = _request("train.py"), _forecast(PEAK, memory="20GiB")
    told = answer.as_github(forecast, request, 2, "en", must_fit=True)
    assert told.startswith(
        "::error title=ranksafe fit,file=/project/train.py,line=41::does not fit"
    )
    told = answer.as_github(forecast, request, 2, "en", must_fit=False)
    assert told.startswith("::warning title=ranksafe fit,")
    told = answer.as_github(_forecast(PEAK), request, 2, "en", must_fit=True)
    assert told.startswith("::notice title=ranksafe fit,")
    told = answer.as_github(None, request, 2, "en", must_fit=True)
    assert told.startswith("::notice title=ranksafe fit::the script took no GPU memory")


def test_a_snapshot_has_only_what_viewers_read() -> None:
    """The viewer of docs.pytorch.org/memory_viz reads pickles itself: protocol 4 at most, and these codes."""
    frames = (Frame("/project/model.py", 88, "forward"),)
    blocks = (
        MemoryBlocks("activations", 3 * GIBIBYTE, 3, frames),
        MemoryBlocks("parameters", 512, 2000, ()),
    )
    peak = replace(PEAK, blocks=blocks)
    forecast = _forecast(peak, replace(peak, rank=1, device=1))
    codes = list(pickletools.genops(memory_viz.snapshot(forecast)))
    assert codes[0][1] == 4
    assert {code.name for code, _, _ in codes} <= {
        *("PROTO", "FRAME", "STOP", "MARK", "MEMOIZE", "BINGET", "LONG_BINGET"),
        *("EMPTY_DICT", "SETITEM", "SETITEMS", "EMPTY_LIST", "APPEND", "APPENDS", "TUPLE2"),
        *("SHORT_BINUNICODE", "BINUNICODE", "BININT", "BININT1", "BININT2", "LONG1"),
    }
    held = [value for code, value, _ in codes if code.name == "SHORT_BINUNICODE"]
    assert {"active_allocated", "inactive", "segment_alloc", "/project/model.py"} <= set(held)


def test_json_has_no_forecast_where_there_is_none() -> None:
    told = answer.as_json(None, _request("train.py"), 2, _result(), "en")
    assert (told["schema"], told["fits"], told["needs"]) == ("ranksafe-fit/1", None, None)
    assert told["run"]["outcome"] == "succeeded"


def test_it_is_refused_as_a_rehearsal_is(call: Call, tmp_path: Path) -> None:
    (tmp_path / "project" / "train.py").write_text("import torch\n", encoding="utf-8")
    assert call("fit", "train.py", "--shrink", "on").status == 2
    refused = call("fit", "train.py", "--python", "gone/python", "--output-format", "github")
    assert refused.status == 2
    assert refused.out.startswith("::error ")
    compared = call("fit", "train.py", "--compare", "gone.json")
    assert (compared.status, compared.out) == (2, "")
    assert "gone.json cannot be read" in compared.error
    assert "--must-fit" in call("fit", "--help").out
    assert "h100" in call("fit", "--help").out
