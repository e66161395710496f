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
from ranksafe.cli.add_ignores import add_ignores
from ranksafe.cli.checker import Checker, context_of
from ranksafe.cli.checking import check_files
from ranksafe.cli.files import FoundFiles, find_files
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
from ranksafe.cli.reading import SourceFile, UnreadableSource, decode_source, read_source
from ranksafe.cli.results import FileResult
from ranksafe.cli.terminal import fail, note, style_for
from ranksafe.cli.watching import watch
from ranksafe.launch.context import DEFAULT_GPUS, Launcher
from ranksafe.localization import Language, Translated
from ranksafe.source.text import split_lines

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
    "statistics": Translated(
        "count the findings of each rule instead of printing them", "只统计每条规则的提示数量"
    ),
    "watch": Translated(
        "check again whenever a file of the project has changed",
        "项目文件发生变化时重新检查",
    ),
    "no-cache": Translated("neither read nor write kept results", "不读取也不写入缓存的结果"),
}
_NO_SUCH_PATH = Translated("{path}: no such file or folder", "{path}：文件或文件夹不存在")
_LAUNCHER_ASSUMED = Translated(
    "No setting says how these scripts are started: plain `python` is assumed where neither the script nor a command "
    "in the project shows another launcher, while `ranksafe run` starts accelerate or torchrun wherever it can "
    "(`--launcher`).",
    "没有设置说明脚本如何启动：脚本和项目中的命令都未显示其他启动器时假定为普通的 `python`，而 `ranksafe run` "
    "会尽可能使用 accelerate 或 torchrun（`--launcher`）。",
)
_GPUS_ASSUMED = Translated(
    "No setting says on how many GPUs they run: {count} are assumed, while `ranksafe run` takes all that are free "
    "(`--gpus`).",
    "没有设置说明使用多少个 GPU：假定为 {count} 个，而 `ranksafe run` 会使用所有空闲的 GPU（`--gpus`）。",
)
_RULES_FAILED = Translated(
    "not checked by {codes}, where ranksafe, or an extension of it, has an error that should be reported: {error}",
    "未经 {codes} 检查，ranksafe 或其扩展在此处有错误，请予以报告：{error}",
)
_NOT_WATCHED = Translated(
    "`--watch` is for files, and not with `--add-ignore`",
    "`--watch` 只能用于文件，且不能与 `--add-ignore` 同时使用",
)
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
    parser.add_argument("--statistics", action="store_true", help=text("statistics"))
    parser.add_argument("--watch", action="store_true", help=text("watch"))
    parser.add_argument("--no-cache", action="store_true", help=text("no-cache"))


def execute(arguments: argparse.Namespace, language: Language) -> int:
    """Check and print; 0 nothing at or above ``--fail-on``, 1 findings, 2 used wrongly or broken."""
    if arguments.watch and ("-" in arguments.paths or arguments.add_ignore):
        return fail(_NOT_WATCHED.in_language(language), USED_WRONGLY)
    if arguments.watch:
        named = [Path(path) for path in arguments.paths or ["."]]
        roots = {path if path.is_dir() else path.parent for path in named}
        watch(lambda: _Checking(arguments, language).run(), roots, named, language)
    return _Checking(arguments, language).run()


