"""A key or an attribute that is not there: would the real thing, for which ours stands in, have it?

Such a failure comes of the one object that was asked, not of everything that its line computes with. Where that object
is a stand-in of which is known what the real one has, nothing of ours brought the failure about.
"""

from __future__ import annotations

import functools
import sys
import traceback
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

from . import dependence, importing, provenance

_SAID = "ranksafe_lacking_in_truth"
"""On what carries an exception over from another process or thread: what was found out there."""
_lacking: list[Callable[[Any, str], bool]] = []


def install(_settings: Any = None) -> None:
    """Ask of exceptions of workers and replicas where they are raised; what arrives here has no frames."""
    importing.after_import("torch._utils", _hook_wrapped)


def recognise(is_lacking: Callable[[Any, str], bool]) -> None:
    """Ask this of a thing and a key: is it known that the real one has no such key? It must not raise."""
    _lacking.append(is_lacking)


def is_lacking_in_truth(error: BaseException, steps: Sequence[tuple[FrameType, int]]) -> bool:
    """Whether ``error`` looks for what the real thing has not, either. ``steps``: its frames, each with its line."""
    if steps and steps[-1][0].f_code.co_name == "reraise":
        return bool(getattr(steps[-1][0].f_locals.get("self"), _SAID, False))
    if isinstance(error, AttributeError):
        # Since Python 3.10 it has the object. A model or tokenizer that stands in is of the real one's class.
        entry = provenance.of(getattr(error, "obj", None))
        return entry is not None and entry.kind in ("model", "tokenizer")
    if not isinstance(error, KeyError):
        return False
    thing, key = _asked(steps, error.args[0] if error.args else None)
    return isinstance(key, str) and any(is_lacking(thing, key) for is_lacking in _lacking)


def _asked(steps: Sequence[tuple[FrameType, int]], key: object) -> tuple[Any, object]:
    """What the user's innermost line asked for a key, and the key."""
    own = [
        number
        for number, (frame, _) in enumerate(steps)
        if provenance.is_user_file(frame.f_code.co_filename)
    ]
    if not own:
        return None, None
    called = steps[own[-1] + 1 :]
    if called:
        frame = called[0][0]
        names = frame.f_code.co_varnames
        if frame.f_code.co_name != "__getitem__" or len(names) < 2:
            return None, None
        return frame.f_locals.get(names[0]), frame.f_locals.get(names[1])
    frame, line = steps[own[-1]]
    source = dependence.source_of(frame.f_code.co_filename)
    subscripted = dependence.subscripted(source, line, key) if source is not None else set()
    things = [frame.f_locals.get(name) for name in subscripted]
    return (things[0], key) if len(things) == 1 else (None, None)


def _hook_wrapped(module: Any) -> None:
    """``ExceptionWrapper`` carries an exception over as text (torch 2.13)."""
    wrapper = module.ExceptionWrapper
    keep = wrapper.__init__

    @functools.wraps(keep)
    def kept(self: Any, exc_info: Any = None, *arguments: Any, **keywords: Any) -> None:
        keep(self, exc_info, *arguments, **keywords)
        _, error, trace = exc_info or sys.exc_info()
        steps = list(traceback.walk_tb(trace))
        setattr(self, _SAID, error is not None and is_lacking_in_truth(error, steps))

    wrapper.__init__ = kept
