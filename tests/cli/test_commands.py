"""The small commands, and the line itself."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from ranksafe import __version__

from tests.cli.conftest import ROOT, Call


def test_version_and_help(call: Call) -> None:
    assert call("--version").out == f"ranksafe {__version__}\n"
    answer = call("--help")
    assert answer.status == 0
    assert "check" in answer.out
    assert "检查文件" in call("--help", "--lang", "zh-cn").out


def test_without_a_command_or_with_an_unknown_one(call: Call) -> None:
    assert call().status == 2
    answer = call("chekc")
    assert answer.status == 2
    assert "chekc" in answer.error


@pytest.mark.parametrize(
    "command", ["check", "fix", "explain", "rules", "prove", "run", "diagnose", "lsp"]
)
def test_every_command_has_help(call: Call, command: str) -> None:
    answer = call(command, "--help")
    assert answer.status == 0
    assert answer.out.startswith(f"usage: ranksafe {command}")


def test_explain(call: Call) -> None:
    assert call("explain", "RS001").out.startswith("# unused-suppression (RS001)")
    assert "## 作用" in call("explain", "unused-suppression", "--lang", "zh-cn").out
    assert call("explain", "RS999").status == 2


def test_rules(call: Call) -> None:
    listed = json.loads(call("rules", "--output-format", "json").out)
    assert {"RS001", "RS201"} <= {rule["code"] for rule in listed}
    text = call("rules").out
    assert all(rule["code"] in text for rule in listed)


def test_messages_reach_an_ascii_terminal(call: Call) -> None:
    answer = call("rules", "--lang", "zh-cn", PYTHONIOENCODING="ascii")
    assert answer.status == 0
    assert "没有" in answer.out


def test_a_reader_that_goes_away_is_no_error() -> None:
    line = f"{sys.executable} -m ranksafe rules --output-format json | head -c 1"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {line}"],
        cwd=ROOT / "server",
        capture_output=True,
        check=False,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{ROOT / 'server'}:{ROOT / 'rules'}"},
    )
    assert done.stdout == b"["
    assert done.stderr == b""
