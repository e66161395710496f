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
from difflib import get_close_matches
from pathlib import Path
from typing import Final, NoReturn, Protocol, cast

from ranksafe import __version__
from ranksafe.cli.streams import drop_output, open_closed_streams, speak_utf8
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
    "explain": _Entry(
        "explain",
        Translated(
            "show a rule's page, or what each rank does at a line",
            "显示一条规则的说明，或各个 rank 在某一行的行为",
        ),
    ),
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
    "diagnose": _Entry(
        "diagnose",
        Translated("explain a log, saved or still coming", "解释已保存的日志或正在到来的日志流"),
    ),
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
_UNKNOWN_COMMAND = Translated(
    "there is no command `{word}`; `ranksafe --help` lists them",
    "没有命令 `{word}`；`ranksafe --help` 会列出所有命令",
)
_ALIKE = Translated(" (`{command}`?)", "（是否指 `{command}`？）")
_USED_WRONGLY = Translated(
    "{message} (see `{command} --help`)", "{message}（见 `{command} --help`）"
)
_NO_WORKING_DIRECTORY = Translated(
    "the working directory is no longer there", "当前工作目录已不存在"
)


def run_command_line() -> None:
    """Run the command line of this process and exit with its status."""
    sys.exit(main(sys.argv[1:]))


def main(words: Sequence[str]) -> int:
    """Run one command; returns its exit status. Ends early without noise when the reader of the output goes away."""
    language = _language(words)
    open_closed_streams()
    speak_utf8()
    try:
        try:
            return _execute(words, language)
        finally:
            # Here, where its failure can still be told; also after argparse has printed its help.
            sys.stdout.flush()
    except KeyboardInterrupt:
        return CANCELLED
    except BrokenPipeError:
        drop_output()
        return 0
    except OSError as error:
        # A full disk below standard output, most of all: commands word what they expect themselves.
        drop_output()
        place = "" if error.filename is None else f"{error.filename}: "
        return fail(f"{place}{error.strerror or error}", USED_WRONGLY)


def _execute(words: Sequence[str], language: Language) -> int:
    if not _has_working_directory():
        return fail(_NO_WORKING_DIRECTORY.in_language(language), USED_WRONGLY)
    word = _first_word(words)
    if word is None:
        return _without_command(words, language)
    if word not in COMMANDS:
        return _unknown_command(word, language)
    module = _load(word)
    if module is None:
        return fail(_NOT_THERE.filled(command=word).in_language(language), USED_WRONGLY)
    parser = _parser(word, language)
    module.add_arguments(parser, language)
    rest = list(words)
    rest.remove(word)
    return module.execute(parser.parse_args(rest), language)


def _has_working_directory() -> bool:
    try:
        Path.cwd()
    except OSError:
        return False
    return True


def _first_word(words: Sequence[str]) -> str | None:
    """The first word that is not an option or the value of ``--lang``."""
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word == "--lang":
            skip = True
        elif not word.startswith("-"):
            return word
    return None


def _load(command: str) -> Command | None:
    name = f"ranksafe.cli.{COMMANDS[command].module}"
    try:
        return cast("Command", importlib.import_module(name))
    except ModuleNotFoundError as error:
        if error.name == name:
            return None
        raise


class _Parser(argparse.ArgumentParser):
    """Says what was wrong in one line, where argparse prints all options before it."""

    language: Language = "en"

    def error(self, message: str) -> NoReturn:
        """Print what was wrong and where to read on, and exit."""
        text = _USED_WRONGLY.filled(message=message, command=self.prog)
        self.exit(fail(text.in_language(self.language), USED_WRONGLY))


def _parser(command: str, language: Language) -> argparse.ArgumentParser:
    parser = _Parser(
        prog=f"ranksafe {command}",
        description=COMMANDS[command].summary.in_language(language),
        allow_abbrev=False,
    )
    parser.language = language
    parser.add_argument(
        "--lang", choices=LANGUAGES, default=language, help=_LANGUAGE_HELP.in_language(language)
    )
    return parser


def _without_command(words: Sequence[str], language: Language) -> int:
    """``--help``, ``--version``, or nothing at all."""
    summaries = "\n".join(
        f"  {name:<10} {entry.summary.in_language(language)}" for name, entry in COMMANDS.items()
    )
    parser = _Parser(
        prog="ranksafe",
        description=_DESCRIPTION.in_language(language),
        epilog=f"{_COMMANDS_TITLE.in_language(language)}:\n{summaries}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.language = language
    parser.add_argument("--version", action="version", version=f"ranksafe {__version__}")
    parser.add_argument("--lang", choices=LANGUAGES, help=_LANGUAGE_HELP.in_language(language))
    parser.add_argument("command", metavar="COMMAND", choices=list(COMMANDS), nargs="?")
    parser.parse_args(words)
    parser.print_help()
    return USED_WRONGLY


def _unknown_command(word: str, language: Language) -> int:
    alike = get_close_matches(word, COMMANDS, n=1)
    text = _UNKNOWN_COMMAND.filled(word=word).in_language(language)
    if alike:
        text += _ALIKE.filled(command=alike[0]).in_language(language)
    return fail(text, USED_WRONGLY)


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