class _Checking:
    """One call of the command."""

    def __init__(self, arguments: argparse.Namespace, language: Language) -> None:
        self._arguments = arguments
        self._language = language
        self._named = {Path(path) for path in arguments.paths or ["."]}
        self._with_edits = arguments.output_format in ("json", "sarif")
        self._found = FoundFiles()
        self._stdin: SourceFile | None = None

    def run(self) -> int:
        """Check and print; returns the exit status."""
        try:
            return self._run()
        except UsedWrongly as error:
            return fail(error.message.in_language(self._language), USED_WRONGLY)
        except FileNotFoundError as error:
            said = _NO_SUCH_PATH.filled(path=error)
            return fail(said.in_language(self._language), USED_WRONGLY)

    def _run(self) -> int:
        options = read_analysis_options(self._arguments)
        registry = Registry.load()
        from_stdin = "-" in self._arguments.paths
        if from_stdin and len(self._arguments.paths) > 1:
            raise UsedWrongly(_NOT_WITH_STDIN)
        check = self._check_stdin if from_stdin else self._check_files
        results = check(options, registry)
        options.check_selectors(registry)
        if options.report_problems(self._language):
            return fail(BROKEN_CONFIGURATION.in_language(self._language), USED_WRONGLY)
        if self._arguments.add_ignore and not from_stdin:
            return add_ignores(results, self._language)
        self._print(results, registry, options)
        broken = self._report_files(results)
        return USED_WRONGLY if broken else self._status(results)

    def _check_stdin(self, options: AnalysisOptions, registry: Registry) -> list[FileResult]:
        name = self._arguments.stdin_filename or Path("-")
        self._named = {name}
        try:
            self._stdin = decode_source(name, sys.stdin.buffer.read())
        except UnreadableSource as error:
            return [FileResult(name, problem=error.message)]
        checker = Checker(registry, with_edits=self._with_edits)
        return [checker.check_source(self._stdin, context_of(name, options))]

    def _check_files(self, options: AnalysisOptions, registry: Registry) -> list[FileResult]:
        self._found = find_files(
            sorted(self._named),
            options.configurations,
            self._language,
            respect_gitignore=self._arguments.respect_gitignore,
            force_exclude=self._arguments.force_exclude,
        )
        return check_files(
            self._found.files,
            options,
            registry,
            with_edits=self._with_edits,
            use_cache=not self._arguments.no_cache,
            language=self._language,
        )

    def _print(
        self, results: Sequence[FileResult], registry: Registry, options: AnalysisOptions
    ) -> None:
        language = self._language
        if self._arguments.output_format != "text":
            render = MACHINE_FORMATS[self._arguments.output_format]
            sys.stdout.write(render(results, registry, language))
            return
        style = style_for(self._arguments.color, sys.stdout)

        @lru_cache(maxsize=8)
        def lines(path: Path) -> list[str]:
            try:
                is_stdin = self._stdin is not None and path == self._stdin.path
                source = self._stdin if is_stdin else read_source(path)
            except UnreadableSource:
                return []
            return split_lines(source.text) if source is not None else []

        if self._arguments.statistics:
            for line in text_output.statistics(results, language, style):
                print(line)
        else:
            for piece in text_output.render(results, lines, language, style):
                print(piece)
        self._print_assumptions(results, options)
        print(text_output.summary(results, self._found, language))

    def _print_assumptions(self, results: Sequence[FileResult], options: AnalysisOptions) -> None:
        """What is not known of the launch of files with findings; `ranksafe run` looks at script and machine."""
        launches = [options.launch_of(result.path) for result in results if result.reported]
        if any(launch.launcher is Launcher.UNKNOWN for launch in launches):
            print(_LAUNCHER_ASSUMED.in_language(self._language))
        if any(launch.gpus is None for launch in launches):
            said = _GPUS_ASSUMED.filled(count=DEFAULT_GPUS)
            print(said.in_language(self._language))

    def _report_files(self, results: Sequence[FileResult]) -> bool:
        """Say what was not checked; whether the user named one of the files that were not, or a rule failed."""
        broken = False
        for result in results:
            if result.problem is not None:
                note(f"{result.path}: {result.problem.in_language(self._language)}")
                broken = broken or result.path in self._named
            for name in result.given_up:
                note(f"{result.path}: {given_up(name).in_language(self._language)}")
            for error in dict.fromkeys(error for _, error in result.failed_rules):
                codes = ", ".join(code for code, other in result.failed_rules if other == error)
                said = _RULES_FAILED.filled(codes=codes, error=error)
                note(f"{result.path}: {said.in_language(self._language)}")
                broken = True
        return broken

    def _status(self, results: Sequence[FileResult]) -> int:
        threshold = Level[self._arguments.fail_on.upper()]
        levels = [item.finding.level for result in results for item in result.reported]
        found = any(level >= threshold for level in levels)
        return FOUND if found and not self._arguments.exit_zero else CLEAN
