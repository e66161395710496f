"""Findings for people: each on its source line, with its related places."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ranksafe.checker.finding import Applicability, Finding, Level
from ranksafe.cli.results import FileResult
from ranksafe.cli.terminal import Style, display_width
from ranksafe.localization import Language, Translated
from ranksafe.source.position import Range

_COLORS = {Level.ERROR: "red", Level.WARNING: "yellow", Level.INFORMATION: "blue"}
_LEVELS = {
    Level.ERROR: Translated("error", "错误"),
    Level.WARNING: Translated("warning", "警告"),
    Level.INFORMATION: Translated("information", "提示"),
}
_APPLICABILITY = {
    Applicability.SAFE: Translated("fix", "修复"),
    Applicability.UNSAFE: Translated("fix (unsafe)", "修复（不安全）"),
    Applicability.DISPLAY: Translated("help", "建议"),
}
_NOTHING = Translated("Nothing found in {files}.", "在 {files}中没有发现问题。")
_FOUND = Translated(
    "Found {total} in {files} ({errors} error, {warnings} warning, {informations} information).",
    "在 {files}中发现 {total} 处（错误 {errors}，警告 {warnings}，提示 {informations}）。",
)
_FIXABLE = Translated(
    "{count} can be fixed with `ranksafe fix`.", "其中 {count} 处可用 `ranksafe fix` 修复。"
)
_FIXABLE_UNSAFE = Translated(
    "{count} more with `ranksafe fix --unsafe`.",
    "另有 {count} 处可用 `ranksafe fix --unsafe` 修复。",
)

Lines = Callable[[Path], Sequence[str]]
"""The lines of a file, empty when it cannot be read any more."""


def render(
    results: Sequence[FileResult], lines: Lines, language: Language, style: Style
) -> Iterator[str]:
    """Printable pieces, one per finding, each with its line end."""
    for result in results:
        for item in result.reported:
            yield _finding(result.path, item.finding, lines, language, style)


def summary(results: Sequence[FileResult], language: Language) -> str:
    """How many of what, and how many can be fixed."""
    findings = [item.finding for result in results for item in result.reported]
    if not findings:
        checked = sum(result.problem is None for result in results)
        return _NOTHING.filled(files=_files(checked)).in_language(language)
    levels = [finding.level for finding in findings]
    sentences = [
        _FOUND.filled(
            total=len(findings),
            files=_files(sum(bool(result.reported) for result in results)),
            errors=levels.count(Level.ERROR),
            warnings=levels.count(Level.WARNING),
            informations=levels.count(Level.INFORMATION),
        )
    ]
    kinds = [{offer.applicability for offer in finding.fixes} for finding in findings]
    safe = sum(Applicability.SAFE in kind for kind in kinds)
    unsafe = sum(Applicability.UNSAFE in kind and Applicability.SAFE not in kind for kind in kinds)
    if safe:
        sentences.append(_FIXABLE.filled(count=safe))
    if unsafe:
        sentences.append(_FIXABLE_UNSAFE.filled(count=unsafe))
    space = "" if language == "zh-cn" else " "
    return space.join(sentence.in_language(language) for sentence in sentences)


def _files(count: int) -> Translated:
    return Translated("1 file" if count == 1 else f"{count} files", f"{count} 个文件")


def _finding(path: Path, finding: Finding, lines: Lines, language: Language, style: Style) -> str:
    color = _COLORS[finding.level]
    level = style.paint(color, f"{_LEVELS[finding.level].in_language(language)}[{finding.code}]")
    head = f"{_place(path, finding.range, style)} {level} {finding.message.in_language(language)}"
    parts = [head, *_snippet(lines(path), finding.range, style, color, "^")]
    for related in finding.related:
        where = _written_like(path, related.path or path)
        message = related.message.in_language(language)
        parts.append(f"  {_place(where, related.range, style)} {message}")
        parts += _snippet(lines(where), related.range, style, "cyan", "-")
    for offer in finding.fixes:
        label = _APPLICABILITY[offer.applicability].in_language(language)
        parts.append(f"  {style.paint('green', f'{label}:')} {offer.title.in_language(language)}")
    return "\n".join(parts) + "\n"


def _written_like(path: Path, other: Path) -> Path:
    """Another file, relative to the working directory where the first one is named so."""
    here = Path.cwd()
    if path.is_absolute() or not other.is_relative_to(here):
        return other
    return other.relative_to(here)


def _place(path: Path, place: Range, style: Style) -> str:
    start = place.start
    return f"{style.paint('bold', str(path))}:{start.line + 1}:{start.column + 1}:"


def _snippet(lines: Sequence[str], place: Range, style: Style, color: str, mark: str) -> list[str]:
    """The line on which the range starts, underlined; nothing when the file has changed meanwhile."""
    if place.start.line >= len(lines):
        return []
    line = lines[place.start.line].rstrip("\r\n")
    end = place.end.column if place.end.line == place.start.line else len(line)
    before, marked = line[: place.start.column], line[place.start.column : end]
    number = str(place.start.line + 1)
    bar = style.paint("dim", "|")
    indent = " " * display_width(before.expandtabs(4))
    underline = style.paint(color, mark * max(1, display_width(marked.expandtabs(4))))
    return [
        f" {style.paint('dim', number)} {bar} {line.expandtabs(4)}",
        f" {' ' * len(number)} {bar} {indent}{underline}",
    ]
