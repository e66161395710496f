"""Errors that came only of cleaning up after another one, which they hide: the other one is the cause.

"During handling of the above exception, another exception occurred" joins two very different things: an error that
became another one, and an error that hit the clean-up (``finally: destroy_process_group()``, a context manager's
``__exit__``, a tracker's ``finish``, Lightning 1.4's ``reconciliate_processes``, Lightning-AI/pytorch-lightning#8653).
"""

from __future__ import annotations

import re

from ranksafe.runs.explain.evidence import Raised
from ranksafe.runs.explain.locate import innermost_user_frame

_CLEANS_UP = re.compile(
    r"clean_?up|tear_?down|shut_?down|destroy|reconcil|finali[sz]e|on_exception|atexit|close|finish|flush|\bjoin\b"
    r"|__exit__|__del__|terminate|\babort\b|end_training|stop\b",
    re.IGNORECASE,
)


def hidden_cause(raised: Raised) -> Raised:
    """``raised``, or what was being handled when only the clean-up after it raised; frames are marked."""
    handled = raised.context
    if handled is None or raised.cause is not None or handled.where != raised.where:
        return raised
    if innermost_user_frame(handled.frames) is None or not _in_cleanup(raised):
        return raised
    return hidden_cause(handled)


def _in_cleanup(raised: Raised) -> bool:
    """Whether the user's line called something that cleans up, and it was raised in there."""
    own = innermost_user_frame(raised.frames)
    if own is None or raised.frames[-1] is own:
        return False
    called = raised.frames[raised.frames.index(own) + 1 :]
    return _CLEANS_UP.search(own.source) is not None or any(
        _CLEANS_UP.search(frame.function) for frame in called
    )
