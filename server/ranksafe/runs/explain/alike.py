"""Whether several processes say the same."""

from __future__ import annotations

import re

from ranksafe.runs.explain.evidence import Raised

_NUMBERS = re.compile(r"\d+")
_SET = re.compile(r"\{([^{}:]*)\}")
_ALIKE = 90


def said_alike(one: Raised, other: Raised) -> bool:
    """Whether two exceptions say the same, but for numbers."""
    return gist(one) == gist(other)


def gist(raised: Raised) -> str:
    """The beginning of what an exception says, without its numbers; sets are printed in an order of their own."""
    lines = raised.text.strip().splitlines()
    return _NUMBERS.sub("#", with_sorted_sets(lines[0]) if lines else "")[:_ALIKE]


def with_sorted_sets(text: str) -> str:
    """The text with the members of sets in one order: each process prints them in an order of its own."""
    return _SET.sub(lambda found: "{" + ", ".join(sorted(found[1].split(", "))) + "}", text)
