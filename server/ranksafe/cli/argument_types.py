"""What argparse makes of the words of a command line: each raises ArgumentTypeError with a sentence for the user."""

from __future__ import annotations

import argparse
import math
import re

_SIZE = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[KMGT]?i?B?)", re.IGNORECASE)
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}
_LARGEST_SIZE = 2**60
"""Bytes. What is larger is a slip of the hand, and no machine's."""


def positive(text: str) -> int:
    """A whole number from 1 on."""
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number") from None
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return number


def seconds(text: str) -> float:
    """A time above 0, in seconds."""
    try:
        number = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds") from None
    if not (math.isfinite(number) and number > 0):
        raise argparse.ArgumentTypeError(f"{text} is no time above 0")
    return number


def size(text: str) -> int:
    """Bytes in a size like ``24GiB``, ``24G`` or ``512 MiB``; all are powers of 1024, as nvidia-smi's."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no size: 24GiB, 512MiB")
    unit = match["unit"].upper().rstrip("B").rstrip("I")
    number = float(match["number"]) * 1024 ** _POWERS[unit]
    if not 1 <= number <= _LARGEST_SIZE:
        raise argparse.ArgumentTypeError(f"{text!r} is no size that a machine has")
    return int(number)
