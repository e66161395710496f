"""What is kept here of a run on another host."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ranksafe.runs.remote.record import FILE, RemoteRun, read_record, write_record

RUN = RemoteRun(
    target="ssh:gpu-box",
    host="gpu-box",
    directory="/home/me/.cache/ranksafe/runs/1",
    project="/home/me/.cache/ranksafe/projects/1",
    root="/here/project",
    script="/here/project/train.py",
    working_directory="/here/project",
    lease_seconds=60.0,
    stop_when_lost=False,
    command=("python3", "train.py", "--epochs", "3"),
    ranks=2,
    steps=None,
    started=1.0,
    modified=(("a", "b"),),
    limits=(),
)


def test_it_is_read_as_it_was_written(tmp_path: Path) -> None:
    write_record(RUN, tmp_path)
    assert read_record(tmp_path) == RUN


def test_a_token_among_the_arguments_is_not_kept(tmp_path: Path) -> None:
    write_record(replace(RUN, command=(*RUN.command, "--hub-token", "not-for-files")), tmp_path)
    assert "not-for-files" not in (tmp_path / FILE).read_text(encoding="utf-8")
    found = read_record(tmp_path)
    assert found is not None
    assert found.command[: len(RUN.command)] == RUN.command


def test_what_is_damaged_is_no_record(tmp_path: Path) -> None:
    assert read_record(tmp_path) is None
    (tmp_path / FILE).write_bytes(b'{"target": "ssh:')
    assert read_record(tmp_path) is None
