"""Where the ways of two ranks parted, by the lines that each executed: no torch, no ranks."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest
from ranksafe.runs.compared_ranks.parted import Parting, Way, parting_of
from ranksafe.runs.compared_ranks.trails import Trail, parting_of_trails
from ranksafe.runs.model import Frame


class _Stop(BaseException):
    """A rank waits."""


def _way(path: Path, rank: int, trails: dict[int, Trail] | None = None) -> Way:
    """Execute a program that calls ``wait`` where it waits for ever, and note its lines as a rank's agent does."""
    code: CodeType = compile(path.read_text(encoding="utf-8"), str(path), "exec")
    lines: set[int] = set()
    trail: list[tuple[str, int]] = []
    parts: list[tuple[tuple[str, int, str] | None, tuple[tuple[str, int], ...]]] = []
    frames: list[Frame] = []

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        if frame.f_code.co_filename == str(path):
            if event == "line":
                lines.add(frame.f_lineno)
                trail.append((str(path), frame.f_lineno))
            return trace
        return None

    def met(name: str = "met") -> None:
        parts.append((("0", len(parts), name), tuple(trail)))
        trail.clear()

    def wait() -> None:
        met("wait")
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename == str(path):
            name = frame.f_code.co_name
            frames.insert(0, Frame(str(path), frame.f_lineno, name, in_user_code=True))
            frame = frame.f_back
        raise _Stop

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        exec(code, {"rank": rank, "wait": wait, "met": met, "__name__": "__main__"})
    except _Stop:
        pass
    finally:
        sys.settrace(before)
    if trails is not None:
        trails[rank] = Trail((*parts, (None, tuple(trail))))
    return Way(rank, {path: frozenset(lines)}, tuple(frames))


def _parting(folder: Path, program: str) -> tuple[Parting | None, Sequence[str]]:
    """Rank 0 waits, rank 1 has ended."""
    path = folder / "train.py"
    path.write_text(textwrap.dedent(program), encoding="utf-8")
    found = parting_of(_way(path, 0), _way(path, 1))
    source = path.read_text(encoding="utf-8").splitlines()
    return found, [] if found is None else [source[line - 1].strip() for line in found.lines]


@pytest.mark.parametrize(
    ("program", "lines", "word"),
    [
        (
            """
            if rank == 0:
                met()
                wait()
            """,
            ["if rank == 0:"],
            "rank 0 took the branch",
        ),
        (
            """
            def main():
                if rank == 1:
                    return
                wait()
            main()
            """,
            ["return", "if rank == 1:"],
            "rank 1 left by `return`",
        ),
        (
            """
            for step in range(4):
                met()
                if rank == 1 and step == 2:
                    break
                if step == 3:
                    wait()
            """,
            ["break", "if rank == 1 and step == 2:"],
            "rank 1 left by `break`",
        ),
        (
            """
            for step in range(4):
                if rank == 1 and step == 2:
                    break
                wait() if step == 2 else met()
            """,
            ["break", "if rank == 1 and step == 2:"],
            "rank 1 left by `break`",
        ),
        (
            """
            for step in range(4):
                try:
                    if rank == 1 and step == 2:
                        int("no number")
                    wait() if step == 2 else met()
                except ValueError:
                    pass
            """,
            ["except ValueError:"],
            "rank 1 handled an exception",
        ),
        (
            """
            def step(number):
                wait() if number == 2 else met()
            for number in range(3 - rank):
                step(number)
            """,
            ["for number in range(3 - rank):"],
            "rank 0 is in a pass of the loop",
        ),
        # Both have left a pass by this, so it decides nothing.
        (
            """
            for step in range(4):
                if (step + rank) % 2:
                    continue
                wait() if rank == 0 and step == 2 else met()
            """,
            ["for step in range(4):"],
            "rank 0 is in a pass of the loop",
        ),
        (
            """
            for epoch in range(2):
                for number in range(3 - rank):
                    wait() if (epoch, number) == (1, 2) else met()
            """,
            ["for number in range(3 - rank):", "for epoch in range(2):"],
            "or of the one around it",
        ),
    ],
)
def test_the_place_that_decides_is_named(
    tmp_path: Path, program: str, lines: Sequence[str], word: str
) -> None:
    found, named = _parting(tmp_path, program)
    assert found is not None
    assert named == lines
    assert word in found.text.en


@pytest.mark.parametrize(
    "program",
    [
        # Somebody else's exit, and a branch that decides nothing about the line.
        """
        def report():
            if rank == 1:
                return
        report()
        if rank == 1:
            met()
        wait() if rank == 0 else met()
        """,
        # Both have been in the branch: the lines do not tell.
        """
        if True:
            wait() if rank == 0 else met()
        """,
        # What comes after the line.
        """
        def main():
            wait() if rank == 0 else met()
            return
        main()
        """,
    ],
)
def test_what_decides_nothing_is_not_named(tmp_path: Path, program: str) -> None:
    assert _parting(tmp_path, program)[0] is None


@pytest.mark.parametrize(
    ("program", "lines", "word"),
    [
        # Both have left by this before, in other steps.
        (
            """
            def step(number):
                for epoch in range(3):
                    if epoch == 2 - (number == 2 and rank):
                        print("enough")
                        break
                    wait() if (number, epoch) == (2, 1) and not rank else met()
            for number in range(4):
                step(number)
            """,
            ["break", "if epoch == 2 - (number == 2 and rank):"],
            "rank 1 left by `break`",
        ),
        # Both have taken the branch before, and one of them says something on the way.
        (
            """
            best = [9.0, 9.0]
            def report():
                return 0
            def save():
                report()
                wait() if best[rank] == 5.0 else met()
            for loss in ((7.0, 7.0), (5.0, 8.0)):
                met()
                if rank == 0:
                    report()
                if loss[rank] < best[rank]:
                    best[rank] = loss[rank]
                    save()
                report()
                met()
            """,
            ["if loss[rank] < best[rank]:"],
            "rank 0 took the branch",
        ),
        # A call that was left out was matched with the next one.
        (
            """
            def work(number):
                int("none" if rank and number == 1 else "1")
                wait() if number == 4 and not rank else met()
            for number in range(5):
                try:
                    work(number)
                except ValueError:
                    pass
            met("summed")
            """,
            ["except ValueError:"],
            "rank 1 handled an exception",
        ),
        # What failed before is no longer seen in the lines.
        (
            """
            def work(number):
                int("none" if number == 3 - rank else "1")
                wait() if number == 2 else met()
            for number in range(1, 4):
                try:
                    work(number)
                except ValueError:
                    print("failed")
            met()
            """,
            ["except ValueError:"],
            "rank 1 handled an exception",
        ),
    ],
)
def test_the_last_lines_tell_where_the_lines_of_a_whole_run_do_not(
    tmp_path: Path, program: str, lines: Sequence[str], word: str
) -> None:
    path = tmp_path / "train.py"
    path.write_text(textwrap.dedent(program), encoding="utf-8")
    trails: dict[int, Trail] = {}
    found = parting_of_trails(_way(path, 0, trails), _way(path, 1, trails), trails)
    source = path.read_text(encoding="utf-8").splitlines()
    assert found is not None
    assert [source[line - 1].strip() for line in found.lines] == lines
    assert word in found.text.en
