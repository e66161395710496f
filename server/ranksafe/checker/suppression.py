"""``# ranksafe: ignore[RS101]``: findings to be kept silent, and comments that silence nothing."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from ranksafe.checker.comments import (
    MARKER,
    Coverage,
    NamedRule,
    SuppressionComment,
    suppression_comments,
)
from ranksafe.checker.finding import Applicability, Finding, FixOffer
from ranksafe.checker.unused_suppression.rule import UNUSED_SUPPRESSION
from ranksafe.localization import Translated
from ranksafe.pausing import pause_point
from ranksafe.source.position import Edit, Position, Range
from ranksafe.source.text import split_lines


def apply_suppressions(
    text: str, findings: Sequence[Finding], checked_codes: Collection[str]
) -> tuple[Finding, ...]:
    """The findings that no comment silences, and RS001 for comments that silence nothing; sorted by position.

    ``checked_codes``: the codes (names may be among them) of the rules that ran on this text, RS001 included if it is
    enabled; a comment for a rule that did not run is not called unused. A comment covers the findings that start on
    its logical line.
    """
    if MARKER not in text:
        return tuple(findings)
    comments = suppression_comments(text)
    if not comments:
        return tuple(findings)
    used: set[NamedRule] = set()
    kept: list[Finding] = []
    silencers = _Silencers(comments)
    for finding in findings:
        pause_point()
        silencing = silencers.of(finding)
        used.update(silencing)
        if not silencing:
            kept.append(finding)
    if UNUSED_SUPPRESSION.code in checked_codes:
        kept += _unsilenced(_unused(comments, used, checked_codes), silencers)
    return tuple(sorted(kept, key=lambda finding: (finding.range, finding.code)))


class _Silencers:
    """Which rules of comments silence a finding: found by its line and its name, as there may be many of both."""

    def __init__(self, comments: Sequence[SuppressionComment]) -> None:
        self._everywhere: dict[str, list[NamedRule]] = {}
        self._by_line: dict[int, list[dict[str, list[NamedRule]]]] = {}
        tables: dict[tuple[int, int], dict[str, list[NamedRule]]] = {}
        for comment in comments:
            lines = (comment.first_line, comment.last_line)
            if comment.coverage is not Coverage.FILE:
                if lines not in tables:
                    tables[lines] = {}
                    for line in range(lines[0], lines[1] + 1):
                        self._by_line.setdefault(line, []).append(tables[lines])
                _add(comment, tables[lines])
            elif comment.at_top:
                _add(comment, self._everywhere)

    def of(self, finding: Finding) -> list[NamedRule]:
        """The rules that silence a finding, or more than enough of them."""
        tables = (self._everywhere, *self._by_line.get(finding.range.start.line, ()))
        return [
            rule
            for table in tables
            for name in (finding.code, finding.name)
            for rule in table.get(name, ())
        ]


def _add(comment: SuppressionComment, table: dict[str, list[NamedRule]]) -> None:
    for rule in comment.rules:
        for name in {rule.text, rule.text.upper()}:
            rules = table.setdefault(name, [])
            if len(rules) < _MORE_THAN_ENOUGH:
                rules.append(rule)


def _unsilenced(unused: list[Finding], silencers: _Silencers) -> Iterator[Finding]:
    """RS001 can be silenced like any rule; a comment that only silences the complaint about itself stays unused."""
    useful: set[Range] = set()
    kept = []
    for finding in unused:
        others = {rule.range for rule in silencers.of(finding)} - {finding.range}
        useful |= others
        if not others:
            kept.append(finding)
    return (finding for finding in kept if finding.range not in useful)


def suppress(text: str, finding: Finding) -> Edit:
    """The edit that silences ``finding``: into the comment that is already on its logical line, else a new one."""
    line = finding.range.start.line
    for comment in suppression_comments(text):
        on_line = comment.first_line <= line <= comment.last_line
        if comment.coverage is Coverage.LINE and comment.rules and on_line:
            place = comment.rules[-1].range.end
            return Edit(Range(place, place), f", {finding.code}")
    lines = split_lines(text)
    line = _line_that_takes_a_comment(lines, line)
    content = lines[line].rstrip("\r\n")
    end = Position(line, len(content))
    start = Position(line, len(content.rstrip()))
    return Edit(Range(start, end), f"  # ranksafe: ignore[{finding.code}]")


def suppress_in_file(text: str, code: str) -> Edit:
    """The edit that silences a rule in the whole file: into the comment at its top, else a new one."""
    for comment in suppression_comments(text):
        if comment.coverage is Coverage.FILE and comment.at_top and comment.rules:
            place = comment.rules[-1].range.end
            return Edit(Range(place, place), f", {code}")
    lines = split_lines(text)
    first = max((number + 1 for number in (0, 1) if _has_its_place(lines, number)), default=0)
    end = "\r\n" if lines[0].endswith("\r\n") else "\n"
    place = Position(first, 0)
    return Edit(Range(place, place), f"# ranksafe: ignore-file[{code}]{end}")


def _has_its_place(lines: list[str], number: int) -> bool:
    """A line that means nothing elsewhere: the interpreter's, first, and the encoding's, first or second (PEP 263)."""
    if number >= len(lines):
        return False
    return (number == 0 and lines[0].startswith("#!")) or bool(_ENCODING.match(lines[number]))


def _line_that_takes_a_comment(lines: list[str], line: int) -> int:
    """The given line, or the next one that does not end in a backslash or inside a string of several lines."""
    probe = "# ranksafe: ignore[RS001]"
    for candidate in range(line, len(lines)):
        content = lines[candidate].rstrip("\r\n")
        if content.rstrip().endswith("\\"):
            continue
        with_probe = [*lines[:candidate], f"{content.rstrip()}  {probe}\n", *lines[candidate + 1 :]]
        found = suppression_comments("".join(with_probe))
        if any(
            comment.range.start.line == candidate and comment.first_line <= line
            for comment in found
        ):
            return candidate
    return line


_MORE_THAN_ENOUGH = 100
"""Comments for one rule on one line, or at the top; more of them say nothing new."""
_ENCODING = re.compile(r"[ \t\f]*#.*?coding[:=]")
_NAMES_NO_RULE = Translated(
    "this comment silences nothing: write the rule in brackets, as in `ignore[RS101]`",
    "此注释不会屏蔽任何提示：请在方括号中写明规则，例如 `ignore[RS101]`",
)
_NOT_AT_TOP = Translated(
    "`ignore-file` works only at the top of the file, before the first statement",
    "`ignore-file` 只在文件顶部、第一条语句之前有效",
)
_SILENCES_NOTHING = Translated(
    "unused suppression: {rule} reports nothing here", "多余的屏蔽注释：{rule} 在此处没有提示"
)
_REMOVE = Translated("Remove the unused suppression", "删除多余的屏蔽注释")


def _unused(
    comments: Sequence[SuppressionComment], used: set[NamedRule], checked_codes: Collection[str]
) -> list[Finding]:
    findings = []
    for comment in comments:
        pause_point()
        if not comment.rules:
            findings.append(_finding(_NAMES_NO_RULE, comment.range, fixable=False))
        elif comment.coverage is Coverage.FILE and not comment.at_top:
            findings.append(_finding(_NOT_AT_TOP, comment.range, fixable=False))
        else:
            findings += [
                _finding(_SILENCES_NOTHING.filled(rule=rule.text), rule.range, fixable=True)
                for rule in comment.rules
                if rule not in used
                and (rule.text.upper() in checked_codes or rule.text in checked_codes)
            ]
    return findings


def _finding(message: Translated, place: Range, *, fixable: bool) -> Finding:
    offer = FixOffer("remove", _REMOVE, Applicability.SAFE)
    return Finding(
        code=UNUSED_SUPPRESSION.code,
        name=UNUSED_SUPPRESSION.name,
        level=UNUSED_SUPPRESSION.level,
        message=message,
        range=place,
        fixes=(offer,) if fixable else (),
    )
