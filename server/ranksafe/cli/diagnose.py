"""``ranksafe diagnose train.log``: explain a log by its text alone; ``-`` reads standard input."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from ranksafe.cli.render_failure import render_failure
from ranksafe.cli.terminal import fail, style_for
from ranksafe.localization import Language, Translated
from ranksafe.runs.diagnose import diagnose
from ranksafe.runs.serialize import failure_json

_LOG_HELP = Translated("the log; - for standard input", "日志文件；- 表示标准输入")
_FORMAT_HELP = Translated("how to print the result", "结果的输出格式")
_COLOR_HELP = Translated("when to use colours", "何时使用颜色")
_UNREADABLE = Translated("{path} cannot be read: {reason}", "无法读取 {path}：{reason}")
_NOTHING = Translated("No failure was recognised in this log.", "在此日志中没有识别出故障。")


def add_arguments(parser: argparse.ArgumentParser, language: Language) -> None:
    """The arguments of `diagnose`."""
    parser.add_argument("log", metavar="LOG", help=_LOG_HELP.in_language(language))
    parser.add_argument(
        "--output-format",
        choices=["text", "json"],
        default="text",
        help=_FORMAT_HELP.in_language(language),
    )
    parser.add_argument(
        "--color",
        choices=["auto", "always", "never"],
        default="auto",
        help=_COLOR_HELP.in_language(language),
    )


def execute(arguments: argparse.Namespace, language: Language) -> int:
    """Explain the log; 0 no failure in it, 1 a failure, 2 it cannot be read."""
    try:
        text = _read(arguments.log)
    except OSError as error:
        message = _UNREADABLE.filled(path=arguments.log, reason=error.strerror)
        return fail(message.in_language(language), 2)
    failures = diagnose(text, language)
    if arguments.output_format == "json":
        found = [failure_json(failure, language) for failure in failures]
        print(json.dumps(found, ensure_ascii=False, indent=2))
        return 1 if failures else 0
    style = style_for(arguments.color, sys.stdout)
    for failure in failures:
        print(render_failure(failure, language, style) + "\n")
    if not failures:
        print(_NOTHING.in_language(language))
    return 1 if failures else 0


def _read(name: str) -> str:
    if name == "-":
        return sys.stdin.buffer.read().decode("utf-8", "replace")
    return Path(name).read_text(encoding="utf-8", errors="replace")
