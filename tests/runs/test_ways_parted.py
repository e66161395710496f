"""Failures of ranks that did not call the same collectives, with the place where they parted, from a run's folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ranksafe.localization import Translated
from ranksafe.runs.compared_ranks.ways_parted import with_parting
from ranksafe.runs.explain.locate import UserCode
from ranksafe.runs.model import Failure, Frame

_PROGRAM = """\
def main(rank):
    for batch in batches(rank):
        if bad(batch):
            continue
        step(batch)
    reduce()
"""


def _failure(path: Path, kind: str, rank: int, line: int, *, root: bool = True) -> Failure:
    nothing = Translated("", "")
    frame = Frame(str(path), line, "main", in_user_code=True)
    told = Failure.without_place(kind, Translated("It waits.", "它在等待。"), nothing, "en")
    return replace(told, rank=rank, filename=str(path), line=line, frames=(frame,), root_cause=root)


def _with_parting(folder: Path, *failures: Failure, executed: dict[int, str]) -> list[Failure]:
    path = folder / "train.py"
    for rank, lines in executed.items():
        text = "".join(f"{line}\t{path}\n" for line in lines.split())
        (folder / f"rank{rank}.reached").write_text(text, encoding="utf-8")
    return with_parting(failures, folder, None, UserCode([folder], folder), "en")


def test_the_roots_say_where_the_ranks_parted_and_carry_the_lines(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(_PROGRAM, encoding="utf-8")
    failures = (
        _failure(path, "hang", 0, 5),
        _failure(path, "hang", 1, 6),
        _failure(path, "peer-lost", 1, 6, root=False),
        _failure(path, "user-error", 1, 6),
    )
    found = _with_parting(tmp_path, *failures, executed={0: "1 2 3 5", 1: "1 2 3 4 5 6"})
    where = "rank 1 left by `continue` at train.py:4 (under the condition at train.py:3), rank 0 did not"
    assert [each.message for each in found[:2]] == [f"It waits; {where}"] * 2
    assert found[0].related == ((str(path), 4), (str(path), 3), (str(path), 6))
    assert found[2:] == list(failures[2:])


def test_without_all_lines_nothing_is_said(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(_PROGRAM, encoding="utf-8")
    failure = _failure(path, "hang", 0, 5)
    for executed in ({}, {0: "1 2 3 5"}, {0: "1 2 3 5", 1: "1 2 3 4 0"}):
        (found,) = _with_parting(tmp_path, failure, executed=executed)
        assert found.message == failure.message


def test_stacks_of_different_threads_are_not_compared(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(_PROGRAM, encoding="utf-8")
    one = _failure(path, "hang", 0, 5)
    other = replace(one, rank=1, frames=(Frame(str(path), 6, "save", in_user_code=True),))
    executed = {0: "1 2 3 5", 1: "1 2 3 4 5 6"}
    found = _with_parting(tmp_path, one, other, executed=executed)
    assert [each.message for each in found] == ["It waits.", "It waits."]
