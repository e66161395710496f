"""What a log says elsewhere of what failed: the missing file, a name like the missing key, what a rank survived before.

An error that a rank had logged, or a warning of numbers that broke down, is often the place where its end began.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ranksafe.runs.diagnosis.common_failure import follows
from ranksafe.runs.diagnosis.loose_tracebacks import rank_in_record
from ranksafe.runs.diagnosis.own_lines import OwnLines
from ranksafe.runs.explain.evidence import RankEvidence
from ranksafe.runs.explain.locate import UserCode, innermost_user_frame, place
from ranksafe.runs.explain.traceback_text import Located, locate_tracebacks, loose_lines
from ranksafe.runs.log_text.reader import SaidBy, Stream
from ranksafe.runs.model import Failure

_FILE = re.compile(r"\AFileNotFoundError: .*?'(?P<path>[^'\n]+)'(?:\s|\Z)")
_KEY = re.compile(
    r"\A(?:KeyError: '(?P<key>[^'\n ]+)'|AttributeError: '[^']+' object has no attribute '(?P<attribute>\w+)'"
    r"|Config(?:Attribute|Key)Error: Key '(?P<setting>\w+)')"
)
_QUOTED = re.compile(
    r"['\"](?P<name>[\w./:-]{2,60})['\"]|^\s*(?P<key>[A-Za-z_]\w{1,60}): |\b(?P<word>[A-Za-z_]\w*)="
)
_IN_TRACEBACK = re.compile(r'^\s*(?:File "|Traceback |[~^]+\s*$)|^\s{4,}\S|.*[│└┤╭╰]')
_LIKE = 0.75
_LEAST_NAME = 4
_LONGEST = 160
_WARNS = re.compile(
    r"(?<![^\s:])(?P<file>[^\s:]+\.py):(?P<line>\d+): (?:Runtime|User)Warning: "
    r"(?P<words>(?:(?:divide by zero|invalid value|overflow) encountered|(?:std|var)\(\): degrees of freedom is <= 0"
    r"|Mean of empty slice)[^\n.]*)"
)
"""numpy's and torch's words for numbers that become NaN."""
_HABIT = 2


def mentions(failure: Failure, own: OwnLines) -> Iterator[str]:
    """The line in which the run tells of a missing file; a name that is like a missing key, and its line."""
    missing, key = _FILE.search(failure.message), _KEY.search(failure.message)
    if missing is None and key is None:
        return
    outer = {at for at, _ in loose_lines(own.all)}
    stood = dict(own.all)
    lines = [
        each.text
        for each in own.printed
        if each.at in outer and not _IN_TRACEBACK.match(stood[each.at])
    ]
    if missing is not None:
        line = _telling_of(missing["path"], lines)
        if line is not None:
            yield f"named before: {line[:_LONGEST]}"
    elif key is not None:
        found = _similar(key["key"] or key["attribute"] or key["setting"], lines)
        if found is not None:
            yield f"a name like it is {found[0]}: {found[1][:_LONGEST]}"


def _telling_of(path: str, lines: Sequence[str]) -> str | None:
    """The last line with the file's name in it."""
    name = path.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]
    if len(name) < _LEAST_NAME:
        return None
    whole = re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w-])")
    return next((line for line in reversed(lines) if whole.search(line)), None)


def _similar(key: str, lines: Iterable[str]) -> tuple[str, str] | None:
    """The quoted name of the log that is most like the key, and its line; none where the key itself is there."""
    named: dict[str, str] = {}
    for line in lines:
        found = (each["name"] or each["key"] or each["word"] for each in _QUOTED.finditer(line))
        named.update(dict.fromkeys(found, line))
    if len(key) < _LEAST_NAME or key in named:
        return None
    like = difflib.get_close_matches(key, named, n=1, cutoff=_LIKE)
    if not like:
        # horizon and forecast_horizon
        parts = {part for part in key.lower().split("_") if len(part) > _LEAST_NAME}
        like = [name for name in named if parts & set(name.lower().split("_"))]
    return (like[0], named[like[0]]) if len(like) == 1 else None


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
        where = f"{Path(warned['file']).name}:{warned['line']}"
        yield f"warned before at {where}: {warned['words'][:_LONGEST]}"
    before = None if rank is None else _last_logged(rank, said)
    frame = None if before is None else innermost_user_frame(user_code.marked(before.raised.frames))
    if before is not None and frame is not None:
        text = before.raised.text.strip().split("\n", 1)[0][:_LONGEST]
        yield f"logged before at {place(frame)}: {text}"


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
