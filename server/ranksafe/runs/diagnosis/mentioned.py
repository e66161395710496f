"""What a log says elsewhere of the file that is missing, or of names like the key that is not there."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence

from ranksafe.runs.diagnosis.own_lines import OwnLines
from ranksafe.runs.explain.traceback_text import loose_lines
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
