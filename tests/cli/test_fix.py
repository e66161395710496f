"""``ranksafe fix``: writes what it says, and nothing it was not allowed to."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import DEVICE_MAP, FIXED, Call

SAFE = DEVICE_MAP + "x = 1  # ranksafe: ignore[RS301]\n"


def test_writes_safe_fixes_only(project: Path, call: Call) -> None:
    file = project / "train.py"
    file.write_text(SAFE, encoding="utf-8")
    answer = call("fix", "--launcher", "python", "--select", "RS001,RS301")
    assert answer.status == 0
    assert file.read_text(encoding="utf-8") == DEVICE_MAP + "x = 1\n"
    assert "fixed RS001" in answer.error


def test_unsafe_fixes_when_allowed(project: Path, call: Call) -> None:
    file = project / "train.py"
    file.write_text(DEVICE_MAP, encoding="utf-8")
    answer = call("fix", "--unsafe")
    assert answer.status == 0
    assert file.read_text(encoding="utf-8") == FIXED
    assert call("check", "--fail-on", "information").status == 0


def test_diff_writes_nothing(project: Path, call: Call) -> None:
    file = project / "train.py"
    file.write_text(DEVICE_MAP, encoding="utf-8")
    answer = call("fix", "--unsafe", "--diff")
    assert answer.status == 1
    assert (
        '-model = AutoModelForCausalLM.from_pretrained("org/model", device_map="auto")\n'
        in answer.out
    )
    assert '+model = AutoModelForCausalLM.from_pretrained("org/model")\n' in answer.out
    assert file.read_text(encoding="utf-8") == DEVICE_MAP


def test_standard_input(call: Call) -> None:
    answer = call("fix", "-", "--unsafe", given=DEVICE_MAP)
    assert (answer.status, answer.out) == (0, FIXED)


@pytest.mark.parametrize(
    ("encoding", "head", "newline"),
    [
        ("gbk", "# -*- coding: gbk -*-\n", "\n"),
        ("utf-8-sig", "", "\n"),
        ("utf-8", "", "\r\n"),
        ("latin-1", "# coding: latin-1\n", "\n"),
    ],
)
def test_keeps_encoding_and_line_ends(
    project: Path, call: Call, encoding: str, head: str, newline: str
) -> None:
    word = "é" if encoding == "latin-1" else "模型"

    def content(text: str) -> bytes:
        return (head + text.replace("org/model", word)).replace("\n", newline).encode(encoding)

    file = project / "train.py"
    file.write_bytes(content(DEVICE_MAP))
    assert call("fix", "--unsafe").status == 0
    assert file.read_bytes() == content(FIXED)


def test_what_is_left_gives_status_1(project: Path, call: Call) -> None:
    (project / "train.py").write_text(DEVICE_MAP, encoding="utf-8")
    safe_only = call("fix", "--assume", "transformers==4.40.0")
    check = call("check")
    assert safe_only.status in (0, 1)
    assert check.status == safe_only.status
