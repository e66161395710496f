"""Lists that loops fill: how long they are afterwards is as uneven as the loops and branches around the filling."""

from __future__ import annotations

import ast
from math import prod

from ranksafe.rank_flow.binding import bind
from ranksafe.rank_flow.expressions.slices import pads
from ranksafe.rank_flow.run import Run
from ranksafe.rank_flow.values import (
    LONGEST,
    Abstract,
    Constant,
    Object,
    Origin,
    Sequence,
    Share,
    Value,
    Varies,
    combined,
    evenness,
    listed,
    origin_of,
)

FILLS = frozenset({"append", "extend", "appendleft", "extendleft"})
_SEVERAL = frozenset({"extend", "extendleft"})


def list_method(run: Run, node: ast.Call, word: str, held: Value, arguments: list[Value]) -> bool:
    """``xs.append(x)`` and its like; False when nothing is known of where the list comes from."""
    if not isinstance(node.func, ast.Attribute) or not isinstance(held, (Sequence, Abstract)):
        return False
    target = node.func.value
    if word == "clear" and not arguments and isinstance(held, (Sequence, Abstract)):
        if isinstance(target, (ast.Name, ast.Attribute)) and _made_in(run, target) is not None:
            bind(run, target, Sequence(()))
            return True
    if word not in FILLS or len(arguments) != 1:
        return False
    if node.args and pads(node.args[0]) and word in _SEVERAL:
        if isinstance(target, (ast.Name, ast.Attribute)) and isinstance(held, Abstract):
            _put(run, target, combined(held, *arguments).changed(share=Share.EVEN))
            return True
    return add_items(run, target, held, arguments[0], several=word in _SEVERAL)


def add_items(run: Run, target: ast.expr, held: Value, added: Value, *, several: bool) -> bool:
    """Add an item, or several, to the list that a target holds."""
    made_in = _made_in(run, target)
    if made_in is None:
        return False
    around = [item for item in run.around if id(item.node) not in made_in[0]]
    if not around and isinstance(held, Sequence):
        more = (added,) if not several else added.items if isinstance(added, Sequence) else None
        if more is not None and len(held.items) + len(more) <= LONGEST:
            _put(run, target, listed(held.items + more, held.origin, held.length))
            return True
    worst, origin = Varies.NO, None
    for item in around:
        if item.even > worst:
            worst, origin = item.even, item.origin
    if any(_asks_for(item.node, target) for item in around):
        # Filled up until it is long enough.
        worst = Varies.PERHAPS
    fills_up = evenness(held).certain and not worst.certain
    if several and _as_long_as_data(added) > worst:
        worst, origin = _as_long_as_data(added), origin_of(added)
    found = combined(held, added)
    if not several and all(item.steps is not None and not item.even for item in around):
        steps = made_in[1] + prod(item.steps or 0 for item in around)
        _put(run, target, found.changed(length=Varies.NO, steps=steps))
        return True
    _put(
        run,
        target,
        found.changed(
            length=worst if worst.certain else Varies.PERHAPS,
            origin=origin or held.origin or found.origin,
            share=Share.EVEN if fills_up else found.share,
        ),
    )
    return True


def _made_in(run: Run, target: ast.expr) -> tuple[frozenset[int], int] | None:
    """The loops and branches in which the list was made, and its items then; None when that was not seen."""
    key = _key(run, target)
    return None if key is None else run.made_in.get(key)


def _key(run: Run, target: ast.expr) -> tuple[int, str] | None:
    if isinstance(target, ast.Name):
        frame = run.frame
        while target.id not in frame.variables and frame.outer is not None:
            frame = frame.outer
        return id(frame), target.id
    if isinstance(target, ast.Attribute):
        holder = run.value(target.value)
        return (id(holder), target.attr) if isinstance(holder, Object) else None
    return None


def _put(run: Run, target: ast.expr, value: Value) -> None:
    if isinstance(target, ast.Name):
        frame = run.frame
        while target.id not in frame.variables and frame.outer is not None:
            frame = frame.outer
        frame.variables[target.id] = value
    elif isinstance(target, ast.Attribute):
        holder = run.value(target.value)
        if isinstance(holder, Object):
            run.set_attribute(holder, target.attr, value)


def _asks_for(node: ast.AST, target: ast.expr) -> bool:
    """Whether the condition of a loop or branch looks at the list."""
    test = getattr(node, "test", None)
    if not isinstance(test, ast.expr):
        return False
    written = ast.unparse(target)
    kinds = (ast.Name, ast.Attribute)
    return any(isinstance(item, kinds) and ast.unparse(item) == written for item in ast.walk(test))


def stacked(arguments: list[Value]) -> Varies | None:
    """How the shape of a tensor differs that is put together of a list's items; None where it is not known to."""
    if not arguments or isinstance(arguments[0], (Constant, Object)):
        return None
    even = evenness(arguments[0])
    return even if even.certain else None


def _as_long_as_data(added: Value) -> Varies:
    """Whether the items that are added at once are as many on all ranks: those of the rank's own data are not."""
    if evenness(added).certain:
        return evenness(added)
    origin: Origin | None = added.origin
    own = added.varies is Varies.BY_DATA and origin is not None
    return Varies.BY_DATA if own and origin.varies is Varies.BY_RANK else Varies.PERHAPS  # type: ignore[union-attr]
