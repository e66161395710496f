"""What a log says elsewhere of the file that is missing, or of names like the key that is not there."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ranksafe.localization import Translated, both
from ranksafe.runs.diagnosis.marked_lines import OF_A_FAILURE, raw_lines
from ranksafe.runs.explain.evidence import Evidence
from ranksafe.runs.explain.traceback_text import locate_tracebacks
from ranksafe.runs.explain.what_others_did import with_last_line
from ranksafe.runs.log_text.reader import SaidBy
from ranksafe.runs.model import Failure

_FILE = re.compile(r"\AFileNotFoundError: .*?'(?P<path>[^'\n]+)'(?:\s|\Z)")
_KEY = re.compile(
    r"\A(?:KeyError: '(?P<key>[^'\n ]+)'|AttributeError: '[^']+' object has no attribute '(?P<attribute>\w+)'"
    r"|Config(?:Attribute|Key)Error: Key '(?P<setting>\w+)')"
)
_QUOTED = re.compile(
    r"['\"](?P<name>[\w./:-]{2,60})['\"]|^\s*(?P<key>[A-Za-z_]\w{1,60}): |\b(?P<word>[A-Za-z_]\w*)="
)
_OF_DATA = frozenset(
    {
        *("exception", "damaged-data", "unreadable-file", "shape-mismatch", "not-finite"),
    }
)
"""Kinds of failure that may come of one file's content."""
_FILE_NAME = re.compile(
    r"[\w-]+\.(?:jsonl?|parquet|np[yz]|tar|csv|tsv|txt|png|jpe?g|tiff?|wav|flac|mp3|mp4|bin|pt|pkl|h5|hdf5|arrow|zst|gz"
    r"|nii|dcm|lmdb|tfrecord)\b",
    re.IGNORECASE,
)
_IN_TRACEBACK = re.compile(r'^\s*(?:File "|Traceback |[~^]+\s*$)|^\s{4,}\S|.*[│└┤╭╰]')
_LIKE = 0.75
_LEAST_NAME = 4
_LONGEST = 160


def with_mentions(failure: Failure, evidence: Evidence, said: SaidBy) -> Failure:
    """A missing file with the line in which the run tells of it, a missing key with the one that has a similar name,
    bad data with the file that its rank had named last."""
    if not failure.root_cause:
        return failure
    failure = _with_last_file(failure, evidence)
    missing, key = _FILE.search(failure.message), _KEY.search(failure.message)
    if missing is not None:
        line = _telling_of(missing["path"], _printed(said))
        if line is not None:
            told = _MENTIONED.filled(line=line[:_LONGEST])
            return replace(failure, explanation=both(failure.explanation, told))
    elif key is not None:
        found = _similar(key["key"] or key["attribute"] or key["setting"], _printed(said))
        if found is not None:
            told = _SIMILAR.filled(name=found[0], line=found[1][:_LONGEST])
            return replace(failure, explanation=both(failure.explanation, told))
    return failure


def _with_last_file(failure: Failure, evidence: Evidence) -> Failure:
    if failure.kind not in _OF_DATA or failure.rank is None or _FILE_NAME.search(failure.message):
        return failure
    line = evidence.last_lines.get(failure.rank)
    if line is None or not _FILE_NAME.search(line):
        return failure
    told = with_last_line(failure.explanation, failure.rank, evidence)
    return replace(failure, explanation=told)


def _printed(said: SaidBy) -> list[str]:
    """The lines that the program printed itself, as far as the beginning and the end of the log have them."""
    lines = raw_lines(said)
    inside: set[int] = set()
    for each in locate_tracebacks(lines):
        inside.update(range(each.first, each.last + 1))
    return [
        text.strip()
        for number, text in lines
        if number not in inside and not OF_A_FAILURE.search(text) and not _IN_TRACEBACK.match(text)
    ]


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


_MENTIONED = Translated(
    en='The log tells of it: "{line}".',
    zh_cn="日志中提到了它：“{line}”。",
)
_SIMILAR = Translated(
    en='The log has a similar name, {name}: "{line}".',
    zh_cn="日志中有一个相近的名称 {name}：“{line}”。",
)
