"""Rows of tuples of which a rank has its share: what a loop over them gives each name."""

from __future__ import annotations

from dataclasses import replace

from ranksafe.semantics.rank_flow.values import Known, Many, Origin, Sameness, Unknown, combined


def own_row(row: Many, rows: Many, origin: Origin) -> Many:
    """One of the rows of a rank's share: all that is in it is the rank's own, but for the numbers of the rows."""
    items = list(row.items)
    for index, item in enumerate(items):
        counts = all(
            isinstance(other, Many)
            and isinstance(number := other.items[index], Known)
            and number == Known(step)
            for step, other in enumerate(rows.items)
        )
        if counts:
            continue
        if isinstance(item, Many):
            items[index] = own_row(item, Many((item,)), origin)
        elif isinstance(item, (Known, Unknown)):
            own = item if isinstance(item, Unknown) else combined(item)
            items[index] = replace(own, sameness=Sameness.DATA, origin=origin, own_item=True)
    return Many(tuple(items), row.origin, row.length)
