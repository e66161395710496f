"""The entry of the command line: finds the command, imports its module alone, and hands over.

A command is a module of this folder with ``add_arguments(parser, language)`` and ``execute(arguments, language)``,
which returns the exit status.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import NoReturn

from ranksafe import __version__
from ranksafe.cli.argument_words import speak
from ranksafe.cli.commands import COMMANDS, Entry, load
from ranksafe.cli.streams import drop_output, open_closed_streams, speak_utf8
from ranksafe.cli.terminal import fail
from ranksafe.localization import LANGUAGES, Language, Translated, language_of

USED_WRONGLY = 2
"""Exit status when a command was used wrongly or something it needs is broken."""
CANCELLED = 130
"""Exit status after Ctrl+C, as shells have it."""


_DESCRIPTION = Translated(
    "Rank-safe is to the ranks of a training job what thread-safe is to threads.",
    "rank-safe 之于训练任务的各个 rank，如同 thread-safe 之于线程。",
)
_LANGUAGE_HELP = Translated("language of messages: en or zh-cn", "消息的语言：en 或 zh-cn")
_COMMANDS_TITLE = Translated("commands", "命令")
_EXAMPLES = Translated("examples:", "示例：")
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
    speak(language)
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
    module = load(word)
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


class _Parser(argparse.ArgumentParser):
    """Says what was wrong in one line, where argparse prints all options before it."""

    language: Language = "en"

    def error(self, message: str) -> NoReturn:
        """Print what was wrong and where to read on, and exit."""
        text = _USED_WRONGLY.filled(message=message, command=self.prog)
        self.exit(fail(text.in_language(self.language), USED_WRONGLY))


def _parser(command: str, language: Language) -> argparse.ArgumentParser:
    entry = COMMANDS[command]
    parser = _Parser(
        prog=f"ranksafe {command}",
        description=entry.summary.in_language(language),
        epilog=_epilog(entry, language),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.language = language
    parser.add_argument(
        "--lang", choices=LANGUAGES, default=language, help=_LANGUAGE_HELP.in_language(language)
    )
    return parser


def _epilog(entry: Entry, language: Language) -> str | None:
    if not entry.examples:
        return None
    lines = [
        f"  {line}" if "| ranksafe" in line else f"  ranksafe {line}" for line in entry.examples
    ]
    return "\n".join([_EXAMPLES.in_language(language), *lines])


def _without_command(words: Sequence[str], language: Language) -> int:
    """``--help``, ``--version``, or nothing at all."""
    summaries = "\n".join(
        f"  {name:<11}{entry.summary.in_language(language)}" for name, entry in COMMANDS.items()
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
