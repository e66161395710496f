"""The gate counts what its steps report, and never calls a missing report a success."""

from __future__ import annotations

from pathlib import Path

import gate
import pytest


def test_counts_of_pytest(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(
        '<testsuites><testsuite tests="5">'
        '<testcase name="a"/><testcase name="b"/>'
        '<testcase name="c"><failure message="no"/></testcase>'
        '<testcase name="d"><error message="no"/></testcase>'
        '<testcase name="e"><skipped message="why"/></testcase>'
        "</testsuite></testsuites>",
        encoding="utf-8",
    )
    assert gate.read_junit(report) == gate.Counts(passed=2, failed=2, skipped=["e: why"])


@pytest.mark.parametrize(
    ("test", "full", "counts", "unstable"),
    [
        ("assert seen", False, gate.Counts(2, 0), 1),
        ("assert seen", True, gate.Counts(1, 1), 1),
        ("assert False", False, gate.Counts(1, 1), 0),
        ("raise SystemExit(3)", False, gate.Counts(1, 1), 0),
    ],
)
def test_what_fails_is_run_once_more_and_named(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    test: str,
    full: bool,
    counts: gate.Counts,
    unstable: int,
) -> None:
    mark = tmp_path / "seen"
    text = f"""from pathlib import Path
def test_steady():
    pass
def test_shaky():
    mark = Path({str(mark)!r})
    seen = mark.exists()
    mark.touch()
    {test}
"""
    (tmp_path / "test_both.py").write_text(text, encoding="utf-8")
    monkeypatch.setattr(gate, "ROOT", tmp_path)
    monkeypatch.setattr(gate, "worker_count", lambda: 1)
    runner = gate.Gate(full=full, pytest_arguments=[])
    assert runner.pytest() == counts
    assert len(runner.unstable) == unstable


def test_a_python_that_is_missing_is_named_with_the_command_that_brings_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    counts = gate.Gate(full=True, pytest_arguments=[]).pytest_on_others()
    assert counts == gate.Counts(
        skipped=[
            "Python 3.10 is needed: uv python install 3.10",
            "Python 3.14 is needed: uv python install 3.14",
        ]
    )


@pytest.mark.parametrize("content", [None, "", "<testsuites>"])
def test_a_report_that_is_missing_or_broken_is_a_failure(
    tmp_path: Path, content: str | None
) -> None:
    report = tmp_path / "report.xml"
    if content is not None:
        report.write_text(content, encoding="utf-8")
    assert gate.read_junit(report) == gate.Counts(failed=1)


def test_counts_of_node() -> None:
    output = "✔ a (1ms)\nℹ tests 4\nℹ pass 2\nℹ fail 1\nℹ cancelled 1\nSKIPPED: no browser\n"
    assert gate.read_node_tests(output) == gate.Counts(2, 2, ["no browser"])
    assert gate.read_node_tests("# pass 3\n# fail 0\n") == gate.Counts(3, 0)


def test_summary_starts_at_pytests_own() -> None:
    output = "x\n=== short test summary info ===\nFAILED a\n1 failed, 2 passed in 3s\n"
    assert gate.summary_of(output) == output.splitlines()[1:]
    assert gate.summary_of("...\n2 passed in 3s\n") == ["2 passed in 3s"]


@pytest.mark.parametrize(
    ("ci", "counts", "status", "last"),
    [
        ("", gate.Counts(3, 0), 0, "6 passed, 0 failed"),
        ("", gate.Counts(3, 0, ["no node"]), 0, "6 passed, 0 failed"),
        ("true", gate.Counts(3, 0, ["no node"]), 1, "6 passed, 2 failed"),
        ("", gate.Counts(2, 1), 1, "4 passed, 2 failed"),
    ],
)
def test_last_line_and_status(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    ci: str,
    counts: gate.Counts,
    status: int,
    last: str,
) -> None:
    monkeypatch.setenv("CI", ci)
    steps = [gate.Step(name, "stage", lambda: counts) for name in ("one", "two")]
    assert gate.run(gate.Gate(full=False, pytest_arguments=[]), steps) == status
    assert capsys.readouterr().out.splitlines()[-1] == last


def test_a_failed_stage_ends_the_run_after_its_own_steps(
    capsys: pytest.CaptureFixture[str],
) -> None:
    begun: list[str] = []

    def step(name: str, stage: str, failed: int) -> gate.Step:
        def run() -> gate.Counts:
            begun.append(name)
            return gate.Counts(1 - failed, failed)

        return gate.Step(name, stage, run)

    steps = [step("a", "lint", 1), step("b", "lint", 0), step("c", "tests", 0)]
    assert gate.run(gate.Gate(full=False, pytest_arguments=[]), steps) == 1
    assert begun == ["a", "b"]
    assert "FAILED a" in capsys.readouterr().out
