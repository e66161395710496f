"""Errors that came only of cleaning up after another one, which they hide: the other one is the cause.

"During handling of the above exception, another exception occurred" joins two very different things: an error that
became another one, and an error that hit the clean-up (``finally: destroy_process_group()``, a context manager's
``__exit__``, a tracker's ``finish``, Lightning 1.4's ``reconciliate_processes``, Lightning-AI/pytorch-lightning#8653).
"""

from __future__ import annotations

import re
from dataclasses import replace

from ranksafe.runs.explain.evidence import Raised
from ranksafe.runs.explain.locate import innermost_user_frame

_CLEANS_UP = re.compile(
    r"clean_?up|tear_?down|shut_?down|destroy|reconcil|finali[sz]e|on_exception|atexit|close|finish|flush|\bjoin\b"
    r"|__exit__|__del__|terminate|\babort\b|end_training|stop\b",
    re.IGNORECASE,
)
_WRITES_UP = re.compile(
    r"\b(?=\w*(?:write|save|dump|report|summar|export|record|log|print))\w+\(", re.IGNORECASE
)
"""What a ``finally`` does besides cleaning up."""
_ACCIDENTS = frozenset(
    {"AttributeError", "NameError", "UnboundLocalError", "TypeError", "IndexError", "KeyError"}
)
"""Types that nobody raises to say what became of another error."""


def hidden_cause(raised: Raised) -> Raised:
    """``raised``, or what was being handled when only the clean-up after it raised; frames are marked."""
    if raised.cause is not None and raised.cause.where is not None:
        return replace(raised, cause=hidden_cause(raised.cause))
    handled = raised.context
    if handled is None or raised.cause is not None or handled.where != raised.where:
        return raised
    if innermost_user_frame(handled.frames) is None or not _in_cleanup(raised):
        return raised
    return hidden_cause(handled)


def _in_cleanup(raised: Raised) -> bool:
    """Whether the user's line called something that cleans up, and it was raised in there."""
    own = innermost_user_frame(raised.frames)
    if own is None:
        return False
    if _in_finally(raised):
        return True
    if raised.frames[-1] is own:
        return False
    called = raised.frames[raised.frames.index(own) + 1 :]
    return _CLEANS_UP.search(own.source) is not None or any(
        _CLEANS_UP.search(frame.function) for frame in called
    )


def _in_finally(raised: Raised) -> bool:
    """Whether, further down in the function that the handled error passed through, something was tidied up or written
    down and failed by accident."""
    handled = raised.context
    if handled is None or not handled.frames or raised.type not in _ACCIDENTS:
        return False
    first = handled.frames[0]
    after = [
        frame
        for frame in raised.frames
        if (frame.filename, frame.function) == (first.filename, first.function)
    ]
    if not after or after[-1].line <= first.line or raised.frames[-1].source.startswith("raise"):
        return False
    return _CLEANS_UP.search(after[-1].source) is not None or (
        _WRITES_UP.search(after[-1].source) is not None
    )
