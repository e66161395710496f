"""Amounts that each rank has of its own: the size of its memory, of its queue or of its share, chosen by the rank.

What is compared with one (``needed > free_memory[local_rank]``) decides for the rank alone, as its data does.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from ranksafe.semantics.rank_flow.values import Known, Many, Sameness, Unknown, Value

_ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def chosen(value: Known, others: tuple[Value, ...]) -> Known:
    """A number that the rank has chosen, when some other rank has chosen another one of `others`."""
    differs = any(isinstance(item, Known) and item.constant != value.constant for item in others)
    if value.origin is None or not differs or value.constant.__class__ not in (int, float):
        return value
    return replace(value, origin=replace(value.origin, amount=True))


def chosen_item(table: Many, value: Known) -> Known:
    """The same for ``FREE_MEMORY[rank]``."""
    return chosen(value, table.items)


def apart(test: ast.cmpop, left: Value, right: Value, truth: Unknown) -> Unknown:
    """What a comparison says, one side of which is an amount that is computed further."""
    amounts = [value for value in (left, right) if _is_amount(value)]
    others = [value for value in (left, right) if not _is_amount(value)]
    if not isinstance(test, _ORDER) or len(amounts) != 1 or others[0].sameness.varies:
        return truth
    if truth.sameness is not Sameness.RANK or truth.agreed:
        return truth
    return replace(truth, sameness=Sameness.DATA)


def _is_amount(value: Value) -> bool:
    return (
        isinstance(value, (Known, Unknown))
        and value.sameness is Sameness.RANK
        and value.origin is not None
        and value.origin.amount
    )
