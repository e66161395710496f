"""What is kept of long outputs, and how it is followed while it is written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from ranksafe.runs import kept_output
from ranksafe.runs.kept_output import KeptOutput, parts, read_end
from ranksafe.runs.log import CombinedLog
from ranksafe.runs.output import OutputFollower
from ranksafe.runs.targets.protocol import Output


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_output, "HEAD_BYTES", 1000)
    monkeypatch.setattr(kept_output, "PART_BYTES", 500)


def _lines(first: int, last: int) -> bytes:
    return b"".join(b"line %04d\n" % number for number in range(first, last))


def _size(folder: Path) -> int:
    return sum(each.stat().st_size for each in folder.iterdir())


def test_the_beginning_the_end_and_what_is_telling_stay(tmp_path: Path) -> None:
    kept = KeptOutput(str(tmp_path / "rank0.stderr"))
    kept.write(_lines(0, 500))
    kept.write(b"NCCL WARN of it\n")
    kept.write(_lines(500, 5000))
    kept.close()
    assert (tmp_path / "rank0.stderr").read_bytes() == _lines(0, 100)
    assert _size(tmp_path) < 1000 + (kept_output.KEPT_PARTS + 1) * 500 + 5000
    end = read_end(str(tmp_path / "rank0.stderr"), 800)
    assert end.endswith(_lines(4920, 5000))
    assert b"NCCL WARN of it\n" in end


def test_an_end_that_begins_in_the_first_file_is_read_from_both(tmp_path: Path) -> None:
    kept = KeptOutput(str(tmp_path / "rank0.stderr"))
    kept.write(_lines(0, 120))
    kept.close()
    assert read_end(str(tmp_path / "rank0.stderr"), 10**6) == _lines(0, 120)
    assert read_end(str(tmp_path / "rank0.stderr"), 500) == _lines(70, 120)


def test_a_follower_reads_one_part_after_the_other(tmp_path: Path) -> None:
    kept = KeptOutput(str(tmp_path / "rank3.stdout"))
    follower = OutputFollower(tmp_path)
    found: list[Output] = []
    for first in range(0, 3000, 37):
        kept.write(_lines(first, first + 37))
        found += follower.new_lines()
    found += follower.new_lines(final=True)
    text = "".join(f"{each.text}\n" for each in found)
    assert text.encode() == _lines(0, 3034)
    assert {each.rank for each in found} == {3}
    assert len(parts(str(tmp_path / "rank3.stdout"))) <= kept_output.KEPT_PARTS + 1


def test_a_follower_that_comes_late_says_that_something_is_missing(tmp_path: Path) -> None:
    kept = KeptOutput(str(tmp_path / "rank0.stdout"))
    kept.write(_lines(0, 3000))
    found = OutputFollower(tmp_path).new_lines(final=True)
    assert [each.stream for each in found].count("status") == 1
    assert found[-1].text.encode() + b"\n" == _lines(2800, 3000)[-len(found[-1].text) - 1 :]


def test_a_disk_that_cannot_be_written_is_a_trouble_and_no_error(tmp_path: Path) -> None:
    kept = KeptOutput(str(tmp_path / "missing" / "rank0.stdout"))
    kept.write(b"text")
    assert kept.trouble is not None
    kept.write(b"more")


def test_a_long_log_becomes_one_file(tmp_path: Path) -> None:
    log = CombinedLog(tmp_path / "log.txt")
    for number in range(3000):
        log.write(Output(0, "stdout", f"line {number:04}"))
    log.write(Output(0, "stderr", "an open", goes_on=True))
    log.write(Output(0, "stderr", " line\nand one"))
    log.close()
    text = (tmp_path / "log.txt").read_text()
    assert text.startswith("[rank 0] line 0000\n")
    assert text.endswith("[rank 0] an open line\n[rank 0] and one\n")
    assert len(text) < 5000
    assert sorted(os.listdir(tmp_path)) == ["log.txt", "log.txt.length"]


def test_lines_that_are_no_text_keep_their_bytes(tmp_path: Path) -> None:
    (tmp_path / "rank0.stdout").write_bytes(bytes(range(256)) + b"\xe4\xb8")
    found = OutputFollower(tmp_path).new_lines(final=True)
    text = "\n".join(each.text for each in found)
    expected = bytes(each for each in range(256) if each != ord("\r")) + b"\xe4\xb8"
    # Of a line with a carriage return the last state is shown.
    assert text.encode("utf-8", "surrogateescape") == expected.replace(b"\x0b\x0c", b"")
