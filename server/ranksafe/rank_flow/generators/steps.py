"""How many values a generator hands out: the number on this rank, or whether all ranks get as many."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from ranksafe.rank_flow.traces import (
    Branch,
    Call,
    Exit,
    Item,
    Loop,
    Passed,
    Yield,
    inner_items,
    matters,
)
from ranksafe.rank_flow.values import (
    Abstract,
    Origin,
    Share,
    Value,
    Varies,
    evenness,
    length_of,
    origin_of,
    truth_of,
)


@dataclass(frozen=True, slots=True)
class Steps:
    """A number of values."""

    exact: int | None = None
    """On this rank, where it is known."""
    even: Varies = Varies.NO
    """Whether all ranks get as many."""
    origin: Origin | None = None
    """Why they do not."""
    endless: bool = False


_NONE = Steps(0)
_OPEN = Steps(None, Varies.PERHAPS)


def counted(items: list[Item], world_size: int) -> Steps:
    """What a generator with this trace hands out."""
    total = _NONE
    for index, item in enumerate(items):
        if isinstance(item, Exit):
            break
        if isinstance(item, Branch):
            leaves = next(_exits_of([item]), None) is not None
            rest = items[index + 1 :] if leaves else []
            arms = [counted([*arm, *rest], world_size) for arm in (item.then, item.otherwise)]
            total = _sum(total, _either(item.condition, *arms))
            if leaves:
                break
        elif isinstance(item, Yield):
            total = _sum(total, _of_yield(item))
        elif isinstance(item, Call):
            total = _sum(total, counted(item.body, world_size))
        elif isinstance(item, Loop):
            total = _sum(total, _of_loop(item, world_size))
        if total.endless:
            break
    return total


def _of_yield(item: Yield) -> Steps:
    if item.each_of is None:
        return Steps(1)
    number = length_of(item.each_of)
    exact = None if isinstance(number, Varies) else number
    return Steps(exact, evenness(item.each_of), origin_of(item.each_of))


def _of_loop(loop: Loop, world_size: int) -> Steps:
    body = counted(loop.body, world_size)
    if body.exact == 0:
        return _NONE
    source = loop.source
    exits = [condition for condition, item in _exits_of(loop.body) if item.kind != "continue"]
    varying = [value for value in exits if value.varies.certain]
    if len(varying) < len(exits):
        # A limit, most likely one that all ranks share.
        return _OPEN
    if varying:
        return Steps(None, varying[0].varies, origin_of(*varying))
    if isinstance(loop.place.node, ast.While) and source is not None and truth_of(source):
        return Steps(None, Varies.NO, endless=True)
    if body.endless or _is_dealt_evenly(loop, body, world_size):
        return _OPEN
    if isinstance(loop.count, Varies):
        exact, even = None, loop.count
    else:
        exact, even = loop.count, Varies.NO if source is None else evenness(source)
    number = None
    if exact is not None and (exact == 0 or body.exact is not None):
        number = exact * (body.exact or 0)
    if even >= body.even:
        return Steps(number, even, None if source is None else origin_of(source))
    return Steps(number, body.even, body.origin)


def _is_dealt_evenly(loop: Loop, body: Steps, world_size: int) -> bool:
    """``for i, x in enumerate(xs): if i % world_size == rank: yield x`` over a number that divides."""
    if body.even is not Varies.BY_RANK or body.exact is not None:
        return False
    if not isinstance(loop.count, Varies):
        return loop.count % world_size == 0
    return isinstance(loop.source, Abstract) and loop.source.share is Share.EVEN


def _either(condition: Value, then: Steps, otherwise: Steps) -> Steps:
    if then.exact is not None and then.exact == otherwise.exact:
        return then if then.even >= otherwise.even else otherwise
    if condition.varies.certain:
        return Steps(None, condition.varies, origin_of(condition))
    if then.endless or otherwise.endless:
        return _OPEN
    worse = then if then.even >= otherwise.even else otherwise
    return Steps(None, max(worse.even, Varies.PERHAPS), worse.origin)


def _sum(one: Steps, other: Steps) -> Steps:
    if _NONE in (one, other):
        return one if other == _NONE else other
    exact = None
    if one.exact is not None and other.exact is not None:
        exact = one.exact + other.exact
    worse = one if one.even >= other.even else other
    return Steps(exact, worse.even, worse.origin, one.endless or other.endless)


def _exits_of(items: list[Item], condition: Value | None = None) -> Iterator[tuple[Value, Exit]]:
    """Exits out of a block, each with the condition, of those around it, that differs most between ranks."""
    for item in items:
        if isinstance(item, Exit) and item.kind in ("break", "return", "continue"):
            yield condition or Abstract(Varies.NO), item
        elif isinstance(item, Branch):
            worse = item.condition
            if condition is not None and condition.varies > worse.varies:
                worse = condition
            yield from _exits_of([*item.then, *item.otherwise], worse)
        elif isinstance(item, Loop):
            for inner, exit_ in _exits_of(item.body, condition):
                if exit_.kind == "return":
                    yield inner, exit_


def yields_in(items: list[Item]) -> Iterator[Yield]:
    """All places of a generator's trace that hand out values."""
    for item in items:
        if isinstance(item, Yield):
            yield item
        yield from yields_in(inner_items(item))


def without_yields(items: list[Item]) -> list[Item]:
    """The trace as other ranks notice it."""
    found: list[Item] = []
    for item in items:
        if isinstance(item, Yield):
            continue
        if isinstance(item, (Loop, Call)):
            item.body = without_yields(item.body)
        elif isinstance(item, Branch):
            item.then, item.otherwise = without_yields(item.then), without_yields(item.otherwise)
        if isinstance(item, (Loop, Branch)) and not matters([item]):
            found.append(Passed(item.place))
        else:
            found.append(item)
    return found
