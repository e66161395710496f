"""``ranksafe explain RS201``: the rule's page; ``ranksafe explain FILE:LINE``: what the ranks do there."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from ranksafe.checker.registry import Registry
from ranksafe.cli.explain_place import add_place_arguments, explain_place
from ranksafe.cli.output_options import add_color_argument
from ranksafe.cli.terminal import Style, fail, style_for
from ranksafe.localization import Language, Translated

_HELP = Translated(
    "code or name of a rule, or FILE:LINE for what the ranks do there",
    "规则的编号或名称，或用 FILE:LINE 查看各 rank 在该处的行为",
)
_UNKNOWN = Translated(
    "there is no rule `{rule}`; `ranksafe rules` lists them",
    "没有规则 `{rule}`；`ranksafe rules` 会列出所有规则",
)
_NO_LINE = Translated(
    "{rule}: which line? Name it as in {file}:12", "{rule}：哪一行？请写成 {file}:12 的形式"
)
_INLINE_CODE = re.compile(r"`([^`]+)`")
_PLACE = re.compile(r"(?P<file>.+?):(?P<line>\d+)(?::\d+)?:?")
"""A column and a colon may follow, as in what `check` prints."""


def add_arguments(parser: argparse.ArgumentParser, language: Language) -> None:
    """The arguments of `explain`."""
    parser.add_argument("rule", metavar="RULE|FILE:LINE", help=_HELP.in_language(language))
    add_color_argument(parser, language)
    add_place_arguments(parser, language)


def execute(arguments: argparse.Namespace, language: Language) -> int:
    """Print the page or the place; 2 for an unknown rule, and where there is nothing to explain."""
    place = _PLACE.fullmatch(arguments.rule)
    if place is not None:
        return explain_place(Path(place["file"]), int(place["line"]), arguments, language)
    folder = Registry.load().find(arguments.rule)
    if folder is None:
        file = Path(arguments.rule.partition(":")[0])
        unknown = _NO_LINE if file.is_file() else _UNKNOWN
        message = unknown.filled(rule=arguments.rule, file=file)
        return fail(message.in_language(language), 2)
    style = style_for(arguments.color, sys.stdout)
    print(_rendered(folder.readme(language), style))
    return 0


def _rendered(markdown: str, style: Style) -> str:
    if not style.enabled:
        return markdown
    lines = []
    in_code = False
    for line in markdown.splitlines():
        if line.startswith("```"):
            in_code = not in_code
        elif in_code:
            lines.append("    " + style.paint("cyan", line))
        elif line.startswith("#"):
            lines.append(style.paint("bold", line.lstrip("# ")))
        else:
            lines.append(_INLINE_CODE.sub(lambda match: style.paint("cyan", match[1]), line))
    return "\n".join(lines)
