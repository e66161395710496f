"""What argparse makes of the words of a command line: each raises ArgumentTypeError with a sentence for the user."""

from __future__ import annotations

import math
import re

from ranksafe.cli.argument_words import wrong
from ranksafe.localization import Translated

_SIZE = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[KMGT]?i?B?)", re.IGNORECASE)
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}
_LARGEST_SIZE = 2**60
"""Bytes. What is larger is a slip of the hand, and no machine's."""
_NO_NUMBER = Translated("{text!r} is no whole number", "{text!r} 不是整数")
_TOO_SMALL = Translated("{text} is less than 1", "{text} 小于 1")
_NO_SECONDS = Translated("{text!r} is no number of seconds", "{text!r} 不是秒数")
_NO_TIME = Translated("{text} is no time above 0", "{text} 不是大于 0 的时间")
_NO_SIZE = Translated("{text!r} is no size: 24GiB, 512MiB", "{text!r} 不是大小：24GiB、512MiB")
_NO_MACHINE = Translated(
    "{text!r} is no size that a machine has", "{text!r} 不是一台机器可能有的大小"
)


def positive(text: str) -> int:
    """A whole number from 1 on."""
    try:
        number = int(text)
    except ValueError:
        raise wrong(_NO_NUMBER.filled(text=text)) from None
    if number < 1:
        raise wrong(_TOO_SMALL.filled(text=text))
    return number


def seconds(text: str) -> float:
    """A time above 0, in seconds."""
    try:
        number = float(text)
    except ValueError:
        raise wrong(_NO_SECONDS.filled(text=text)) from None
    if not (math.isfinite(number) and number > 0):
        raise wrong(_NO_TIME.filled(text=text))
    return number


def size(text: str) -> int:
    """Bytes in a size like ``24GiB``, ``24G`` or ``512 MiB``; all are powers of 1024, as nvidia-smi's."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise wrong(_NO_SIZE.filled(text=text))
    unit = match["unit"].upper().rstrip("B").rstrip("I")
    number = float(match["number"]) * 1024 ** _POWERS[unit]
    if not 1 <= number <= _LARGEST_SIZE:
        raise wrong(_NO_MACHINE.filled(text=text))
    return int(number)
