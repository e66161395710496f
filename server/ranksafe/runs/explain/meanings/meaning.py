"""What a message means in other words. The tables beside this module are data."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ranksafe.localization import Translated


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a message means; named groups of the pattern fill the sentence."""

    pattern: re.Pattern[str]
    said: Translated


def means(pattern: str, en: str, zh: str) -> Meaning:
    """A `Meaning`; the exception's module stands before ``pattern``, or not."""
    return Meaning(re.compile(r"\A(?:\w+\.)*" + pattern), Translated(en, zh))
