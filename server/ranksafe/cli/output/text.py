"""Findings for people: each on its source line, with its related places."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ranksafe.checker.finding import Applicability, Finding, Level
from ranksafe.cli.files import FoundFiles
from ranksafe.cli.results import FileResult
from ranksafe.cli.terminal import Style, display_width
from ranksafe.localization import Language, Translated
from ranksafe.source.position import Position, Range

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
    "Found {total} in {count} of {files} ({errors} error, {warnings} warning, {informations} information).",
    "在 {files}中的 {count} 个里发现 {total} 处（错误 {errors}，警告 {warnings}，提示 {informations}）。",
)
_IN_FILES = Translated("(in {files})", "（{files}）")
_NOT_CHECKED = Translated("Not checked: {reasons}.", "未检查：{reasons}。")
_PARTLY = Translated("{files} by some of the rules", "{files}的部分规则")
_UNREADABLE = Translated("{files} named above", "上面列出的 {files}")
_NOTEBOOKS = Translated(
    "{count} (name a notebook to check it)", "{count}（指明笔记本的路径即可检查）"
)
_IGNORED = Translated(
    "{count} that .gitignore names (`--no-respect-gitignore` checks them)",
    ".gitignore 列出的 {count}（`--no-respect-gitignore` 会检查）",
)
_OF_OTHERS = Translated(
    "{count} with a licence of another project (name a folder to check it)",
    "{count}，其许可证属于其他项目（指明文件夹的路径即可检查）",
)
_FIXABLE = Translated(
    "{count} can be fixed with `ranksafe fix`.", "其中 {count} 处可用 `ranksafe fix` 修复。"
)
_FIXABLE_UNSAFE = Translated(
    "{count} can be fixed with `ranksafe fix --unsafe`.",
    "其中 {count} 处可用 `ranksafe fix --unsafe` 修复。",
)
_MORE_UNSAFE = Translated(
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
            yield _finding(result, item.finding, lines, language, style)


def statistics(results: Sequence[FileResult], language: Language, style: Style) -> Iterator[str]:
    """A line for each rule: how many findings, the most frequent first, in how many files, what it is called."""
    counts: Counter[tuple[str, str, Level]] = Counter()
    files: Counter[str] = Counter()
    for result in results:
        findings = [item.finding for item in result.reported]
        counts.update((finding.code, finding.name, finding.level) for finding in findings)
        files.update({finding.code for finding in findings})
    width = max((len(str(count)) for count in counts.values()), default=0)
    for (code, name, level), count in sorted(
        counts.items(), key=lambda item: (-item[1], item[0][0], item[0][2])
    ):
        kind = style.paint(_COLORS[level], f"{_LEVELS[level].in_language(language)}[{code}]")
        where = _IN_FILES.filled(files=_files(files[code])).in_language(language)
        yield f"{count:>{width}}  {kind} {name} {where}"


def summary(results: Sequence[FileResult], found: FoundFiles, language: Language) -> str:
    """How many of what in how many files, how many can be fixed, and what was not checked."""
    findings = [item.finding for result in results for item in result.reported]
    unreadable = sum(result.problem is not None for result in results)
    checked = _files(len(results) - unreadable)
    sentences = [_NOTHING.filled(files=checked)]
    if findings:
        levels = [finding.level for finding in findings]
        sentences = [
            _FOUND.filled(
                total=len(findings),
                count=sum(bool(result.reported) for result in results),
                files=checked,
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
        sentences.append((_MORE_UNSAFE if safe else _FIXABLE_UNSAFE).filled(count=unsafe))
    partly = sum(bool(result.failed_rules) for result in results)
    reasons = list(_reasons(unreadable, partly, found))
    if reasons:
        comma = "，" if language == "zh-cn" else ", "
        told = comma.join(reason.in_language(language) for reason in reasons)
        sentences.append(_NOT_CHECKED.filled(reasons=told))
    space = "" if language == "zh-cn" else " "
    return space.join(sentence.in_language(language) for sentence in sentences)


def _reasons(unreadable: int, partly: int, found: FoundFiles) -> Iterator[Translated]:
    if unreadable:
        yield _UNREADABLE.filled(files=_files(unreadable))
    if partly:
        yield _PARTLY.filled(files=_files(partly))
    if found.notebooks:
        count = found.notebooks
        yield _NOTEBOOKS.filled(
            count=Translated(
                "1 notebook" if count == 1 else f"{count} notebooks", f"{count} 个笔记本"
            )
        )
    if found.ignored:
        count = found.ignored
        yield _IGNORED.filled(
            count=Translated(
                "1 file or folder" if count == 1 else f"{count} files and folders",
                f"{count} 个文件或文件夹",
            )
        )
    if found.of_others:
        count = found.of_others
        yield _OF_OTHERS.filled(
            count=Translated("1 folder" if count == 1 else f"{count} folders", f"{count} 个文件夹")
        )


def _files(count: int) -> Translated:
    return Translated("1 file" if count == 1 else f"{count} files", f"{count} 个文件")


def _finding(
    result: FileResult, finding: Finding, lines: Lines, language: Language, style: Style
) -> str:
    path = result.path
    color = _COLORS[finding.level]
    level = style.paint(color, f"{_LEVELS[finding.level].in_language(language)}[{finding.code}]")
    head = f"{_place(result, path, finding.range, style)} {level} {finding.message.in_language(language)}"
    parts = [head, *_snippet(result, path, finding.range, lines, style, color, "^")]
    for related in finding.related:
        where = _written_like(path, related.path or path)
        message = related.message.in_language(language)
        parts.append(f"  {_place(result, where, related.range, style)} {message}")
        parts += _snippet(result, where, related.range, lines, style, "cyan", "-")
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


def _place(result: FileResult, path: Path, place: Range, style: Style) -> str:
    cell, start = _start(result, path, place)
    inside = "" if cell is None else f"cell {cell}:"
    return f"{style.paint('bold', str(path))}:{inside}{start.line + 1}:{start.column + 1}:"


def _start(result: FileResult, path: Path, place: Range) -> tuple[int | None, Position]:
    return result.place(place.start) if path == result.path else (None, place.start)


def _snippet(
    result: FileResult, path: Path, place: Range, lines: Lines, style: Style, color: str, mark: str
) -> list[str]:
    """The line on which the range starts, underlined; nothing when the file has changed meanwhile."""
    text = lines(path)
    if place.start.line >= len(text):
        return []
    line = text[place.start.line].rstrip("\r\n")
    end = place.end.column if place.end.line == place.start.line else len(line)
    before, marked = line[: place.start.column], line[place.start.column : end]
    number = str(_start(result, path, place)[1].line + 1)
    bar = style.paint("dim", "|")
    indent = " " * display_width(before.expandtabs(4))
    underline = style.paint(color, mark * max(1, display_width(marked.expandtabs(4))))
    return [
        f" {style.paint('dim', number)} {bar} {line.expandtabs(4)}",
        f" {' ' * len(number)} {bar} {indent}{underline}",
    ]
