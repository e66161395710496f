"""What the comparison with a device says, told from answers that a device gave."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ranksafe.runs.explain.limits import kind_of_text

from tests.gpu_check.gpu_check import model_of, plain, report

MEASURED = sorted((Path(__file__).parent / "measured").glob("*.jsonl"))
WITH_OPERATORS = [path for path in MEASURED if '"part": "operators"' in path.read_text("utf-8")]
PAGE = Path(__file__).parents[2] / "docs" / "rehearsal.md"


@pytest.mark.parametrize("kept", MEASURED, ids=lambda path: path.stem)
def test_the_page_has_the_figures_of_what_was_kept(kept: Path) -> None:
    lines = [json.loads(line) for line in kept.read_text(encoding="utf-8").splitlines()]
    page = PAGE.read_text(encoding="utf-8")
    figures = [text for text in report(lines) if text.startswith("|")]
    assert figures
    assert [text for text in figures if text not in page] == []


def test_what_differs_from_run_to_run_is_not_compared() -> None:
    one = "CUDA out of memory. Tried to allocate 2.00 GiB. Process 71 has 3.1 MiB at 0x7f (a/b.cu:12)\nmore"
    other = "CUDA out of memory. Tried to allocate 20 MiB. Process 9 has 1 GiB at 0xab (b.cpp:3)"
    assert plain(one) == plain(other)
    assert plain("got Half and Float") != plain("got Float and Half")


def test_a_device_is_simulated_by_the_one_of_its_name() -> None:
    assert model_of("NVIDIA H100 80GB HBM3") == "h100"
    assert model_of("NVIDIA H100") is None


@pytest.mark.parametrize("kept", WITH_OPERATORS, ids=lambda path: path.stem)
def test_what_a_device_computes_and_the_cpu_refuses_is_a_limit(kept: Path) -> None:
    lines = [json.loads(line) for line in kept.read_text(encoding="utf-8").splitlines()]
    operators = [line for line in lines if line.get("part") == "operators" and "real" in line]
    refused = [
        line["simulated"]
        for line in operators
        if "Error" in str(line["simulated"]).partition(":")[0]
        and "Error" not in str(line["real"]).partition(":")[0]
    ]
    accused = [text for text in refused if kind_of_text(text, offline=True) is None]
    assert len(refused) > 40
    assert [text for text in accused if "sampled_addmm" not in text] == []


@pytest.mark.parametrize("kept", WITH_OPERATORS, ids=lambda path: path.stem)
def test_types_that_both_refuse_stay_the_scripts_failure(kept: Path) -> None:
    lines = [json.loads(line) for line in kept.read_text(encoding="utf-8").splitlines()]
    both = [
        line["simulated"]
        for line in lines
        if line.get("part") == "operators"
        and "real" in line
        and all("not implemented for" in str(line[side]) for side in ("real", "simulated"))
        and not any(kind in str(line["simulated"]) for kind in ("'Half'", "'BFloat16'"))
    ]
    assert len(both) > 100
    assert [text for text in both if kind_of_text(text, offline=True) is not None] == []
