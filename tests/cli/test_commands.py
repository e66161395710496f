"""The small commands, and the line itself."""

from __future__ import annotations

import argparse
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from ranksafe import __version__
from ranksafe.cli.commands import COMMANDS, load

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


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(call: Call, command: str) -> None:
    answer = call(command, "--help")
    assert answer.status == 0
    assert answer.out.startswith(f"usage: ranksafe {command}")


@pytest.mark.parametrize(
    ("command", "example"),
    [(name, example) for name, entry in COMMANDS.items() for example in entry.examples],
)
def test_the_examples_of_help_are_understood(command: str, example: str) -> None:
    words = shlex.split(example.partition("ranksafe ")[2] or example)
    words = words[: words.index(">")] if ">" in words else words
    assert words[0] == command
    module = load(command)
    assert module is not None
    parser = argparse.ArgumentParser(exit_on_error=False)
    module.add_arguments(parser, "en")
    parser.parse_args(words[1:])


def test_argparse_speaks_chinese(call: Call) -> None:
    out = call("run", "--help", "--lang", "zh-cn").out
    assert out.startswith("用法：ranksafe run")
    assert re.findall(r"^[A-Za-z ]+[:：]$", out, re.MULTILINE) == []
    assert "显示此帮助并退出" in out
    assert "示例：" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run",), "需要以下参数之一：SCRIPT -m/--module"),
        (("diagnose",), "缺少参数：LOG"),
        (("check", "--gpus"), "参数 --gpus：需要一个值"),
        (("check", "--gpus", "none"), "参数 --gpus：'none' 不是整数"),
        (("check", "--fail-on", "all"), "'all' 不在可选值中"),
        (("rules", "--all"), "无法识别的参数：--all"),
    ],
)
def test_what_is_wrong_with_an_argument_in_chinese(
    call: Call, words: tuple[str, ...], said: str
) -> None:
    answer = call(*words, "--lang", "zh-cn")
    assert answer.status == 2
    assert said in answer.error.replace("参数 --gpus: ", "参数 --gpus：")


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is needed")
def test_completion_in_bash(call: Call, project: Path) -> None:
    (project / "train.py").touch()
    script = project / "completion.sh"
    script.write_text(call("completion", "bash").out, encoding="utf-8")

    def offered(*words: str) -> set[str]:
        typed = " ".join(map(shlex.quote, ("ranksafe", *words)))
        ask = f"source {script}; COMP_WORDS=({typed}); COMP_CWORD={len(words)}; _shtab_ranksafe"
        done = subprocess.run(
            ["bash", "-c", f'{ask}; printf "%s\\n" "${{COMPREPLY[@]}}"'],
            cwd=project, check=True, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        return set(done.stdout.split())

    assert offered("re") == {"rehearse", "report"}
    assert "--statistics" in offered("check", "--stat")
    assert offered("check", "--launcher", "tor") == {"torchrun"}
    assert offered("run", "tra") == {"train.py"}


@pytest.mark.parametrize("shell", ["zsh", "tcsh"])
def test_completion_in_other_shells(call: Call, shell: str) -> None:
    out = call("completion", shell).out
    assert all(command in out for command in COMMANDS)


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
