"""The edit of RS001: take the rule out of the comment, or the comment out of the line."""

from __future__ import annotations

from collections.abc import Sequence

from ranksafe.checker.comments import NamedRule, SuppressionComment, suppression_comments
from ranksafe.checker.finding import Finding, FixOffer
from ranksafe.semantics.module import Module
from ranksafe.source.position import Edit, Position, Range
from ranksafe.source.text import split_lines


def edits(finding: Finding, offer: FixOffer, module: Module) -> Sequence[Edit] | None:  # noqa: ARG001
    """One edit; None when the comment is not there any more."""
    text = module.source.text
    for comment in suppression_comments(text):
        for rule in comment.rules:
            if rule.range == finding.range:
                return [_without(comment, rule, text)]
    return None


def _without(comment: SuppressionComment, rule: NamedRule, text: str) -> Edit:
    if len(comment.rules) > 1:
        return Edit(_with_comma(comment, rule), "")
    content = split_lines(text)[comment.range.start.line]
    before = content[: comment.range.start.column].rstrip()
    after = content[comment.range.end.column :].strip()
    line = comment.range.start.line
    if after and not after.startswith("#"):
        # Words after the bracket belong to a comment the user wrote: they stay, with the hash.
        return Edit(Range(comment.range.start, comment.range.end), "#")
    if not before and not after:
        return Edit(Range(Position(line, 0), Position(line + 1, 0)), "")
    start = comment.range.start if after else Position(line, len(before))
    end = comment.range.end.column
    if after:
        end += len(content[end:]) - len(content[end:].lstrip())
    return Edit(Range(start, Position(line, end)), "")


def _with_comma(comment: SuppressionComment, rule: NamedRule) -> Range:
    index = comment.rules.index(rule)
    if index + 1 < len(comment.rules):
        return Range(rule.range.start, comment.rules[index + 1].range.start)
    return Range(comment.rules[index - 1].range.end, rule.range.end)
