"""Which ranks can never go on: they wait for ranks that have ended, stand still, are not heard, or wait in vain.

A rank that works is taken to reach any collective in the end. A rank that waits can go on if all the ranks it waits for
can. What is left over waits for ever, and that is the whole of the judgement: time plays no part in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ranksafe.runs.watch.beat import Wait
from ranksafe.runs.watch.standing import Kind, Standing

CallOf = Callable[[int, str, int], "str | None"]
"""What a rank called as the n-th collective of a group, where that is known."""

_FAMILIES = (
    ("all_reduce", "all_reduce_coalesced"),
    ("all_gather", "all_gather_into_tensor", "all_gather_single", "all_gather_coalesced"),
    ("reduce_scatter", "reduce_scatter_tensor", "reduce_scatter_single"),
    ("all_to_all", "all_to_all_single"),
)
_FAMILY = {name: family[0] for family in _FAMILIES for name in family}
_AT_REST = frozenset({Kind.STILL, Kind.SILENT})
_SENDS = frozenset({"send", "isend", "send_object_list", "batch_isend_irecv"})
_RECEIVES = frozenset({"recv", "irecv", "recv_object_list", "batch_isend_irecv"})


def stuck_ranks(
    standings: Mapping[int, Standing], call_of: CallOf = lambda _rank, _group, _number: None
) -> dict[int, frozenset[int]]:
    """The ranks that wait in vain, each with those it waits for that will not come."""
    alive = {rank for rank, each in standings.items() if each.kind is Kind.WORKS}
    if alive:
        # One that works may be what a rank that stands still waits for: a file, a lock, a key in a store.
        alive |= {rank for rank, each in standings.items() if each.kind in _AT_REST}
    needs = {
        rank: _needed(rank, each.wait, standings, call_of)
        for rank, each in standings.items()
        if each.kind is Kind.WAITS and each.wait is not None
    }
    grown = True
    while grown:
        grown = False
        for rank, (needed, never) in needs.items():
            if rank not in alive and not never and _can_go_on(standings[rank].wait, needed, alive):
                alive.add(rank)
                grown = True
    return {
        rank: frozenset((needed - alive) | never)
        for rank, (needed, never) in needs.items()
        if rank not in alive
    }


def family(call: str) -> str:
    """The name that calls share which serve each other."""
    name = call.split(" ", maxsplit=1)[0]
    return _FAMILY.get(name, name)


def _can_go_on(wait: Wait | None, needed: frozenset[int], alive: set[int]) -> bool:
    if wait is not None and wait.peers == () and needed:
        return bool(needed & alive)
    return needed <= alive


def _needed(
    rank: int, wait: Wait, standings: Mapping[int, Standing], call_of: CallOf
) -> tuple[frozenset[int], frozenset[int]]:
    """The ranks that still have to come, and those that have passed by with another call and never will."""
    others = {other: each for other, each in standings.items() if other != rank}
    if wait.peers is not None:
        peers = wait.peers or tuple(others)
        waited = [peer for peer in peers if peer in others]
        return frozenset(p for p in waited if not _meets(rank, wait, others[p])), frozenset()
    if wait.group is None or wait.number is None:
        return frozenset(o for o, each in others.items() if not _shares(wait, each)), frozenset()
    # A group that names no members is everybody: the making of groups.
    members = {o: each for o, each in others.items() if not wait.ranks or o in wait.ranks}
    behind = {
        o
        for o, each in members.items()
        if each.count(wait.group) < wait.number or _stopped_in(wait, each)
    }
    if behind and not wait.ranks:
        # Ranks that make groups of other members may still go on together, until all are there and wait.
        return frozenset(behind), frozenset()
    never = {
        other
        for other, each in members.items()
        if other not in behind and _differs(wait, other, each, call_of)
    }
    return frozenset(behind), frozenset(never)


def _stopped_in(wait: Wait, other: Standing) -> bool:
    """Whether a rank has entered the same collective and can no longer do its part."""
    if other.kind is not Kind.SILENT or other.wait is None:
        return False
    return (other.wait.group, other.wait.number) == (wait.group, wait.number)


def _meets(rank: int, wait: Wait, peer: Standing) -> bool:
    """Whether the other side of a transfer is in its counterpart."""
    theirs = peer.wait
    if theirs is None or theirs.peers is None or (theirs.peers and rank not in theirs.peers):
        return False
    if peer.kind is Kind.SILENT:
        return False
    return (wait.name in _SENDS and theirs.name in _RECEIVES) or (
        wait.name in _RECEIVES and theirs.name in _SENDS
    )


def _shares(wait: Wait, other: Standing) -> bool:
    """Whether a rank is in the same call, where calls are not counted."""
    shared = other.wait is not None and other.wait.call == wait.call
    return shared and other.kind is not Kind.SILENT


def _differs(wait: Wait, other: int, standing: Standing, call_of: CallOf) -> bool:
    """Whether a member made another call as this number."""
    theirs: str | None = None
    if standing.wait is not None and standing.wait.group == wait.group:
        theirs = standing.wait.call if standing.wait.number == wait.number else None
    if theirs is None and wait.group is not None and wait.number is not None:
        theirs = call_of(other, wait.group, wait.number)
    return theirs is not None and family(theirs) != family(wait.call)
