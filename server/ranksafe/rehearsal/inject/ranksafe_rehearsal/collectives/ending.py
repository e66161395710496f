"""How a process with process groups ends: with its own exit status, and never in an abort after success.

A thread that needs the interpreter's lock after the interpreter began to finalise is unwound by force (CPython before
3.14), which C++ answers with ``terminate called without an active exception``: gloo's threads meet that when they run a
callback or drop the last reference to a tensor (torch 2.13). So the threads of all groups are ended before, last of
all exit handlers, when the program's own handlers have run and its threads are joined. The exit status is not touched.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from typing import Any

from ..settings import Settings

_PATIENCE = 5.0
"""Seconds that work under way may take to finish once the program is over."""
_PATIENCE_AFTER_FAILURE = 0.5
"""Its peers often wait for this rank, and this rank for them: the sooner it is gone, the sooner its failure is seen."""


def install(settings: Settings) -> None:
    """Register the handler when the process starts: handlers run in reverse order, so every other comes before it."""
    atexit.register(_at_exit)


def _at_exit() -> None:
    # A thread of autograd that drops the last reference to a Python object too late never comes back, and torch waits
    # ten seconds for it (torch 2.13, csrc/autograd/engine.cpp, Engine::stop).
    os.environ.setdefault("TORCH_AUTOGRAD_SHUTDOWN_WAIT_LIMIT", "0")
    failed = getattr(sys, "last_value", None) is not None
    # Looked up and not imported: it imports torch, and most processes end without.
    loaded: Any = sys.modules.get("_ranksafe_nccl")
    if loaded is not None:
        loaded.close_all(0.0 if failed else _PATIENCE)
    _end_other_groups(_PATIENCE_AFTER_FAILURE if failed else _PATIENCE)


def _end_other_groups(patience: float) -> None:
    """Groups of gloo end their threads when they are destroyed, unless one still waits for a peer that has left."""
    distributed: Any = sys.modules.get("torch.distributed")
    try:
        if distributed is None or not distributed.is_available():
            return
        if not distributed.is_initialized():
            return
    except AttributeError:  # half imported
        return

    def destroy() -> None:
        try:
            distributed.destroy_process_group()
        except Exception:  # the program is over; nothing it did depends on this
            return

    thread = threading.Thread(target=destroy, daemon=True)
    thread.start()
    thread.join(patience)
