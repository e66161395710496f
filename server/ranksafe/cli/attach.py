"""``ranksafe attach``: come back to a run on another host, and explain its end."""

from __future__ import annotations

import argparse

from ranksafe.cli.output_options import add_output_arguments, add_quiet_argument
from ranksafe.cli.running import carry_out
from ranksafe.localization import Language, Translated
from ranksafe.runs.attach import attach
from ranksafe.runs.start import OnEvent, Run

_RUN = Translated(
    "the run's id (default: the newest that was not seen to its end)",
    "运行的编号（默认：尚未看到结果的最新一次）",
)


def add_arguments(parser: argparse.ArgumentParser, language: Language) -> None:
    """The arguments of `attach`."""
    parser.add_argument("run", nargs="?", metavar="RUN", help=_RUN.in_language(language))
    add_quiet_argument(parser, language)
    add_output_arguments(parser, language, ("text", "json", "github"))


def execute(arguments: argparse.Namespace, language: Language) -> int:
    """Follow it to its end; exit status as of `run`."""

    def come_back(show: OnEvent) -> Run:
        return attach(arguments.run, show, language)

    return carry_out(come_back, arguments, language)
