"""Running a program and judging it: small programs without torch, so that every way to differ is seen."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest
from ranksafe.checker.registry import Registry
from ranksafe.runs.proof import NoProof, ProofOutcome, prove, run_program

PYTHON = Path(sys.executable)
RAISING = """
def inner():
    raise ValueError("too small: 3")


inner()
"""


def program(folder: Path, expect: str, body: str, *more: str) -> Path:
    file = folder / "program.py"
    lines = ['r"""A sentence.', "", "runs-on: emulated-dp", f"expect: {expect}", *more, '"""']
    file.write_text("\n".join(lines) + "\n" + body, encoding="utf-8")
    return file


def test_success(tmp_path: Path) -> None:
    report = run_program(program(tmp_path, "success", "print('done')"), PYTHON)
    assert report.outcome is ProofOutcome.PROVED


def test_output(tmp_path: Path) -> None:
    file = program(tmp_path, r"output ^loss: 0\.\d+$", "print('begin')\nprint('loss: 0.5')")
    assert run_program(file, PYTHON).outcome is ProofOutcome.PROVED


def test_other_output(tmp_path: Path) -> None:
    report = run_program(program(tmp_path, "output ^loss$", "print('no loss')"), PYTHON)
    assert report.outcome is ProofOutcome.NOT_PROVED
    assert "nothing like '^loss$'" in report.explanation.en


def test_exception_at_its_line(tmp_path: Path) -> None:
    file = program(
        tmp_path,
        "exception ValueError: too small",
        RAISING,
        'frame: raise ValueError("too small: 3")',
    )
    report = run_program(file, PYTHON)
    assert report.outcome is ProofOutcome.PROVED
    assert report.exception is not None
    assert report.exception.blamed is not None
    assert report.exception.blamed.function == "inner"
    assert "raised ValueError in line 9, as declared" in report.explanation.en
    assert "模拟 2 个副本" in report.explanation.zh_cn


@pytest.mark.parametrize(
    ("expect", "frame", "body", "difference"),
    [
        ("exception ValueError: too small", "inner()", RAISING, "the innermost line"),
        ("exception TypeError: too small", "inner()", RAISING, "raised ValueError: too small: 3"),
        ("exception ValueError: too large", "inner()", RAISING, "raised ValueError: too small: 3"),
        ("exception ValueError: x", "inner()", "print(1)", "raised nothing, exit status 0"),
        ("exception ValueError: x", "inner()", "raise SystemExit(3)", "exit status 3"),
    ],
)
def test_not_as_declared(
    tmp_path: Path, expect: str, frame: str, body: str, difference: str
) -> None:
    report = run_program(program(tmp_path, expect, body, f"frame: {frame}"), PYTHON)
    assert report.outcome is ProofOutcome.NOT_PROVED
    assert difference in report.explanation.en


def test_failure_instead_of_success(tmp_path: Path) -> None:
    report = run_program(program(tmp_path, "success", RAISING), PYTHON)
    assert report.outcome is ProofOutcome.NOT_PROVED
    assert report.explanation.en == "raised ValueError: too small: 3"


@pytest.mark.parametrize("expect", ["success", "output done"])
def test_exit_status_counts(tmp_path: Path, expect: str) -> None:
    report = run_program(program(tmp_path, expect, "print('done')\nraise SystemExit(3)"), PYTHON)
    assert report.outcome is ProofOutcome.NOT_PROVED
    assert report.explanation.en == "exit status 3"


def test_a_program_that_never_ends_is_ended(tmp_path: Path) -> None:
    file = program(tmp_path, "success", "import time\ntime.sleep(600)")
    report = run_program(file, PYTHON, timeout_seconds=1.0)
    assert report.outcome is ProofOutcome.NOT_PROVED
    assert "did not end" in report.explanation.en


def test_cancel_ends_the_children_too(tmp_path: Path) -> None:
    mark = tmp_path / "child"
    child = f"import time; open({str(mark)!r}, 'w').close(); time.sleep(600)"
    body = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {child!r}])"
    report = run_program(
        program(tmp_path, "success", body), PYTHON, should_stop=mark.exists, timeout_seconds=60
    )
    assert report.outcome is ProofOutcome.CANCELLED
    assert wait_until(lambda: not any(is_running(pid, str(mark)) for pid in processes()))


def processes() -> list[Path]:
    return [entry for entry in Path("/proc").glob("[0-9]*") if entry.is_dir()]


def is_running(process: Path, word: str) -> bool:
    try:
        return word in (process / "cmdline").read_text()
    except OSError:
        return False


def wait_until(condition: object, seconds: float = 10.0) -> bool:
    assert callable(condition)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return False


def test_a_bad_header_is_told(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text('"""A sentence."""\n')
    report = run_program(file, PYTHON)
    assert report.outcome is ProofOutcome.NOT_PROVED
    assert "runs-on is missing" in report.explanation.en


def test_a_missing_interpreter_is_told(tmp_path: Path) -> None:
    report = run_program(program(tmp_path, "success", ""), tmp_path / "no-python")
    assert report.outcome is ProofOutcome.NOT_RUN
    assert "could not be started" in report.explanation.en


def test_unknown_requirements_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKSAFE_CACHE", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    file = program(tmp_path, "success", "", "requires: transformers==0.0.0.1")
    report = run_program(file, PYTHON)
    assert report.outcome is ProofOutcome.NOT_RUN
    assert "transformers==0.0.0.1" in report.explanation.en


def test_no_proof() -> None:
    registry = Registry.load(entry_points=False)
    with pytest.raises(NoProof, match="no rule RS999"):
        prove("RS999", registry, PYTHON)
    with pytest.raises(NoProof, match="RS001 has no proof"):
        prove("RS001", registry, PYTHON)
