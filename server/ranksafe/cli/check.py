"""``ranksafe check``: find multi-GPU pitfalls."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from ranksafe.checker.analysis import given_up
from ranksafe.checker.finding import Level
from ranksafe.checker.registry import Registry
from ranksafe.checker.suppression import suppress
from ranksafe.cli.checking import Checker, check_files, context_of
from ranksafe.cli.files import find_files
from ranksafe.cli.options import (
    BROKEN_CONFIGURATION,
    AnalysisOptions,
    UsedWrongly,
    add_analysis_arguments,
    read_analysis_options,
)
from ranksafe.cli.output import MACHINE_FORMATS
from ranksafe.cli.output import text as text_output
from ranksafe.cli.output_options import add_format_argument
from ranksafe.cli.reading import UnreadableSource, decode_source, not_written, read_source
from ranksafe.cli.results import FileResult
from ranksafe.cli.terminal import fail, note, style_for
from ranksafe.localization import Language, Translated
from ranksafe.source.text import SourceText, split_lines

CLEAN, FOUND, USED_WRONGLY = 0, 1, 2

_HELP = {
    "fail-on": Translated(
        "lowest level that gives exit status 1 (default: warning)",
        "使退出状态为 1 的最低级别（默认：warning）",
    ),
    "exit-zero": Translated("exit with status 0 in spite of findings", "即使有问题也以状态 0 退出"),
    "add-ignore": Translated(
        "write a suppression comment at every finding instead of printing it",
        "不输出提示，而是在每处提示写入屏蔽注释",
    ),
    "no-cache": Translated("neither read nor write kept results", "不读取也不写入缓存的结果"),
}
_NO_SUCH_PATH = Translated("{path}: no such file or folder", "{path}：文件或文件夹不存在")
_PARTLY = Translated(
    "partly checked: statements that do not parse were left out",
    "部分检查：无法解析的语句已跳过",
)
_ADDED = Translated("Suppressions added: {count}.", "已添加 {count} 条屏蔽注释。")
_NOT_WITH_STDIN = Translated(
    "`-` cannot be combined with other paths", "`-` 不能与其他路径同时使用"
)


def add_arguments(parser: argparse.ArgumentParser, language: Language) -> None:
    """The arguments of `check`."""

    def text(key: str) -> str:
        return _HELP[key].in_language(language)

    add_analysis_arguments(parser, language)
    add_format_argument(parser, language, ("text", *MACHINE_FORMATS))
    parser.add_argument(
        "--fail-on",
        choices=[level.label for level in sorted(Level, reverse=True)],
        default=Level.WARNING.label,
        help=text("fail-on"),
    )
    parser.add_argument("--exit-zero", action="store_true", help=text("exit-zero"))
    parser.add_argument("--add-ignore", action="store_true", help=text("add-ignore"))
    parser.add_argument("--no-cache", action="store_true", help=text("no-cache"))


def execute(arguments: argparse.Namespace, language: Language) -> int:
    """Check and print; 0 nothing at or above ``--fail-on``, 1 findings, 2 used wrongly or broken."""
    try:
        return _check(arguments, language)
    except UsedWrongly as error:
        return fail(error.message.in_language(language), USED_WRONGLY)
    except FileNotFoundError as error:
        return fail(_NO_SUCH_PATH.filled(path=error).in_language(language), USED_WRONGLY)


def _check(arguments: argparse.Namespace, language: Language) -> int:
    options = read_analysis_options(arguments)
    registry = Registry.load()
    from_stdin = "-" in arguments.paths
    if from_stdin:
        if len(arguments.paths) > 1:
            raise UsedWrongly(_NOT_WITH_STDIN)
        name = arguments.stdin_filename or Path("-")
        data = sys.stdin.buffer.read()
        results = [_check_stdin(name, data, arguments, options, registry)]
        named = {name}
    else:
        data = b""
        named = {Path(path) for path in arguments.paths or ["."]}
        results = check_files(
            find_files(sorted(named), options.configurations, language),
            options,
            registry,
            with_edits=arguments.output_format in ("json", "sarif"),
            use_cache=not arguments.no_cache,
        )
    options.check_selectors(registry, language)
    if options.report_problems(language):
        return fail(BROKEN_CONFIGURATION.in_language(language), USED_WRONGLY)
    if arguments.add_ignore and not from_stdin:
        return _add_ignores(results, language)
    _print(results, arguments, registry, language, data)
    broken = _report_files(results, named, language)
    return USED_WRONGLY if broken else _status(results, arguments)


def _check_stdin(
    name: Path,
    data: bytes,
    arguments: argparse.Namespace,
    options: AnalysisOptions,
    registry: Registry,
) -> FileResult:
    try:
        text = decode_source(name, data).text
    except UnreadableSource as error:
        return FileResult(name, problem=error.message)
    checker = Checker(registry, with_edits=arguments.output_format in ("json", "sarif"))
    return checker.check_text(name, text, context_of(name, options))


def _print(
    results: Sequence[FileResult],
    arguments: argparse.Namespace,
    registry: Registry,
    language: Language,
    stdin: bytes,
) -> None:
    if arguments.output_format != "text":
        sys.stdout.write(MACHINE_FORMATS[arguments.output_format](results, registry, language))
        return
    style = style_for(arguments.color, sys.stdout)

    @lru_cache(maxsize=8)
    def lines(path: Path) -> list[str]:
        try:
            is_stdin = bool(stdin) and path == results[0].path
            source = decode_source(path, stdin) if is_stdin else read_source(path)
        except UnreadableSource:
            return []
        return split_lines(source.text)

    for piece in text_output.render(results, lines, language, style):
        print(piece)
    print(text_output.summary(results, language))


def _report_files(results: Sequence[FileResult], named: set[Path], language: Language) -> bool:
    """Say which files were not, or only partly, checked; whether one of them was named by the user."""
    broken = False
    for result in results:
        if result.problem is not None:
            note(f"{result.path}: {result.problem.in_language(language)}")
            broken = broken or result.path in named
        elif result.partial:
            note(f"{result.path}: {_PARTLY.in_language(language)}")
        for name in result.given_up:
            note(f"{result.path}: {given_up(name).in_language(language)}")
    return broken


def _status(results: Sequence[FileResult], arguments: argparse.Namespace) -> int:
    threshold = Level[arguments.fail_on.upper()]
    found = any(item.finding.level >= threshold for result in results for item in result.reported)
    return FOUND if found and not arguments.exit_zero else CLEAN


def _add_ignores(results: Sequence[FileResult], language: Language) -> int:
    """One comment per finding; an edit at a time, since two findings may share a line and then one comment."""
    count = 0
    for result in results:
        if not result.reported:
            continue
        try:
            source = read_source(result.path)
            text = source.text
            for item in sorted(result.reported, key=lambda item: item.finding.range, reverse=True):
                text = SourceText(text).edited([suppress(text, item.finding)])
                count += 1
            source.write(text)
        except UnreadableSource as error:
            return fail(f"{result.path}: {error.message.in_language(language)}", USED_WRONGLY)
        except (OSError, UnicodeEncodeError) as error:
            return fail(not_written(result.path, error).in_language(language), USED_WRONGLY)
    print(_ADDED.filled(count=count).in_language(language))
    return CLEAN
