"""The headers of the fault matrix can be used, and ranksafe says of each fault what its header claims.

A few rows belong to every run of the tests; all of them take minutes. Fifty repetitions are `make fault-matrix`'s.
"""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest
from ranksafe.localization import Translated
from ranksafe.runs.model import Failure, Outcome, RunResult

from tests.fault_matrix import fault_matrix, own_cluster, own_host
from tests.fault_matrix.execution import Judgement, execute, judge, remove_control_groups
from tests.fault_matrix.header import Fault, HeaderError, read_faults
from tests.targets.slurm_cluster import missing_program
from tests.targets.ssh_server import find_sshd

FAULTS = {fault.identifier: fault for fault in read_faults() if fault.hosts == 1}
WITH_SEVERAL_HOSTS = {fault.identifier: fault for fault in read_faults() if fault.hosts > 1}
IN_EVERY_RUN = (
    "hang_in_collective-broadcast",
    "segmentation_fault",
    "worker_death",
)


@pytest.fixture
def torch_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The interpreter with torch; runs leave their files in a folder of their own."""
    python = Path(os.environ.get("RANKSAFE_TEST_TORCH_PYTHON", "missing"))
    if not python.is_file():
        missing = "RANKSAFE_TEST_TORCH_PYTHON names no Python with torch (make test sets it up)"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    return python


@pytest.mark.torch
@pytest.mark.parametrize("identifier", IN_EVERY_RUN)
def test_a_fault_is_told_right(identifier: str, torch_python: Path) -> None:
    _is_told_right(FAULTS[identifier], torch_python)


@pytest.mark.long
@pytest.mark.torch
@pytest.mark.parametrize("identifier", sorted(set(FAULTS) - set(IN_EVERY_RUN)))
def test_every_other_fault_is_told_right(identifier: str, torch_python: Path) -> None:
    _is_told_right(FAULTS[identifier], torch_python)


@pytest.mark.long
@pytest.mark.torch
@pytest.mark.parametrize("identifier", [*WITH_SEVERAL_HOSTS, "leaves_early", "straggler"])
def test_a_fault_on_two_nodes_is_told_right(identifier: str, torch_python: Path) -> None:
    if missing_program() is not None:
        pytest.skip(f"needs {missing_program()}: apt-get install slurm-wlm munge")
    fault = {**FAULTS, **WITH_SEVERAL_HOSTS}[identifier]
    with own_cluster.own_cluster(torch_python) as own:
        judgement = execute(fault, own_cluster.TARGET, torch_python, own)
    assert judgement.right, judgement


@pytest.mark.torch
@pytest.mark.parametrize(
    "identifier",
    ["exception"]
    + [
        pytest.param(each, marks=pytest.mark.long)
        for each in ("hang_in_collective-recv", "leaves_early", "sigkill")
    ],
)
def test_a_fault_on_a_host_behind_ssh_is_told_right(identifier: str, torch_python: Path) -> None:
    if find_sshd() is None:
        pytest.skip("needs sshd: apt-get install openssh-server")
    with own_host.own_host(torch_python):
        judgement = execute(FAULTS[identifier], own_host.TARGET, None)
    remove_control_groups()
    assert judgement.right, judgement


def _is_told_right(fault: Fault, python: Path) -> None:
    judgement = execute(fault, "local", python)
    remove_control_groups()
    assert judgement.right, judgement


def test_a_header_that_promises_nothing_is_refused(tmp_path: Path) -> None:
    program = tmp_path / "broken.py"
    program.write_text('"""What.\n\nfault: x\noutcome: failed\nrank: 1\n"""\n', encoding="utf-8")
    with pytest.raises(HeaderError, match="missing \\['kind', 'line'\\]"):
        read_faults(tmp_path)


def test_a_line_that_stands_twice_is_refused(tmp_path: Path) -> None:
    header = "fault: x\noutcome: failed\nrank: 1\nkind: exception\nline: wait()"
    program = tmp_path / "twice.py"
    program.write_text(f'"""What.\n\n{header}\n"""\nwait()\nwait()\n', encoding="utf-8")
    with pytest.raises(HeaderError, match="2 lines begin with"):
        read_faults(tmp_path)


def _result(fault: Fault, **changes: object) -> RunResult:
    root = Failure(
        kind="hang",
        code=None,
        rank=1,
        message="",
        filename=str(fault.program),
        line=fault.line,
        column=None,
        end_line=None,
        end_column=None,
        frames=(),
        explanation=Translated("", ""),
    )
    other = dataclasses.replace(root, rank=0, line=fault.waits, root_cause=False)
    return RunResult(
        run_id="x",
        outcome=Outcome.FAILED,
        target="local",
        command=(),
        modified=(),
        limits=(),
        ranks=(),
        failures=(dataclasses.replace(root, **changes), other),  # type: ignore[arg-type]
        seconds=1.0,
        log=None,
        run_directory=None,
    )


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({}, ""),
        ({"rank": 0}, "rank"),
        ({"line": 1}, "line"),
        ({"filename": "/elsewhere/train.py"}, "line"),
        ({"kind": "peer-lost"}, "kind"),
    ],
)
def test_a_judgement_is_strict(changes: dict[str, object], wrong: str) -> None:
    fault = FAULTS["hang_at_a_lock"]
    judgement = judge(fault, _result(fault, **changes), (), simulated=False)
    said = {name for name in ("outcome", "rank", "line", "kind") if not getattr(judgement, name)}
    assert said == ({wrong} if wrong else set())
    assert judgement.right is not bool(wrong)


def test_what_is_left_behind_is_not_right() -> None:
    fault = FAULTS["hang_at_a_lock"]
    assert not judge(fault, _result(fault), (4711,), simulated=False).right


def test_the_table_counts_and_takes_its_place_in_the_page(tmp_path: Path) -> None:
    good = Judgement(
        outcome=True,
        rank=True,
        line=True,
        kind=True,
        orphans=(),
        seconds=2.0,
        simulated=False,
        seen="",
    )
    bad = dataclasses.replace(good, rank=False, seconds=4.0)
    table = fault_matrix.as_markdown([(FAULTS["exception"], [good, bad])], "local")
    assert "| exception | 2 | 2/2 | 1/2 | 2/2 | 2/2 | 2/2 | 3.0 |" in table
    page = tmp_path / "page.md"
    page.write_text(
        "Before.\n\n<!-- table: begin -->\nold\n<!-- table: end -->\nAfter.\n", encoding="utf-8"
    )
    fault_matrix.write_into(page, table)
    text = page.read_text(encoding="utf-8")
    assert text.startswith("Before.\n")
    assert text.endswith("<!-- table: end -->\nAfter.\n")
    assert table in text
    assert "old" not in text
    with pytest.raises(SystemExit, match="slurm table: begin"):
        fault_matrix.write_into(page, table, "slurm:own")
