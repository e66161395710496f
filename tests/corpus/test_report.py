"""Figures of a run over the corpus."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.corpus.findings import Finding, Verdict, judged, read_verdicts, write_findings
from tests.corpus.packages import Package
from tests.corpus.precision import BEGIN, END, write_figures
from tests.corpus.report import Results, report, summary, table, within_limits

TRAINS = Package("a==1", "trains", ("a",), without=("data/large",))
OTHER = Package("b==2", "other", ("b",))
FOUND = Finding("a==1", "a/train.py", 3, "RS401", "warning", "dist.barrier()")


def results(*verdicts: Verdict, level: str = "warning") -> Results:
    found = [
        replace(FOUND, line=line, level=level, verdict=verdict, reason="because")
        for line, verdict in enumerate(verdicts)
    ]
    return Results([TRAINS, OTHER], {"a==1": 100_000, "b==2": 5}, {"a==1": 1.0}, found)


def test_table_counts_each_rule_and_all() -> None:
    rows = table([*results("true", "true", "false", "").findings, replace(FOUND, code="RS111")])
    assert rows[2:] == [
        "| RS111 | warning | 1 | 0 | 0 | 0 | 1 |  |",
        "| RS401 | warning | 4 | 2 | 0 | 1 | 1 | 67% |",
        "| all |  | 5 | 2 | 0 | 1 | 2 | 67% |",
    ]


def test_limits_are_per_line_of_the_packages_that_train() -> None:
    assert within_limits(results("true", "false"))
    assert not within_limits(results("false", "false"))
    assert within_limits(results("harmless", "harmless"))
    assert not within_limits(results("harmless", "harmless", "harmless"))
    assert within_limits(results("harmless", "harmless", "harmless", level="information"))
    assert "1.00 false findings per 100,000 lines" in summary(results("false"))[-1]


def test_verdicts_belong_to_place_and_text() -> None:
    verdict = replace(FOUND, verdict="true", reason="all ranks")
    moved, changed = replace(FOUND, line=4), replace(FOUND, text="dist.barrier(group)")
    found = judged([FOUND, moved, changed], [verdict])
    assert [finding.verdict for finding in found] == ["true", "", ""]


def test_report_names_what_is_not_judged_and_what_is_gone() -> None:
    run = results("true", "")
    run.gone = [replace(FOUND, file="a/old.py", verdict="true")]
    text = report(run)
    assert "Findings without a verdict: 1" in text
    assert "a/old.py:3 RS401" in text


def test_written_findings_are_read_again(tmp_path: Path) -> None:
    findings = [replace(FOUND, line=9), FOUND]
    write_findings(findings, tmp_path / "findings.jsonl")
    assert read_verdicts(tmp_path / "findings.jsonl") == [FOUND, replace(FOUND, line=9)]


def test_figures_replace_those_of_the_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}old\n{END}after\n", encoding="utf-8")
    write_figures(results("true"), page)
    write_figures(results("false"), page)
    text = page.read_text(encoding="utf-8")
    assert text.startswith(f"before\n{BEGIN}\n| rule |")
    assert text.endswith(f"{END}after\n")
    assert "old" not in text
    assert text.count("| all |") == 1


def test_package_knows_its_files() -> None:
    assert TRAINS.wants("a/data/loader.py")
    assert not TRAINS.wants("a/data/large/table.py")
    assert not TRAINS.wants("a/data.json")
    assert not TRAINS.wants("b/train.py")
