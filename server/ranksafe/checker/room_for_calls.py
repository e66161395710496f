"""Room for the frames of deep calls.

CPython since 3.11 keeps the frames of Python functions in pieces of 16 KiB; each call over the end of one fetches the
next from the operating system, and gives it back on return (python/cpython#142183, mended in 2026 for 3.13 and later).
An analysis that goes up and down over such an end does so tens of thousands of times, a tenth of its time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Final, ParamSpec, TypeVar

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")
_SLOTS: Final = 66_000
"""Of 8 bytes. A frame that needs more than a piece gets one of its own, of the next power of two, here 1 MiB: what it
leaves is for the calls made from it, some two thousand. What nobody uses is never touched, and takes no memory."""


def with_room_for_calls(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """The function, with room for the calls that it makes. Not for functions that call each other deeply: each has its
    own."""

    def call(*arguments: _Arguments.args, **named: _Arguments.kwargs) -> _Result:
        return function(*arguments, **named)

    call.__code__ = call.__code__.replace(co_stacksize=_SLOTS)
    return wraps(function)(call)
