"""How a command's result is printed: the arguments for it that nearly all commands have."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from ranksafe.localization import Language, Translated

_FORMAT = Translated("how to print the result", "结果的输出格式")
_QUIET = Translated(
    "show the result, not what the script prints (the log has it)",
    "只显示结果，不显示脚本的输出（日志中有）",
)
_COLOR = Translated("when to use colours", "何时使用颜色")


def add_output_arguments(
    parser: argparse.ArgumentParser,
    language: Language,
    formats: Sequence[str] = ("text", "json"),
) -> None:
    """``--output-format``, whose default is the first of ``formats``, and ``--color``."""
    add_format_argument(parser, language, formats)
    add_color_argument(parser, language)


def add_quiet_argument(parser: argparse.ArgumentParser, language: Language) -> None:
    """``--quiet``, for commands that show what ranks print."""
    parser.add_argument("--quiet", "-q", action="store_true", help=_QUIET.in_language(language))


def add_format_argument(
    parser: argparse.ArgumentParser,
    language: Language,
    formats: Sequence[str] = ("text", "json"),
) -> None:
    """``--output-format`` alone, for commands whose text has no colours."""
    parser.add_argument(
        "--output-format",
        choices=list(formats),
        default=formats[0],
        help=_FORMAT.in_language(language),
    )


def add_color_argument(parser: argparse.ArgumentParser, language: Language) -> None:
    """``--color`` alone, for commands that print in one form."""
    parser.add_argument(
        "--color",
        choices=["auto", "always", "never"],
        default="auto",
        help=_COLOR.in_language(language),
    )
