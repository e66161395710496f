"""Whether this rank computed anything at all, told at its end."""

from __future__ import annotations

import atexit
import functools
import sys
from typing import Any, Callable

from . import collectives
from .watch import Watch
from .wrappers import Wrappers


class _Activity:
    def __init__(self, watch: Watch, known: Wrappers) -> None:
        self.watch = watch
        self.known = known
        self.forward = False
        self.largest = 0

    def called(self, module: Any) -> None:
        """A module computes."""
        self.forward = True
        self.known.called(module)

    def heard(self, name: str, tensor: Any) -> None:
        """A collective moves a tensor."""
        if tensor is not None and tensor.is_floating_point():
            self.largest = max(self.largest, int(tensor.numel()))

    def ended(self) -> None:
        """The interpreter shuts down."""
        if "torch" not in sys.modules:
            return
        self.watch.journal.write(
            "activity",
            forward=self.forward,
            rpc=_uses_rpc(),
            largest_collective=self.largest,
        )


def hooks(watch: Watch, known: Wrappers) -> dict[str, Callable[[Any], None]]:
    """What to do after which import."""
    activity = _Activity(watch, known)
    collectives.listeners.append(activity.heard)
    atexit.register(watch.attempt, activity.ended)
    return {"torch.nn.modules.module": functools.partial(_hook, activity)}


def _hook(activity: _Activity, module: Any) -> None:
    def called(each: Any, _: Any) -> None:
        activity.watch.attempt(activity.called, each)

    module.register_module_forward_pre_hook(called)


def _uses_rpc() -> bool:
    """Whether ranks ask each other to compute: one of them may well only coordinate."""
    rpc: Any = sys.modules.get("torch.distributed.rpc")
    is_set = getattr(rpc, "_is_current_rpc_agent_set", None)
    return bool(is_set is not None and is_set())
