"""``ranksafe completion bash``: the script by which a shell completes commands, options, choices and files."""

from __future__ import annotations

import argparse
from typing import Final

from ranksafe.cli.commands import COMMANDS, load
from ranksafe.localization import LANGUAGES, Language, Translated

_SHELLS: Final = ("bash", "zsh", "tcsh")
"""Those that shtab 1.7 to 1.13 knows."""
_SHELL = Translated("the shell", "shell 的名称")
_OF_FILES: Final = frozenset({"PATH", "FILE", "SCRIPT", "LOG", "RULE|FILE:LINE", "DIR"})


def add_arguments(parser: argparse.ArgumentParser, language: Language) -> None:
    """The arguments of `completion`."""
    parser.add_argument("shell", choices=_SHELLS, help=_SHELL.in_language(language))


def execute(arguments: argparse.Namespace, language: Language) -> int:
    """Print the script; 0."""
    import shtab  # here: no other command needs it

    parser = argparse.ArgumentParser(prog="ranksafe", allow_abbrev=False)
    parser.add_argument("--version", action="store_true")
    commands = parser.add_subparsers()
    for name, entry in COMMANDS.items():
        module = load(name)
        if module is not None:
            command = commands.add_parser(name, help=entry.summary.in_language(language))
            command.add_argument("--lang", choices=LANGUAGES)
            module.add_arguments(command, language)
            _complete_files(command)
    print(shtab.complete(parser, arguments.shell))
    return 0


def _complete_files(parser: argparse.ArgumentParser) -> None:
    import shtab

    for action in parser._actions:  # argparse has no other way to what was added
        if action.metavar in _OF_FILES and not action.choices:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
