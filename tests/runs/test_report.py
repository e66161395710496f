"""Reports of runs: what is in them, opened in a real browser, with hostile content."""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from ranksafe.localization import Language
from ranksafe.runs.records.comparison import compare
from ranksafe.runs.records.gpu_log import FILE as GPU_FILE
from ranksafe.runs.records.kept_runs import KeptRun, run_named
from ranksafe.runs.report.elements import clean, element, to_html
from ranksafe.runs.report.log_tail import log_section
from ranksafe.runs.report.page import report

from .browser import harmless, opened
from .conftest import StartRun

HOSTILE = (
    "</script><script>document.title='owned'; alert(1)</script><img src=x onerror=alert(2)>"
    "\x1b[31mred\x1b[0m\x1b]8;;http://example.invalid\x07link\x1b]8;;\x07 \x00nul \u202eevil & \"q\" 'q' ${x}"
)


@pytest.fixture
def failed(run: StartRun, tmp_path: Path) -> KeptRun:
    """A copy of a real run of two ranks of which one raised."""
    result = run("rank_one_fails.py", "raise").result
    assert result.run_directory is not None
    copy = tmp_path / "runs" / result.run_id
    shutil.copytree(result.run_directory, copy)
    return run_named(str(copy), tmp_path)


@pytest.mark.torch
def test_a_report_opens_offline_with_the_verdict_on_top(failed: KeptRun, tmp_path: Path) -> None:
    text = report(failed)
    assert not re.search(r"""src=|href=(?!"vscode://file/)""", text)
    seen = opened(text, tmp_path, "failed-light")
    harmless(seen)
    assert seen["scripts"] == 0
    lines = [line for line in seen["text"].splitlines() if line.strip()]
    assert "rank_one_fails.py failed" in lines[:5]
    top = next(line for line in lines if "ValueError" in line)
    assert top.startswith("ValueError: this rank cannot go on (rank 1, rank_one_fails.py:")
    assert seen["marked"][0] == 'raise ValueError("this rank cannot go on")'
    assert len(seen["marked"]) == len(failed.failures)
    for heading in (
        "Failures",
        "Timeline of the ranks",
        "Run it again",
        "Environment",
        "End of the log",
    ):
        assert heading in lines
    assert "ranksafe run " in seen["text"]
    assert "[rank 1] ValueError: this rank cannot go on" in seen["text"]

    dark = opened(text, tmp_path, "failed-dark-zh", scheme="dark", language="zh-cn")
    harmless(dark)
    assert dark["background"] != seen["background"]
    assert "各 rank 的时间线" in dark["text"]
    assert "Timeline of the ranks" not in dark["text"]
    assert "Timeline" in text, "both languages are in one file"


@pytest.mark.torch
def test_hostile_content_stays_text(failed: KeptRun, tmp_path: Path) -> None:
    data = json.loads(json.dumps(dict(failed.data)))
    for failure in data["result"]["failures"]:
        failure["message"] = HOSTILE
        failure["frames"].append(
            {"filename": HOSTILE, "location": {"row": 1}, "function": HOSTILE, "source": HOSTILE}
        )
    data["request"]["arguments"] = [HOSTILE]
    data["request"]["target"] = HOSTILE
    data["environment"]["packages"] = {HOSTILE: HOSTILE}
    data["environment"]["hosts"] = [HOSTILE]
    data["explanations"] = [{"en": HOSTILE, "zh_cn": f"{HOSTILE}。"}] * len(data["explanations"])
    run = replace(failed, data=data)
    (failed.directory / "log.txt").write_bytes(
        b"[rank 0] " + HOSTILE.encode() + b"\n\xff\xfe broken utf-8\n[launcher] " + HOSTILE.encode()
    )
    sample = {"time": 1.0, "host": HOSTILE, "devices": [{"index": HOSTILE, "used_mib": 1}]}
    (failed.directory / GPU_FILE).write_text(json.dumps(sample) + "\n")
    text = report(run, comparison=compare(run, run))
    assert "\x1b" not in text
    assert "\x00" not in text
    seen = opened(text, tmp_path, "hostile")
    harmless(seen)
    assert seen["title"] != "owned"
    assert "<script>document.title='owned'" in seen["text"]
    assert "redlink" in seen["text"]


def test_a_huge_log_is_cut_and_a_binary_one_is_shown(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    with log.open("wb") as file:
        for number in range(100_000):
            file.write(b"[rank %d] line %d %s\n" % (number % 8, number, b"x" * 90))
        file.write(b"[rank 0] " + b"\x1b[1mlong" * 2_000_000 + b"\n[rank 0] the end\n")
    text = to_html(element("html", *log_section(log)))
    assert len(text) < 500_000
    assert "the end" in text
    assert "Only its last lines" in text
    log.write_bytes(os.urandom(100_000))
    assert len(to_html(element("html", *log_section(log)))) < 500_000
    assert log_section(tmp_path / "missing") == []


def test_text_is_cleaned_of_what_no_page_may_hold() -> None:
    assert clean("a\x1b[1;31mb\x1b[0mc\r\nd\te") == "abc\nd\te"
    assert clean("a\x00b\x85\ud800c\u202e") == "a\ufffdb\ufffd\ufffdc\ufffd"
    assert to_html(element("p", "<b>&", title='"<')).endswith(
        '<p title="&quot;<">&lt;b&gt;&amp;</p>'
    )


@pytest.mark.torch
def test_gpus_are_plotted_and_a_comparison_is_shown(failed: KeptRun, tmp_path: Path) -> None:
    start = failed.started
    lines = [
        {
            "time": start + second,
            "devices": [
                {"index": index, "used_mib": 1000 * second, "total_mib": 81920, "busy_percent": 50}
                for index in (0, 1)
            ],
        }
        for second in range(1, 20)
    ]
    (failed.directory / GPU_FILE).write_text("".join(json.dumps(line) + "\n" for line in lines))
    text = report(failed, comparison=compare(failed, failed))
    assert "Permission is hereby granted, free of charge" in text, "uPlot's licence goes with it"
    for scheme in ("light", "dark"):
        seen = opened(text, tmp_path, f"plots-{scheme}", scheme=scheme)
        harmless(seen)
        assert seen["plots"] == 2
        assert "18.55 GiB" in seen["text"]
        assert "Compared with run" in seen["text"]
    harmless(opened(text, tmp_path, "plots-print", scheme="dark", media="print"))


@pytest.mark.torch
def test_damaged_evidence_makes_a_shorter_report(failed: KeptRun, tmp_path: Path) -> None:
    for path in failed.directory.iterdir():
        if (
            path.suffix in (".jsonl", ".beat", ".collectives", ".txt")
            or path.name == "snapshot.json"
        ):
            path.write_bytes(b'{"event": "step", "time": "x"}\n[1]\n{"time": 1, "event"\n\x00\xff')
    languages: tuple[Language, ...] = ("en", "zh-cn")
    for language in languages:
        text = report(failed, language)
        assert "this rank cannot go on" in text
    unfinished = replace(failed, data={"request": failed.data["request"]})
    assert "rank_one_fails.py" in report(unfinished)
    assert "rank_one_fails.py" in report(
        replace(unfinished, data={**unfinished.data, "result": {"ranks": 3, "failures": [1]}})
    )
