"""The commands there are. Their modules are imported one at a time, when they are called."""

from __future__ import annotations

import argparse
import importlib
from dataclasses import dataclass
from typing import Final, Protocol, cast

from ranksafe.localization import Language, Translated


class Command(Protocol):
    """What a command module offers."""

    def add_arguments(self, parser: argparse.ArgumentParser, language: Language) -> None:
        """Declare the command's arguments."""

    def execute(self, arguments: argparse.Namespace, language: Language) -> int:
        """Do it and return the exit status."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A command: its module in this folder, what it does, and how it is called."""

    module: str
    summary: Translated
    examples: tuple[str, ...] = ()
    """What stands behind ``ranksafe`` in the examples of ``--help``."""


COMMANDS: Final[dict[str, Entry]] = {
    "check": Entry(
        "check",
        Translated("find multi-GPU pitfalls in files", "检查文件中的多 GPU 陷阱"),
        examples=(
            "check src",
            "check train.py --select RS4 --gpus 8",
            "check --statistics",
            "check --watch",
            "git show :train.py | ranksafe check - --stdin-filename train.py",
        ),
    ),
    "fix": Entry(
        "fix",
        Translated("repair what has a safe fix", "修复有安全修复方案的问题"),
        examples=(
            "fix src --diff",
            "fix train.py",
            "fix train.py --unsafe",
        ),
    ),
    "explain": Entry(
        "explain",
        Translated(
            "show a rule's page, or what each rank does at a line",
            "显示一条规则的说明，或各个 rank 在某一行的行为",
        ),
        examples=(
            "explain RS401",
            "explain train.py:41",
        ),
    ),
    "rules": Entry("rules", Translated("list the rules", "列出所有规则")),
    "run": Entry(
        "run",
        Translated(
            "run a script on GPUs and explain its failure", "在 GPU 上运行脚本并解释失败原因"
        ),
        examples=(
            "run train.py -- --epochs 1",
            "run train.py --gpus 4 --steps 20",
            "run train.py --target ssh:gpu-box",
            "run train.py --target slurm:cluster --gpus 8",
        ),
    ),
    "attach": Entry(
        "attach", Translated("come back to a run on another host", "重新查看其他主机上的运行")
    ),
    "rehearse": Entry(
        "rehearse",
        Translated("run a script as if this machine had N GPUs", "假设本机有 N 个 GPU 来运行脚本"),
        examples=(
            "rehearse train.py",
            "rehearse train.py --gpus 8 --gpu-memory 24GiB",
            "rehearse train.py --steps 0 -- --epochs 1",
        ),
    ),
    "fit": Entry(
        "fit",
        Translated(
            "tell whether a script fits the memory of N GPUs", "判断脚本能否放入 N 个 GPU 的显存"
        ),
        examples=(
            "fit train.py --gpus 8 --device-model h100",
            "fit train.py --gpu-memory 24GiB --must-fit -- --batch-size 8",
            "fit train.py --gpus 2 --search",
        ),
    ),
    "prove": Entry(
        "prove",
        Translated("run a rule's failing program", "运行一条规则的失败示例程序"),
        examples=("prove RS514",),
    ),
    "stacks": Entry(
        "stacks",
        Translated("show where every rank of a run is now", "显示运行中每个 rank 的当前位置"),
    ),
    "diagnose": Entry(
        "diagnose",
        Translated("explain a log, saved or still coming", "解释已保存的日志或正在到来的日志流"),
        examples=(
            "diagnose training.log",
            "kubectl logs -f job/train | ranksafe diagnose -",
        ),
    ),
    "runs": Entry("runs", Translated("list the runs of this project", "列出此项目的运行")),
    "report": Entry(
        "report",
        Translated("write a run's report as one HTML file", "将一次运行的报告写成一个 HTML 文件"),
        examples=(
            "report",
            "report RUN --output report.html",
        ),
    ),
    "compare": Entry(
        "compare",
        Translated("show what changed between two runs", "显示两次运行之间的变化"),
        examples=("compare RUN RUN",),
    ),
    "doctor": Entry(
        "doctor",
        Translated("show what runs on this machine need", "检查本机运行所需的条件"),
        examples=(
            "doctor",
            "doctor --target ssh:gpu-box",
        ),
    ),
    "completion": Entry(
        "completion",
        Translated("print what completes these commands in a shell", "输出 shell 的命令补全脚本"),
        examples=("completion bash > ~/.local/share/bash-completion/completions/ranksafe",),
    ),
    "lsp": Entry("lsp", Translated("start the language server", "启动语言服务器")),
}


def load(command: str) -> Command | None:
    """The module of a command; None where this version lacks it."""
    name = f"ranksafe.cli.{COMMANDS[command].module}"
    try:
        return cast("Command", importlib.import_module(name))
    except ModuleNotFoundError as error:
        if error.name == name:
            return None
        raise
