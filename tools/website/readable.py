"""Regular expressions of messages as text that people recognise: what varies is an ellipsis."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any

if sys.version_info >= (3, 11):
    from re import _constants as kinds
    from re import _parser as parser
else:
    import sre_constants as kinds
    import sre_parse as parser

VARIES = "…"
_MOST_WORDINGS = 16
_MOST_LETTERS = 3
"""A larger set of characters is one that varies."""


def wordings(pattern: str) -> tuple[str, ...]:
    """Every wording that ``pattern`` is written for; never more than it matches, but for what its assertions ask."""
    branches = _branches(parser.parse(pattern))
    found = (text for branch in branches for text in _sequence(branch))
    return tuple(dict.fromkeys(filter(None, map(_tidy, found))))


def fits(wording: str, text: str) -> bool:
    """Whether all that is fixed in ``wording`` stands in ``text``, in this order; `docs/theme/assets/filter.js` asks
    the same of what is pasted."""
    place, text = 0, _plain(text)
    for part in _plain(wording).split(VARIES):
        at = text.find(part.strip(), place)
        if at < 0:
            return False
        place = at + len(part.strip())
    return True


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def _tidy(text: str) -> str:
    text = re.sub(rf"{VARIES}(?:\s*{VARIES})+", VARIES, _plain(text))
    return text.lstrip(f" :,{VARIES}").rstrip(f" {VARIES}")


def _branches(parsed: Any) -> Iterable[Any]:
    if len(parsed) == 1 and parsed[0][0] is kinds.BRANCH:
        return list(parsed[0][1][1])
    return [parsed]


def _sequence(parsed: Iterable[tuple[Any, Any]]) -> list[str]:
    choices = [_item(kind, value) for kind, value in parsed]
    # What says least goes first.
    while _product(choices) > _MOST_WORDINGS:
        several = [at for at, choice in enumerate(choices) if len(choice) > 1]
        choices[min(several, key=lambda at: max(map(len, choices[at])))] = [VARIES]
    return ["".join(parts) for parts in itertools.product(*choices)]


def _product(choices: Sequence[Sequence[str]]) -> int:
    count = 1
    for each in choices:
        count *= len(each)
    return count


def _item(kind: Any, value: Any) -> list[str]:
    if kind is kinds.LITERAL:
        return [chr(value)]
    if kind is kinds.SUBPATTERN:
        return _sequence(value[3])
    if kind is kinds.BRANCH:
        return [text for branch in value[1] for text in _sequence(branch)]
    if kind in (kinds.MAX_REPEAT, kinds.MIN_REPEAT):
        return _repeated(*value)
    if kind is kinds.IN:
        return _one_of(value)
    if kind in (kinds.AT, kinds.ASSERT, kinds.ASSERT_NOT):
        return [""]
    return [VARIES]


def _repeated(least: int, most: int, repeated: Any) -> list[str]:
    once = _sequence(repeated)
    if (least, most) == (0, 1) and VARIES not in "".join(once):
        return ["", *once]
    if least == most == 1 or (set(once) == {" "} and least):
        return once
    return [VARIES]


def _one_of(members: Sequence[tuple[Any, Any]]) -> list[str]:
    if members == [(kinds.CATEGORY, kinds.CATEGORY_SPACE)]:
        return [" "]
    if any(kind is not kinds.LITERAL for kind, _ in members) or len(members) > _MOST_LETTERS:
        return [VARIES]
    letters = [chr(value) for _, value in members]
    return letters[:1] if len({letter.lower() for letter in letters}) == 1 else letters
