"""``ranksafe explain RS201``: the rule's page, in the terminal."""

from __future__ import annotations

import argparse
import re
import sys

from ranksafe.checker.registry import Registry
from ranksafe.cli.terminal import Style, fail, style_for
from ranksafe.localization import Language, Translated

_HELP = Translated("code or name of a rule", "规则的编号或名称")
_UNKNOWN = Translated(
    "there is no rule `{rule}`; `ranksafe rules` lists them",
    "没有规则 `{rule}`；`ranksafe rules` 会列出所有规则",
)
_INLINE_CODE = re.compile(r"`([^`]+)`")


def add_arguments(parser: argparse.ArgumentParser, language: Language) -> None:
    """The argument of `explain`."""
    parser.add_argument("rule", metavar="RULE", help=_HELP.in_language(language))
    parser.add_argument("--color", choices=["auto", "always", "never"], default="auto")


def execute(arguments: argparse.Namespace, language: Language) -> int:
    """Print the page; 2 for an unknown rule."""
    folder = Registry.load().find(arguments.rule)
    if folder is None:
        return fail(_UNKNOWN.filled(rule=arguments.rule).in_language(language), 2)
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
