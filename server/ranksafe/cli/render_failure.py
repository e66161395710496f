"""A run's failure drawn on the source line that caused it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from ranksafe.cli.terminal import Style, display_width, harmless
from ranksafe.localization import Language, Translated
from ranksafe.runs.model import Failure, Frame
from ranksafe.runs.plain_files import source_lines

_AROUND = 2
"""Lines shown before and after the one that failed."""
_LONGEST_CHAIN = 6

_ROOT = Translated("failure", "故障")
_OTHER = Translated("follows", "连带")
_SAME = Translated("the same, met here", "同上，在此处遇到")
_LIMIT = Translated("simulation limit", "模拟的限制")
_RANK = Translated("rank {rank}", "rank {rank}")
_CALLED_FROM = Translated("called from", "调用自")
_LOG_ENDS = Translated("the log ends with", "日志结尾")
_MEANING = Translated("meaning", "含义")
_RULE = Translated("rule", "规则")


def render_failure(
    failure: Failure, language: Language, style: Style, told: Failure | None = None
) -> str:
    """Several lines, without the last line end: place, message, source, explanation, call chain.

    ``told``: the failure above it, whose message and explanation are not repeated.
    """
    if failure.root_cause:
        return harmless("\n".join(_lines(failure, language, style, _ROOT, "red")))
    is_told = told is not None and failure.explanation.en in told.explanation.en
    if is_told and told is not None and told.message.startswith(failure.message.rstrip(".。")):
        same = _SAME.in_language(language)
        failure = replace(failure, message=same, code=None, frames=failure.frames[-1:])
    lines = _lines(failure, language, style, _OTHER, "yellow", is_told=is_told)
    return harmless("\n".join(lines))


def render_limit(limit: Failure, language: Language, style: Style) -> str:
    """The same for what a simulation could not do, which is not called a failure."""
    return harmless("\n".join(_lines(limit, language, style, _LIMIT, "yellow")))


def _lines(
    failure: Failure,
    language: Language,
    style: Style,
    word: Translated,
    color: str,
    *,
    is_told: bool = False,
) -> Iterator[str]:
    title = word.in_language(language)
    if failure.code:
        title += f"[{failure.code}]"
    head = style.paint(color, title)
    if failure.rank is not None:
        head += " " + _RANK.filled(rank=failure.rank).in_language(language)
    first, *more = failure.message.splitlines() or [failure.kind]
    if failure.filename is not None and failure.line is not None:
        place = f"{style.paint('bold', failure.filename)}:{failure.line}"
        if failure.column is not None:
            place += f":{failure.column}"
        yield f"{place}: {head}: {first}"
        yield from (f"  {line}" for line in more[:10])
        yield from _snippet(failure, style, color, 0 if is_told else _AROUND)
    else:
        yield f"{head}: {first}"
        yield from (f"  {line}" for line in more[:10])
    if not is_told:
        meaning = style.paint("green", _MEANING.in_language(language))
        yield f"  {meaning}: {failure.explanation.in_language(language)}"
    if failure.code:
        rule = style.paint("green", _RULE.in_language(language))
        yield f"  {rule}: {failure.code} (ranksafe explain {failure.code})"
    if failure.excerpt:
        yield f"  {style.paint('dim', _LOG_ENDS.in_language(language))}:"
        yield from (f"    {line}" for line in failure.excerpt)
    callers = _callers(failure)
    if callers:
        yield f"  {style.paint('dim', _CALLED_FROM.in_language(language))}:"
        yield from (f"    {_place(frame)} {style.paint('dim', frame.source)}" for frame in callers)


def _callers(failure: Failure) -> Sequence[Frame]:
    """The user's own frames above the one that is drawn, nearest first."""
    own = [frame for frame in failure.frames if frame.in_user_code]
    return own[-2 : -2 - _LONGEST_CHAIN : -1]


def _place(frame: Frame) -> str:
    return f"{Path(frame.filename).name}:{frame.line} {frame.function}"


def _snippet(failure: Failure, style: Style, color: str, around: int) -> Iterator[str]:
    """The lines around the failure; nothing when the file cannot be read any more."""
    assert failure.filename is not None
    assert failure.line is not None
    lines = source_lines(failure.filename)
    if not 0 < failure.line <= len(lines):
        return
    first = max(1, failure.line - around)
    last = min(len(lines), failure.line + around)
    width = len(str(last))
    bar = style.paint("dim", "|")
    for number in range(first, last + 1):
        line = lines[number - 1].expandtabs(4)
        yield f" {style.paint('dim', str(number).rjust(width))} {bar} {line}".rstrip()
        if number == failure.line:
            start, length = _marked(failure, lines[number - 1])
            mark = style.paint(color, "^" * length)
            yield f" {' ' * width} {bar} {' ' * start}{mark}"


def _marked(failure: Failure, line: str) -> tuple[int, int]:
    """Cells before the mark and its length; the whole statement where no column is known."""
    start = len(line) - len(line.lstrip()) if failure.column is None else failure.column - 1
    end = len(line.rstrip())
    if failure.end_column is not None and failure.end_line == failure.line:
        end = failure.end_column - 1
    before, marked = line[:start].expandtabs(4), line[start:end].expandtabs(4)
    return display_width(before), max(1, display_width(marked))
