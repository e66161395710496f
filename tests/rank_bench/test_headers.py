"""Every program of the benchmark says in its header what it claims, and a wrong header is told from a right one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rank_bench.header import (
    PROGRAMS,
    HeaderError,
    Pair,
    folders_with,
    problems,
    read_idioms,
    read_pair,
    read_pairs,
)

AT_LEAST = 120
"""Programs that the benchmark has, twins and idioms counted."""

INCORRECT = '''"""Saves on the first rank, where it also waits.

source: https://github.com/pytorch/pytorch/issues/1
bug: RS401
ranks: 2
expect: RS401
line: dist.barrier()
decidable: yes
shows: hang
"""

import torch.distributed as dist

if dist.get_rank() == 0:
    dist.barrier()
'''
CORRECTED = '''"""Saves on the first rank.

source: https://github.com/pytorch/pytorch/issues/1
bug: RS401
ranks: 2
expect: clean
shows: fine
"""
'''


def test_all_headers_are_valid() -> None:
    assert not list(problems(PROGRAMS))


def test_names_are_unique_and_there_are_enough() -> None:
    names = [pair.name for pair in read_pairs()]
    everything = [*names, *(program.name for program in read_idioms())]
    assert len(set(everything)) == len(everything)
    assert 2 * len(names) + len(read_idioms()) >= AT_LEAST


def test_every_folder_has_a_program() -> None:
    folders = {file.parent for file in PROGRAMS.rglob("*.py")}
    folders -= {folder for folder in folders if folder.parent in folders}  # packages inside a pair
    assert folders == set(folders_with(PROGRAMS))


def written(folder: Path, incorrect: str = INCORRECT, corrected: str = CORRECTED) -> Pair:
    (folder / "incorrect.py").write_text(incorrect, encoding="utf-8")
    (folder / "corrected.py").write_text(corrected, encoding="utf-8")
    return read_pair(folder)


def test_a_right_pair(tmp_path: Path) -> None:
    pair = written(tmp_path)
    assert pair.incorrect.sentence == "Saves on the first rank, where it also waits."
    assert (pair.incorrect.file, pair.incorrect.row) == (tmp_path / "incorrect.py", 15)
    assert (pair.incorrect.ranks, pair.incorrect.shows.kind) == (2, "hang")
    assert pair.corrected.expect is None
    assert pair.corrected.file is None


def test_a_line_in_another_file(tmp_path: Path) -> None:
    (tmp_path / "helper_incorrect.py").write_text("\nwait()\n", encoding="utf-8")
    text = INCORRECT.replace("line: dist.barrier()", "file: helper_incorrect.py\nline: wait()")
    pair = written(tmp_path, text)
    assert (pair.incorrect.file, pair.incorrect.row) == (tmp_path / "helper_incorrect.py", 2)
    assert [file.name for file in pair.incorrect.files] == ["helper_incorrect.py", "incorrect.py"]
    assert [file.name for file in pair.corrected.files] == ["corrected.py"]


def test_what_is_not_decidable_has_a_reason(tmp_path: Path) -> None:
    pair = written(tmp_path, INCORRECT.replace("decidable: yes", "decidable: no: a user's file"))
    assert (pair.incorrect.decidable, pair.incorrect.reason) == (False, "a user's file")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("ranks: 2", "ranks: 2\nrank: 2", "unknown key rank"),
        ("ranks: 2\n", "", "ranks is missing"),
        ("ranks: 2", "ranks: 8", "not 2, 3 or 4"),
        ("ranks: 2", "ranks: 2\nranks: 2", "stands twice"),
        ("ranks: 2", "two ranks", "no `key: value`"),
        ("line: dist.barrier()", "line: dist.barrier(group)", "occurs 0 times"),
        ("if dist.get", "dist.barrier()\nif dist.get", "occurs 2 times"),
        ("line: dist", "file: other.py\nline: dist", "other.py is not beside it"),
        ("expect: RS401", "expect: RS402", "should be RS401"),
        ("bug: RS401", "bug: RS101", "no RS4xx code"),
        ("source: https", "source: see https", "neither an address"),
        ("decidable: yes", "decidable: no", "neither `yes` nor"),
        ("shows: hang", "shows: fine", "begins with none of"),
        ("shows: hang", "shows: error", "needs a regular expression"),
        ("shows: hang", "shows: error (", "is no regular expression"),
        ("\n\nsource", "\nsource", "needs a sentence"),
        ("if dist", "if dist dist", "invalid syntax"),
    ],
)
def test_a_wrong_header_is_told(tmp_path: Path, old: str, new: str, told: str) -> None:
    assert old in INCORRECT
    with pytest.raises(HeaderError) as raised:
        written(tmp_path, INCORRECT.replace(old, new, 1))
    assert told in str(raised.value)
    assert "incorrect.py" in str(raised.value)


def test_twins_belong_together(tmp_path: Path) -> None:
    with pytest.raises(HeaderError, match=r"ranks is 2 in incorrect\.py and 4 in corrected\.py"):
        written(tmp_path, corrected=CORRECTED.replace("ranks: 2", "ranks: 4"))
    (tmp_path / "corrected.py").unlink()
    with pytest.raises(HeaderError, match=r"corrected\.py is missing"):
        read_pair(tmp_path)


def test_an_idiom_stands_alone(tmp_path: Path) -> None:
    written(tmp_path)
    assert not read_idioms(tmp_path)
    (tmp_path / "incorrect.py").unlink()
    assert [program.expect for program in read_idioms(tmp_path)] == [None]
    assert not read_pairs(tmp_path)
    assert not list(problems(tmp_path))
