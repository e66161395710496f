"""The entry of the command line: finds the command, imports its module alone, and hands over.

A command is a module of this folder with ``add_arguments(parser, language)`` and ``execute(arguments, language)``,
which returns the exit status.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol, cast

from ranksafe import __version__
from ranksafe.cli.terminal import fail
from ranksafe.localization import LANGUAGES, Language, Translated, language_of

USED_WRONGLY = 2
"""Exit status when a command was used wrongly or something it needs is broken."""
CANCELLED = 130
"""Exit status after Ctrl+C, as shells have it."""


class Command(Protocol):
    """What a command module offers."""

    def add_arguments(self, parser: argparse.ArgumentParser, language: Language) -> None:
        """Declare the command's arguments."""

    def execute(self, arguments: argparse.Namespace, language: Language) -> int:
        """Do it and return the exit status."""


@dataclass(frozen=True, slots=True)
class _Entry:
    module: str
    summary: Translated


COMMANDS: Final[dict[str, _Entry]] = {
    "check": _Entry(
        "check", Translated("find multi-GPU pitfalls in files", "检查文件中的多 GPU 陷阱")
    ),
    "fix": _Entry("fix", Translated("repair what has a safe fix", "修复有安全修复方案的问题")),
    "explain": _Entry("explain", Translated("show a rule's page", "显示一条规则的说明")),
    "rules": _Entry("rules", Translated("list the rules", "列出所有规则")),
    "run": _Entry(
        "run",
        Translated(
            "run a script on GPUs and explain its failure", "在 GPU 上运行脚本并解释失败原因"
        ),
    ),
    "attach": _Entry(
        "attach", Translated("come back to a run on another host", "重新查看其他主机上的运行")
    ),
    "rehearse": _Entry(
        "rehearse",
        Translated("run a script as if this machine had N GPUs", "假设本机有 N 个 GPU 来运行脚本"),
    ),
    "prove": _Entry(
        "prove", Translated("run a rule's failing program", "运行一条规则的失败示例程序")
    ),
    "stacks": _Entry(
        "stacks",
        Translated("show where every rank of a run is now", "显示运行中每个 rank 的当前位置"),
    ),
    "diagnose": _Entry("diagnose", Translated("explain a saved log", "解释已保存的日志")),
    "runs": _Entry("runs", Translated("list the runs of this project", "列出此项目的运行")),
    "report": _Entry(
        "report",
        Translated("write a run's report as one HTML file", "将一次运行的报告写成一个 HTML 文件"),
    ),
    "compare": _Entry(
        "compare", Translated("show what changed between two runs", "显示两次运行之间的变化")
    ),
    "doctor": _Entry(
        "doctor", Translated("show what runs on this machine need", "检查本机运行所需的条件")
    ),
    "lsp": _Entry("lsp", Translated("start the language server", "启动语言服务器")),
}

_DESCRIPTION = Translated(
    "Rank-safe is to the ranks of a training job what thread-safe is to threads.",
    "rank-safe 之于训练任务的各个 rank，如同 thread-safe 之于线程。",
)
_LANGUAGE_HELP = Translated("language of messages: en or zh-cn", "消息的语言：en 或 zh-cn")
_COMMANDS_TITLE = Translated("commands", "命令")
_NOT_THERE = Translated(
    "the command `{command}` is not part of this version", "此版本不包含命令 `{command}`"
)


def run_command_line() -> None:
    """Run the command line of this process and exit with its status."""
    sys.exit(main(sys.argv[1:]))


def main(words: Sequence[str]) -> int:
    """Run one command; returns its exit status. Ends early without noise when the reader of the output goes away."""
    language = _language(words)
    _speak_utf8()
    command = _command_in(words)
    try:
        if command is None:
            return _without_command(words, language)
        module = _load(command)
        if module is None:
            return fail(_NOT_THERE.filled(command=command).in_language(language), USED_WRONGLY)
        parser = _parser(command, language)
        module.add_arguments(parser, language)
        rest = list(words)
        rest.remove(command)
        status = module.execute(parser.parse_args(rest), language)
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        return CANCELLED
    except BrokenPipeError:
        # What is still buffered cannot be written either: give the interpreter nothing to complain about.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _command_in(words: Sequence[str]) -> str | None:
    """The first word that is not an option or the value of ``--lang``."""
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word == "--lang":
            skip = True
        elif word in COMMANDS:
            return word
        elif not word.startswith("-"):
            return None
    return None


def _load(command: str) -> Command | None:
    name = f"ranksafe.cli.{COMMANDS[command].module}"
    try:
        return cast("Command", importlib.import_module(name))
    except ModuleNotFoundError as error:
        if error.name == name:
            return None
        raise


def _parser(command: str, language: Language) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"ranksafe {command}",
        description=COMMANDS[command].summary.in_language(language),
        allow_abbrev=False,
    )
    parser.add_argument(
        "--lang", choices=LANGUAGES, default=language, help=_LANGUAGE_HELP.in_language(language)
    )
    return parser


def _without_command(words: Sequence[str], language: Language) -> int:
    """``--help``, ``--version``, nothing at all, or a word that is no command."""
    summaries = "\n".join(
        f"  {name:<10} {entry.summary.in_language(language)}" for name, entry in COMMANDS.items()
    )
    parser = argparse.ArgumentParser(
        prog="ranksafe",
        description=_DESCRIPTION.in_language(language),
        epilog=f"{_COMMANDS_TITLE.in_language(language)}:\n{summaries}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"ranksafe {__version__}")
    parser.add_argument("--lang", choices=LANGUAGES, help=_LANGUAGE_HELP.in_language(language))
    parser.add_argument("command", metavar="COMMAND", choices=list(COMMANDS), nargs="?")
    parser.parse_args(words)
    parser.print_help()
    return USED_WRONGLY


def _language(words: Sequence[str]) -> Language:
    """From ``--lang`` (which the parser checks later), else from the locale."""
    for word, following in zip(words, [*words[1:], ""], strict=False):
        if word == "--":
            break
        if word.startswith("--lang="):
            return language_of(word.removeprefix("--lang="))
        if word == "--lang":
            return language_of(following)
    environment = os.environ
    return language_of(
        environment.get("LC_ALL") or environment.get("LC_MESSAGES") or environment.get("LANG")
    )


def _speak_utf8() -> None:
    """Messages and source lines are not ASCII; a terminal or pipe with another encoding gets what it can show."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            encoding = (stream.encoding or "").lower().replace("_", "-")
            is_ascii = encoding in ("ascii", "us-ascii", "ansi-x3.4-1968")
            reconfigure(
                errors="backslashreplace", encoding="utf-8" if is_ascii else stream.encoding
            )
