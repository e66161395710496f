"""Sends, receives, handles and the making of groups, for ``ranksafe_agent.waiting``.

Other ranks are waited for there, too. They are no part of the order of collectives: what one rank sends, another
receives.
"""

from __future__ import annotations

import functools
from typing import Any, Callable

from .. import waiting
from .in_flight import InFlight
from .watch import Watch, is_user_file, stack

_SENDS = ("send", "isend", "send_object_list")
_RECEIVES = ("recv", "irecv", "recv_object_list")
_FOR_ALL = ("init_process_group", "new_group")
_GROUPS = -1
"""The number under which these are counted, as if of one group that all ranks are in."""
_PEER_POSITION = 1
_ENDS = ("is_completed", "is_success", "get_future")
"""What tells that a handle's work is over, besides waiting for it, or gives something else to wait for."""


def hook(watch: Watch, module: Any, in_flight: InFlight | None) -> None:
    """Wrap the functions of ``torch.distributed.distributed_c10d``."""
    for name in (*_SENDS, *_RECEIVES):
        original = getattr(module, name, None)
        if callable(original):
            find = functools.partial(peer, module, "dst" if name in _SENDS else "src")
            setattr(module, name, _watched(watch, name, original, find, in_flight))
    waiting.here.groups[_GROUPS] = {"name": "groups", "ranks": []}
    for name in _FOR_ALL:
        original = getattr(module, name, None)
        if callable(original):
            setattr(module, name, _making_groups(watch, module, name, original))
    batch = getattr(module, "batch_isend_irecv", None)
    if callable(batch):
        name = "batch_isend_irecv"
        setattr(module, name, _batch(watch, batch, in_flight))
    waiting.here.on_first_handle = lambda: _hook_handles(watch, module, in_flight)


def _watched(
    watch: Watch,
    name: str,
    original: Callable[..., Any],
    find: Callable[..., Any],
    in_flight: InFlight | None,
) -> Callable[..., Any]:
    here = waiting.here

    def enter(arguments: Any, keywords: Any) -> None:
        here.enter(name, None, None, find(arguments, keywords))

    @functools.wraps(original)
    def transfer(*arguments: Any, **keywords: Any) -> Any:
        if here.is_inside:
            return original(*arguments, **keywords)
        watch.attempt(enter, arguments, keywords)
        try:
            result = original(*arguments, **keywords)
            if result is not None:
                here.issued(result)
                if in_flight is not None:
                    tensor = arguments[0] if arguments else keywords.get("tensor")
                    watch.attempt(in_flight.begin, result, name, tensor)
            return result
        finally:
            here.leave()

    return transfer


def _batch(
    watch: Watch, original: Callable[..., Any], in_flight: InFlight | None
) -> Callable[..., Any]:
    """A batch returns at once; its handles are waited for, one for each operation (gloo) or for all (NCCL)."""
    here = waiting.here

    def issued(operations: Any, works: Any) -> None:
        told = [(str(each.op.__name__), int(each.peer)) for each in operations]
        if len(works) == len(told):
            for work, (name, peer), each in zip(works, told, operations):
                here.issued(work, (name, None, None, (peer,)))
                if in_flight is not None:
                    in_flight.begin(work, name, each.tensor)
            return
        names = {name for name, _ in told}
        name = names.pop() if len(names) == 1 else "batch_isend_irecv"
        for work in works:
            here.issued(work, (name, None, None, tuple(sorted({peer for _, peer in told}))))

    @functools.wraps(original)
    def batch(*arguments: Any, **keywords: Any) -> Any:
        works = original(*arguments, **keywords)
        if here.is_rank:
            operations = arguments[0] if arguments else keywords.get("p2p_op_list", ())
            watch.attempt(issued, operations, works)
        return works

    return batch


def _making_groups(
    watch: Watch, module: Any, name: str, original: Callable[..., Any]
) -> Callable[..., Any]:
    here = waiting.here

    def enter(arguments: Any, keywords: Any) -> None:
        count = here.counts[_GROUPS] = here.counts.get(_GROUPS, 0) + 1
        call = name
        if name == "new_group":
            ranks = arguments[0] if arguments else keywords.get("ranks")
            members = None
            if ranks is not None and len(ranks) < module.get_world_size():
                members = sorted(int(rank) for rank in ranks)
                call = f"new_group({','.join(map(str, members))})"
            told: dict[str, Any] = {"number": count, "members": members, "call": call}
            frames = [frame for frame in stack() if is_user_file(frame["file"])]
            watch.journal.write("group-made", **told, frames=frames)
        here.enter(call, _GROUPS, count)

    @functools.wraps(original)
    def make(*arguments: Any, **keywords: Any) -> Any:
        if here.is_inside or keywords.get("use_local_synchronization"):
            return original(*arguments, **keywords)
        watch.attempt(enter, arguments, keywords)
        try:
            return original(*arguments, **keywords)
        finally:
            here.leave()

    return make


def _hook_handles(watch: Watch, module: Any, in_flight: InFlight | None) -> None:
    """``work.wait()``, of the class that the C++ backends' handles share. Left alone until the script has a handle:
    torch's own functions call it, too."""
    here = waiting.here
    original = module.Work.wait
    if in_flight is not None:
        for name in _ENDS:
            watch.attempt(_hook_end, watch, module.Work, name, in_flight)

    @functools.wraps(original)
    def wait(self: Any, *arguments: Any, **keywords: Any) -> Any:
        if in_flight is not None and not here.is_inside:
            watch.attempt(in_flight.wait, self)
        if here.is_inside or not watch.attempt(here.wait_for, self):
            return original(self, *arguments, **keywords)
        try:
            return original(self, *arguments, **keywords)
        finally:
            here.leave()

    module.Work.wait = wait


def _hook_end(watch: Watch, kind: Any, name: str, in_flight: InFlight) -> None:
    original = getattr(kind, name)

    @functools.wraps(original)
    def end(self: Any, *arguments: Any, **keywords: Any) -> Any:
        result = original(self, *arguments, **keywords)
        if result:
            watch.attempt(in_flight.wait, self)
        return result

    setattr(kind, name, end)


def peer(module: Any, word: str, arguments: Any, keywords: Any) -> tuple[int, ...]:
    """The global rank of the other side; empty for a receive from anybody."""
    peer = keywords.get(word)
    if peer is None and len(arguments) > _PEER_POSITION:
        peer = arguments[_PEER_POSITION]
    of_group = keywords.get(f"group_{word}")
    if peer is None and of_group is not None:
        group = keywords.get("group") or module.group.WORLD
        peer = module.get_global_rank(group, of_group)
    return () if peer is None else (int(peer),)
