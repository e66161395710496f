"""What a rank had logged and survived before an error ended it: often the place where that began."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ranksafe.runs.diagnosis.common_failure import follows
from ranksafe.runs.diagnosis.loose_tracebacks import rank_in_record
from ranksafe.runs.diagnosis.own_lines import OwnLines
from ranksafe.runs.explain.evidence import RankEvidence
from ranksafe.runs.explain.locate import UserCode, innermost_user_frame
from ranksafe.runs.explain.traceback_text import Located, locate_tracebacks
from ranksafe.runs.log_text.reader import SaidBy, Stream

_WARNS = re.compile(
    r"(?<![^\s:])(?P<file>[^\s:]+\.py):(?P<line>\d+): (?:Runtime|User)Warning: "
    r"(?P<words>(?:(?:divide by zero|invalid value|overflow) encountered|(?:std|var)\(\): degrees of freedom is <= 0"
    r"|Mean of empty slice)[^\n.]*)"
)
"""numpy's and torch's words for numbers that become NaN."""
_HABIT = 2
_LONGEST = 160


def logged_before(
    rank: RankEvidence | None, said: SaidBy, own: OwnLines, user_code: UserCode
) -> Iterator[str]:
    """The first warning of numbers that broke down, by the rank or by one without a mark, and its last logged error."""
    number = None if rank is None else rank.rank
    unmarked = [line for line in own.all if rank_in_record(line[1]) in (None, number)]
    streams = (said.ranks.get(number, []) if number is not None else [], unmarked, *said.others)
    lines = sorted({line for each in streams for line in each})
    warned = next(filter(None, (_WARNS.search(text) for _, text in lines)), None)
    if warned is not None:
        place = f"{Path(warned['file']).name}:{warned['line']}"
        yield f"warned before at {place}: {warned['words'][:_LONGEST]}"
    before = None if rank is None else _last_logged(rank, said)
    frame = None if before is None else innermost_user_frame(user_code.marked(before.raised.frames))
    if before is not None and frame is not None:
        text = before.raised.text.strip().split("\n", 1)[0][:_LONGEST]
        yield f"logged before at {Path(frame.filename).name}:{frame.line}: {text}"


def _last_logged(rank: RankEvidence, said: SaidBy) -> Located | None:
    """The last traceback that the rank logged; none where it logged that one again and again, or the same failed it."""
    if rank.raised is None or rank.raised_at is None or rank.raised_at < 0:
        return None
    own = said.ranks.get(rank.rank, Stream())
    found = [
        each
        for lines in (own, *said.others)
        for each in lines.once(locate_tracebacks)
        if each.logged
        and each.last < rank.raised_at
        and not follows(each.raised)
        and (lines is own or rank_in_record(each.announced) == rank.rank)
    ]
    last = max(found, key=lambda each: each.first, default=None)
    if last is None or last.raised.text == rank.raised.text:
        return None
    return last if sum(each.raised.text == last.raised.text for each in found) <= _HABIT else None
