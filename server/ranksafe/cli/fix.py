"""``ranksafe fix``: repair what can be repaired."""

from __future__ import annotations

import argparse
import difflib
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from ranksafe.checker.analysis import DocumentAnalysis
from ranksafe.checker.finding import Finding, Level
from ranksafe.checker.registry import Registry
from ranksafe.cli.checker import SYNTAX_ERROR, Checker, context_of, is_relevant, syntax_error
from ranksafe.cli.files import find_files
from ranksafe.cli.options import (
    BROKEN_CONFIGURATION,
    AnalysisOptions,
    UsedWrongly,
    add_analysis_arguments,
    read_analysis_options,
)
from ranksafe.cli.reading import (
    NOT_WRITTEN,
    SourceFile,
    UnreadableSource,
    decode_source,
    not_written,
    read_bytes,
)
from ranksafe.cli.terminal import Style, fail, note, style_for
from ranksafe.fixes.apply import AppliedFix, FixedText, fix_text, offer_to_apply
from ranksafe.localization import Language, Translated

_HELP = {
    "unsafe": Translated(
        "apply fixes that change numbers, batches or files too",
        "同时应用会改变数值、批次或文件的修复",
    ),
    "diff": Translated("print the changes and write nothing", "只输出改动，不写入文件"),
}
_NO_SUCH_PATH = Translated("{path}: no such file or folder", "{path}：文件或文件夹不存在")
_FIXED = Translated("fixed", "已修复")
_WOULD_FIX = Translated("would fix", "将修复")
_LEFT = Translated("{path}:{line}: left {code}: {reason}", "{path}:{line}：保留 {code}：{reason}")
_NO_FIX = Translated(
    "it has no fix (`ranksafe explain {code}`)", "没有自动修复（`ranksafe explain {code}`）"
)
_DESCRIBED = Translated("its remedy is for you to write: {title}", "需要手动修改：{title}")
_NEEDS_UNSAFE = Translated(
    "its fix changes numbers, batches or files, and is applied with `--unsafe`: {title}",
    "修复会改变数值、批次或文件，使用 `--unsafe` 才会应用：{title}",
)
_DOES_NOT_FIT = Translated(
    "its fix cannot be applied to this code: {title}", "此修复无法应用于这段代码：{title}"
)
_SUMMARY = Translated(
    "{fixed} fixed, {remaining} left.", "已修复 {fixed} 处，剩余 {remaining} 处。"
)
_SUMMARY_DIFF = Translated(
    "{fixed} would be fixed, {remaining} would be left.",
    "将修复 {fixed} 处，剩余 {remaining} 处。",
)


def add_arguments(parser: argparse.ArgumentParser, language: Language) -> None:
    """The arguments of `fix`."""
    add_analysis_arguments(parser, language)
    parser.add_argument("--unsafe", action="store_true", help=_HELP["unsafe"].in_language(language))
    parser.add_argument("--diff", action="store_true", help=_HELP["diff"].in_language(language))


def execute(arguments: argparse.Namespace, language: Language) -> int:
    """Fix and write; 0 nothing of warning level is left, 1 something is (with ``--diff``: something would change), 2
    used wrongly or broken."""
    try:
        return _Fixing(arguments, language).run()
    except UsedWrongly as error:
        return fail(error.message.in_language(language), 2)
    except FileNotFoundError as error:
        return fail(_NO_SUCH_PATH.filled(path=error).in_language(language), 2)


@dataclass(slots=True)
class _Totals:
    fixed: int = 0
    remaining: int = 0
    serious: bool = False
    broken: bool = False


