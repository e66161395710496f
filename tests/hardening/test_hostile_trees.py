"""Promise: a file that cannot be read or decoded is that file's own message; all others are checked and repaired."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hardening.measured import MIB, ranksafe
from tests.hardening.test_hostile_messages import WARNED

FIXED = WARNED.replace(', device_map="auto"', "")
ENCODINGS = (
    *("rot13", "hex", "base64", "zlib", "bz2", "uu", "quopri"),
    *("punycode", "idna", "undefined", "unicode_escape", "utf-7", "utf-16", "utf-32", "mbcs"),
    *("nonsense", "../../x", "a" * 500, "utf-8-sig", "cp65001"),
)


def in_encoding(encoding: str) -> Callable[[Path], object]:
    return lambda path: path.write_text(f"# coding: {encoding}\n{WARNED}")


def pipe(path: Path) -> None:
    os.mkfifo(path)


def to_endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def to_itself(path: Path) -> None:
    path.symlink_to(path.name)


def to_folder(path: Path) -> None:
    path.symlink_to(".")


HOSTILE: dict[str, Callable[[Path], object]] = {
    **{f"coding {encoding[:20]}": in_encoding(encoding) for encoding in ENCODINGS},
    "long punycode": lambda path: path.write_text(
        "# coding: punycode\n" + "import torch  # a-" * 20_000
    ),
    "undecodable": lambda path: path.write_bytes(b"import torch # \xff\n"),
    "NUL": lambda path: path.write_bytes(b"import torch\0"),
    "folder": lambda path: path.mkdir(),
    "pipe": pipe,
    "link to an endless file": to_endless,
    "link to itself": to_itself,
    "link to the folder": to_folder,
    "link to nothing": lambda path: path.symlink_to("nothing"),
    "link to what says something later": lambda path: path.symlink_to("/proc/kmsg"),
    "brackets in brackets": lambda path: path.write_text(f"import torch\nx = {'(' * 90_000}\n"),
    "operators in a row": lambda path: path.write_text(f"import torch\nx = {'-' * 90_000}1\n"),
    "sums": lambda path: path.write_text(f"import torch\nx = {'1+' * 90_000}1\n"),
    "attributes": lambda path: path.write_text(f"import torch\nx = torch{'.a' * 90_000}\n"),
    "a number too long": lambda path: path.write_text(f"import torch\nx = {'9' * 90_000}\n"),
    "lone surrogate": lambda path: path.write_bytes(b"import torch # \xed\xa0\x80\n"),
}


@pytest.mark.parametrize("command", ["check", "fix"])
def test_one_file_stops_no_other(tmp_path: Path, command: str) -> None:
    """All of them in one tree, between files with a finding."""
    folder = tmp_path / "project"
    folder.mkdir()
    for number, make in enumerate(HOSTILE.values()):
        make(folder / f"m{number:02}.py")
    for name in ("a.py", "m10_.py", "z.py"):
        (folder / name).write_text(WARNED)
    words = ["check", "--no-cache"] if command == "check" else ["fix", "--unsafe"]
    done = ranksafe(*words, ".", folder=folder)
    assert "Traceback" not in done.error, done.error
    for name in ("a.py", "m10_.py", "z.py"):
        if command == "check":
            assert f"{name}:5:" in done.out
        else:
            assert (folder / name).read_text() == FIXED


@pytest.mark.long
@pytest.mark.parametrize("name", HOSTILE)
def test_each_is_told_or_checked(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    HOSTILE[name](folder / "hostile.py")
    done = ranksafe("check", "--no-cache", "hostile.py", folder=folder)
    assert "Traceback" not in done.error, done.error
    assert done.status in (0, 1, 2)
    assert done.peak < 400 * MIB


@pytest.mark.long
@pytest.mark.parametrize(
    "name", ["pyproject.toml", "ranksafe.toml", ".gitignore", "train.sh", ".venv"]
)
@pytest.mark.parametrize("leads_to", ["/dev/zero", "/proc/kmsg", "pipe"])
def test_files_around_are_read_no_further(tmp_path: Path, name: str, leads_to: str) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / ".git").mkdir()
    (folder / "train.py").write_text(WARNED)
    os.mkfifo(folder / "pipe")
    (folder / name).symlink_to(leads_to)
    done = ranksafe("check", "--no-cache", ".", folder=folder)
    assert "Traceback" not in done.error, done.error
    assert done.status in (1, 2)
    assert done.peak < 400 * MIB


@pytest.mark.skipif(sys.platform == "darwin", reason="its file systems have no such names")
@pytest.mark.parametrize("form", ["text", "json", "github", "gitlab", "sarif"])
def test_a_name_that_is_no_text_is_told_in_every_format(tmp_path: Path, form: str) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / os.fsdecode(b"\xff.py")).write_text(WARNED)
    done = ranksafe("check", "--no-cache", "--output-format", form, ".", folder=folder)
    assert ("RS201" in done.out, done.error, done.status) == (True, "", 1)
