"""What a rank had logged and survived before a plain error ended it: often the place where that began."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from ranksafe.localization import Translated, both
from ranksafe.runs.diagnosis.common_failure import follows
from ranksafe.runs.diagnosis.loose_tracebacks import rank_in_record
from ranksafe.runs.diagnosis.marked_lines import raw_lines
from ranksafe.runs.explain.evidence import Evidence, RankEvidence
from ranksafe.runs.explain.locate import UserCode, innermost_user_frame
from ranksafe.runs.explain.traceback_text import Located, locate_tracebacks
from ranksafe.runs.log_text.reader import SaidBy
from ranksafe.runs.model import Failure

_PLAIN = "exception"
"""The kind of failure whose cause may lie before the line that raised it."""
_NOT_FINITE = re.compile(
    r"\b(?:nan|inf|infinite|infinity|not finite|invalid values|loss scale)\b", re.IGNORECASE
)
"""Words of an error about numbers that broke down."""
_WARNS = re.compile(
    r"(?P<file>[^\s:]+\.py):(?P<line>\d+): (?:Runtime|User)Warning: "
    r"(?P<words>(?:(?:divide by zero|invalid value|overflow) encountered|(?:std|var)\(\): degrees of freedom is <= 0"
    r"|Mean of empty slice)[^\n.]*)"
)
"""numpy's and torch's words for numbers that become NaN."""
_HABIT = 2
_LONGEST = 160


def with_logged_before(
    failure: Failure, evidence: Evidence, said: SaidBy, user_code: UserCode
) -> Failure:
    """The failure with a word on the last error that its rank had logged before, if there is one."""
    if _NOT_FINITE.search(failure.message):
        return _with_warning_before(failure, said)
    rank = evidence.ranks.get(failure.rank) if failure.rank is not None else None
    if rank is None or failure.kind != _PLAIN or not failure.root_cause:
        return failure
    before = _logged_before(rank, said)
    frame = None if before is None else innermost_user_frame(user_code.marked(before.raised.frames))
    if before is None or frame is None:
        return failure
    place = f"{Path(frame.filename).name}:{frame.line}"
    text = before.raised.text.strip().split("\n", 1)[0][:_LONGEST]
    told = _LOGGED_BEFORE.filled(text=text, place=place)
    return replace(failure, explanation=both(failure.explanation, told))


def _with_warning_before(failure: Failure, said: SaidBy) -> Failure:
    """Where numbers broke down: the first place that was warned of, by the failed rank or by one without a mark."""
    own = said.ranks.get(failure.rank, []) if failure.rank is not None else []
    unmarked = [line for line in raw_lines(said) if rank_in_record(line[1]) in (None, failure.rank)]
    lines = sorted({line for each in (own, unmarked, *said.others) for line in each})
    found = next(filter(None, (_WARNS.search(text) for _, text in lines)), None)
    if found is None:
        return failure
    place = f"{Path(found['file']).name}:{found['line']}"
    told = _WARNED_BEFORE.filled(place=place, words=found["words"][:_LONGEST])
    return replace(failure, explanation=both(failure.explanation, told))


def _logged_before(rank: RankEvidence, said: SaidBy) -> Located | None:
    """The last traceback that the rank logged; none where it logged that one again and again, or the same failed it."""
    if rank.raised is None or rank.raised_at is None or rank.raised_at < 0:
        return None
    own = said.ranks.get(rank.rank, [])
    found = [
        each
        for lines in (own, *said.others)
        for each in locate_tracebacks(lines)
        if each.logged
        and each.last < rank.raised_at
        and not follows(each.raised)
        and (lines is own or rank_in_record(each.announced) == rank.rank)
    ]
    last = max(found, key=lambda each: each.first, default=None)
    if last is None or last.raised.text == rank.raised.text:
        return None
    return last if sum(each.raised.text == last.raised.text for each in found) <= _HABIT else None


_WARNED_BEFORE = Translated(
    en='Before that, the log has "{words}" at {place}: that may be where it began.',
    zh_cn="在此之前，日志中有 {place} 处的“{words}”：问题可能由此开始。",
)
_LOGGED_BEFORE = Translated(
    en="Before that, this rank had logged {text} at {place} and gone on: that may be where it began.",
    zh_cn="在此之前，该 rank 曾记录 {place} 处的 {text} 并继续运行：问题可能由此开始。",
)
