"""Dictionaries that get a key in a branch which each rank decides for itself: ranks then have different keys."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from ranksafe.semantics.rank_flow.values import Sameness, Share, Thing, Unknown, Value, combined

if TYPE_CHECKING:
    from ranksafe.semantics.module import Module
    from ranksafe.semantics.rank_flow.run import Around, Run

_VIEWS = frozenset({"keys", "values", "items"})
_LOOKS_ON = ("torch.", "builtins.", "random.", "numpy.random.", "logging.", "accelerate.")
"""Functions that change no dictionary they are given."""


def with_key(run: Run, target: ast.Subscript, before: Value, value: Value) -> Unknown | None:
    """The dictionary after ``losses["name"] = value``, where ranks differ in whether they have the key; else None."""
    if not isinstance(target.value, ast.Name) or not isinstance(before, Unknown):
        return None
    if before.length.varies:
        # A key that is not written out may be one that only other ranks had.
        found = combined(before, value)
        inner = run.around[-1] if run.around else None
        own = inner is not None and inner.even is Sameness.DATA and _names_items(target, inner)
        if not isinstance(target.slice, ast.Constant) and not own:
            return _filled_up(found)
        return replace(found, length=before.length, origin=before.origin)
    made_in = run.made_in.get((id(run.frame), target.value.id))
    if made_in is None:
        return None
    around = [item for item in run.around if id(item.node) not in made_in]
    worst = max(around, key=lambda item: item.even, default=None)
    if worst is None or not worst.even.varies or not _adds(run.module, target, worst):
        return None
    return replace(combined(before, value), length=worst.even, origin=worst.origin)


def may_be_filled_up(run: Run, call: ast.Call) -> None:
    """After ``fill(losses, names)`` or ``losses.setdefault(name, zero)``: all ranks may have the same keys."""
    function = call.func
    given = list(call.args)
    if isinstance(function, ast.Attribute) and function.attr in ("setdefault", "update"):
        given.append(function.value)
    elif (run.module.qualified_name(function) or "").startswith(_LOOKS_ON):
        return
    variables = run.frame.variables
    for item in given:
        held = variables.get(item.id) if isinstance(item, ast.Name) else None
        if isinstance(item, ast.Name) and isinstance(held, Unknown) and held.length.varies:
            variables[item.id] = _filled_up(held)


def given_away(run: Run, call: ast.Call) -> None:
    """After ``fill(losses)``: how many keys a dictionary has is not known any more."""
    if (run.module.qualified_name(call.func) or "").startswith(_LOOKS_ON):
        return
    variables = run.frame.variables
    for item in (*call.args, *(keyword.value for keyword in call.keywords)):
        held = variables.get(item.id) if isinstance(item, ast.Name) else None
        if isinstance(item, ast.Name) and isinstance(held, Unknown) and held.entries is not None:
            variables[item.id] = replace(held, steps=None)
        elif isinstance(item, ast.Attribute) and isinstance(item.value, ast.Name):
            holder = variables.get(item.value.id)
            of_holder = run.heap.get(holder, {}) if isinstance(holder, Thing) else {}
            kept = of_holder.get(item.attr)
            if isinstance(kept, Unknown) and kept.entries is not None:
                of_holder[item.attr] = replace(kept, steps=None)


def view(receiver: Value, word: str) -> Unknown | None:
    """``losses.values()`` of a dictionary whose number of keys differs; None for what says nothing new."""
    if word not in _VIEWS or not isinstance(receiver, Unknown) or not receiver.length.varies:
        return None
    return replace(combined(receiver), length=receiver.length, origin=receiver.origin)


def _filled_up(held: Unknown) -> Unknown:
    """Also behind the loop or branch that fills it up."""
    return replace(held, length=Sameness.UNKNOWN, share=Share.EVEN)


def _adds(module: Module, target: ast.Subscript, branch: Around) -> bool:
    """Whether a key is set nowhere else than in this arm, in a dictionary that is written out in the function."""
    key, name = target.slice, target.value
    if isinstance(branch.node, ast.For) and branch.even is Sameness.DATA:
        return _names_items(target, branch)
    function = module.enclosing_function(target)
    if function is None or not isinstance(branch.node, ast.If) or not isinstance(name, ast.Name):
        return False
    if not (isinstance(key, ast.Constant) and isinstance(key.value, str)):
        return False
    arms = (branch.node.body, branch.node.orelse)
    mine = [arm for arm in arms if any(target is item for part in arm for item in ast.walk(part))]
    if len(mine) != 1:
        return False
    inside = {id(item) for part in mine[0] for item in ast.walk(part)}
    for item in ast.walk(function):
        if isinstance(item, ast.Constant) and item.value == key.value and id(item) not in inside:
            return False
    values = module.flow.assigned_values(name)
    return bool(values) and all(_is_written_out(value) for value in values)


def _names_items(target: ast.Subscript, loop: Around) -> bool:
    """Whether each item of the rank's own data has an entry under its name: ``scores[f"class {index}"]``."""
    if not isinstance(loop.node, ast.For):
        return False
    named = {item.id for item in ast.walk(loop.node.target) if isinstance(item, ast.Name)}
    return any(isinstance(item, ast.Name) and item.id in named for item in ast.walk(target.slice))


def _is_written_out(node: ast.expr) -> bool:
    if isinstance(node, ast.Dict):
        return all(isinstance(key, ast.Constant) for key in node.keys)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict":
        return not node.args and all(item.arg is not None for item in node.keywords)
    return False