class _Fixing:
    """One call of the command."""

    def __init__(self, arguments: argparse.Namespace, language: Language) -> None:
        self._arguments = arguments
        self._language = language
        self._options: AnalysisOptions = read_analysis_options(arguments)
        self._registry = Registry.load()
        self._checker = Checker(self._registry, with_edits=False)
        self._totals = _Totals()
        self._style: Style = style_for(arguments.color, sys.stdout)

    def run(self) -> int:
        """Fix every file; returns the exit status."""
        paths = self._arguments.paths or ["."]
        if paths == ["-"]:
            return self._fix_stdin()
        named = {Path(path) for path in paths}
        files = find_files(
            named,
            self._options.configurations,
            self._language,
            respect_gitignore=self._arguments.respect_gitignore,
            force_exclude=self._arguments.force_exclude,
        ).files
        # Before anything is written: what a broken configuration says is not known, so neither is what to repair.
        for path in files:
            self._options.configurations.of_file(path)
        if self._is_misconfigured():
            return 2
        for path in sorted(files):
            self._fix_file(path, named=path in named)
        totals = self._totals
        summary = _SUMMARY_DIFF if self._arguments.diff else _SUMMARY
        text = summary.filled(fixed=totals.fixed, remaining=totals.remaining)
        print(text.in_language(self._language), file=sys.stderr)
        if totals.broken:
            return 2
        would_change = self._arguments.diff and totals.fixed > 0
        return 1 if totals.serious or would_change else 0

    def _fix_stdin(self) -> int:
        name = self._arguments.stdin_filename or Path("-")
        self._options.configurations.of_file(name)
        if self._is_misconfigured():
            return 2
        try:
            source = decode_source(name, sys.stdin.buffer.read())
            if source.cells is not None:
                raise UnreadableSource(NOT_WRITTEN)
        except UnreadableSource as error:
            return fail(f"{name}: {error.message.in_language(self._language)}", 2)
        fixed = self._fixed(source)
        if self._arguments.diff:
            self._print_diff(source, fixed.text)
        else:
            sys.stdout.write(fixed.text)
        return 1 if any(item.level >= Level.WARNING for item in fixed.remaining) else 0

    def _is_misconfigured(self) -> bool:
        self._options.check_selectors(self._registry)
        if not self._options.report_problems(self._language):
            return False
        note(BROKEN_CONFIGURATION.in_language(self._language))
        return True

    def _fix_file(self, path: Path, *, named: bool) -> None:
        try:
            data = read_bytes(path)
            if not is_relevant(path, data) and b"\0" not in data:
                return
            source = decode_source(path, data)
            if source.cells is not None:
                raise UnreadableSource(NOT_WRITTEN)
            fixed = self._fixed(source)
            if self._arguments.diff:
                self._print_diff(source, fixed.text)
            elif fixed.text != source.text:
                source.write(fixed.text)
        except UnreadableSource as error:
            note(f"{path}: {error.message.in_language(self._language)}")
            self._totals.broken = self._totals.broken or named
            return
        except (OSError, UnicodeEncodeError) as error:
            note(not_written(path, error).in_language(self._language))
            self._totals.broken = True
            return
        self._count(path, fixed)

    def _fixed(self, source: SourceFile) -> FixedText:
        context = context_of(source.path, self._options)
        error: Finding | None = None

        def analyse(text: str) -> DocumentAnalysis:
            nonlocal error
            analysis = self._checker.analyse(source.path, text, context)
            error = syntax_error(analysis)
            return analysis

        fixed = fix_text(source.text, analyse, self._registry, unsafe=self._arguments.unsafe)
        return fixed if error is None else replace(fixed, remaining=(error, *fixed.remaining))

    def _count(self, path: Path, fixed: FixedText) -> None:
        self._totals.fixed += len(fixed.applied)
        self._totals.remaining += len(fixed.remaining)
        serious = any(finding.level >= Level.WARNING for finding in fixed.remaining)
        self._totals.serious = self._totals.serious or serious
        for applied in fixed.applied:
            print(self._line(path, applied), file=sys.stderr)
        for finding in fixed.remaining:
            print(self._left(path, finding), file=sys.stderr)

    def _line(self, path: Path, applied: AppliedFix) -> str:
        verb = _WOULD_FIX if self._arguments.diff else _FIXED
        line = applied.finding.range.start.line + 1
        title = applied.offer.title.in_language(self._language)
        return f"{path}:{line}: {verb.in_language(self._language)} {applied.finding.code}: {title}"

    def _left(self, path: Path, finding: Finding) -> str:
        line = finding.range.start.line + 1
        reason = _why_left(finding, unsafe=self._arguments.unsafe)
        left = _LEFT.filled(path=path, line=line, code=finding.code, reason=reason)
        return left.in_language(self._language)

    def _print_diff(self, source: SourceFile, text: str) -> None:
        lines = difflib.unified_diff(
            source.text.splitlines(keepends=True),
            text.splitlines(keepends=True),
            str(source.path),
            str(source.path),
        )
        for line in lines:
            ended = line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
            sys.stdout.write(
                self._style.paint(_diff_color(line), ended) if _colored(line) else ended
            )


def _why_left(finding: Finding, *, unsafe: bool) -> Translated:
    if finding.code == SYNTAX_ERROR:
        return finding.message
    applicable = offer_to_apply(finding, unsafe=unsafe)
    if applicable is not None:
        return _DOES_NOT_FIT.filled(title=applicable.title)
    with_unsafe = offer_to_apply(finding, unsafe=True)
    if with_unsafe is not None:
        return _NEEDS_UNSAFE.filled(title=with_unsafe.title)
    if finding.fixes:
        return _DESCRIBED.filled(title=finding.fixes[0].title)
    return _NO_FIX.filled(code=finding.code)


def _colored(line: str) -> bool:
    return line.startswith(("+", "-", "@"))


def _diff_color(line: str) -> str:
    if line.startswith(("+++", "---")):
        return "bold"
    return {"+": "green", "-": "red"}.get(line[0], "cyan")
