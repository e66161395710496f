"""What this rank waits for: the collective each thread is in now, and how many were entered and left.

Entering and leaving are two stores in a dictionary, so that this costs next to nothing; the heartbeat's thread reads it
and writes it down, also while the main thread is stuck in C++.
"""

from __future__ import annotations

import os
import time
from _thread import get_ident
from typing import Any, Callable

_MOST_WORKS = 1000
_MOST_GROUPS = 200


class Waiting:
    """The collectives and transfers of one rank; each thread is in one at most."""

    def __init__(self) -> None:
        self.now: dict[int, tuple[Any, ...]] = {}
        """By thread: time, call, group's number or None, number of the call in its group, peers or None."""
        self.entered = 0
        self.left = 0
        self.steps = 0
        """Optimizer steps made."""
        self.epochs = 0
        """Passes over a loader in which steps were made, as far as somebody counts them."""
        self.epoch_began = 0
        """After how many steps the last of them ended."""
        self.groups: dict[int, dict[str, Any]] = {}
        """By number: name and ranks."""
        self.counts: dict[int, int] = {}
        """How many collectives were entered in each group, by the group's number."""
        self.works: dict[int, tuple[Any, ...]] = {}
        """What handles of asynchronous calls stand for, by the handle's id: like `now` without the time."""
        self.on_first_handle: Callable[[], None] | None = None
        self.work: Callable[[], int] | None = None
        """Counts what this rank computes, where somebody can: while it does, it hangs nowhere."""
        self.is_rank = True
        """False in a forked child."""
        self.joins = 0
        """Contexts (``torch.distributed.algorithms.join``) in which a rank without batches answers for the others'
        collectives: their order is none of the script's."""

    @property
    def is_inside(self) -> bool:
        """Whether this thread is in one already, of which what it calls now is a part; or this is no rank."""
        return get_ident() in self.now or not self.is_rank or self.joins > 0

    def epoch_ended(self) -> None:
        """A loader has no more batches."""
        if self.steps > self.epoch_began:
            self.epochs += 1
            self.epoch_began = self.steps

    def enter(
        self,
        call: str,
        group: int | None = None,
        number: int | None = None,
        peers: tuple[int, ...] | None = None,
        thread: int | None = None,
    ) -> None:
        """This thread, or another, goes into a collective or a transfer; ``peers``: the other ranks of a transfer."""
        self.now[thread or get_ident()] = (time.time(), call, group, number, peers)
        self.entered += 1

    def leave(self) -> None:
        """This thread is out again."""
        if self.now.pop(get_ident(), None) is not None:
            self.left += 1

    def issued(self, work: Any, what: tuple[Any, ...] | None = None) -> None:
        """A handle to wait for later was returned, by the call this thread is in if not said what for."""
        if what is None:
            current = self.now.get(get_ident())
            if current is None:
                return
            what = current[1:]
        if self.on_first_handle is not None:
            install, self.on_first_handle = self.on_first_handle, None
            install()
        if len(self.works) >= _MOST_WORKS:
            self.works.clear()
        self.works[id(work)] = what

    def wait_for(self, work: Any) -> bool:
        """This thread goes into ``work.wait()``; whether it is known what that waits for."""
        known = self.works.pop(id(work), None)
        if known is None:
            return False
        self.now[get_ident()] = (time.time(), *known)
        self.entered += 1
        return True

    def as_data(self, main: int | None) -> dict[str, Any]:
        """For the heartbeat; the main thread's first."""
        inside = sorted(dict(self.now).items(), key=lambda item: item[0] != main)
        return {
            "entered": self.entered,
            "left": self.left,
            "now": [dict(self._described(entry), thread=thread) for thread, entry in inside[:8]],
            "counts": {
                self.groups[number]["name"]: [count, self.groups[number]["ranks"]]
                for number, count in list(self.counts.items())[:_MOST_GROUPS]
                if number in self.groups
            },
        }

    def _described(self, entry: tuple[Any, ...]) -> dict[str, Any]:
        since, call, group, number, peers = entry
        known = {} if group is None else self.groups.get(group, {})
        return {
            "since": since,
            "call": call,
            "group": known.get("name"),
            "ranks": known.get("ranks"),
            "number": number,
            "peers": peers,
        }


here = Waiting()
"""Of this process."""


def _in_child() -> None:
    here.is_rank = False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
