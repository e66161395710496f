"""``make corpus-fix`` repairs what it can, and complains about a bad repair."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.corpus.fixes import Repaired, complaints, repair

PROGRAM = """\
import torch
import torch.distributed as dist

dist.init_process_group("nccl")
num_nodes = 2
model = torch.nn.Linear(1, 1)
model.to(dist.get_rank())
"""


@pytest.fixture(scope="module")
def repaired(tmp_path_factory: pytest.TempPathFactory) -> Repaired:
    folder = tmp_path_factory.mktemp("package").resolve()
    (folder / "program.py").write_text(PROGRAM, encoding="utf-8")
    result = repair(folder, [])
    assert result is not None
    return result


def test_a_good_repair_changes_the_file_and_has_no_complaint(repaired: Repaired) -> None:
    assert repaired.after != repaired.before
    assert complaints(repaired) == []


def test_a_file_that_does_not_parse_is_named(repaired: Repaired) -> None:
    broken = {name: f"{text}def\n" for name, text in repaired.after.items()}
    assert any("parse" in words for words in complaints(replace(repaired, after=broken)))


def test_a_change_elsewhere_is_named(repaired: Repaired) -> None:
    moved = {name: text.replace("nccl", "gloo") for name, text in repaired.after.items()}
    assert any("no fix names" in words for words in complaints(replace(repaired, after=moved)))


def test_lines_added_elsewhere_are_named(repaired: Repaired) -> None:
    longer = {name: f"import os\n{text}" for name, text in repaired.after.items()}
    assert any("no fix says" in words for words in complaints(replace(repaired, after=longer)))


def test_a_finding_that_stays_is_named(repaired: Repaired) -> None:
    still = replace(repaired, found_after=repaired.found_before)
    assert any("still offers" in words for words in complaints(still))


def test_a_second_change_is_named(repaired: Repaired) -> None:
    again = replace(repaired, changed_again=["program.py"])
    assert complaints(again) == ["program.py: changed by a second repair"]


def test_nothing_to_repair(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import torch\n", encoding="utf-8")
    assert repair(tmp_path.resolve(), []) is None
