"""Where two ranks took different branches, if the source leaves no doubt about it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

from ranksafe.runs.compared_ranks.parted import Loop, covers, scope_at, tree_of
from ranksafe.runs.model import Frame


def parting(
    one: Sequence[Frame], other: Sequence[Frame], *, same_number: bool = False
) -> tuple[str, int] | None:
    """File and line of the ``if`` at which two stacks of the user's code part; None where that is not certain.

    It is where both are in the same function, in different arms of one ``if``: of several, the innermost. An ``if``
    without ``else`` that only one of them is in counts where the other is behind it in the same block, no loop of the
    function brought it there earlier, and both are at the ``same_number`` of their collectives.
    """
    frames = _first_difference(one, other)
    if frames is None:
        return None
    left, right = frames
    tree = tree_of(Path(left.filename))
    if tree is None:
        return None
    best: ast.If | None = None
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and (
            _in_different_arms(node, left.line, right.line)
            or (same_number and _only_one_inside(tree, node, left.line, right.line))
        ):
            best = node
    return None if best is None else (left.filename, best.lineno)


def _first_difference(one: Sequence[Frame], other: Sequence[Frame]) -> tuple[Frame, Frame] | None:
    """The outermost frames that differ, if they are in the same function."""
    for left, right in zip(_own(one), _own(other), strict=False):
        if (left.filename, left.function) != (right.filename, right.function):
            return None
        if left.line != right.line:
            return left, right
    return None


def _own(frames: Sequence[Frame]) -> Iterator[Frame]:
    return (frame for frame in frames if frame.in_user_code)


def _in_different_arms(node: ast.If, one: int, other: int) -> bool:
    body, orelse = node.body, node.orelse
    return (covers(body, one) and covers(orelse, other)) or (
        covers(body, other) and covers(orelse, one)
    )


def _only_one_inside(tree: ast.Module, node: ast.If, one: int, other: int) -> bool:
    if node.orelse:
        return False
    inside = [line for line in (one, other) if covers(node.body, line)]
    if len(inside) != 1:
        return False
    outside = other if inside[0] == one else one
    block = _block_of(tree, node)
    if block is None or _is_in_a_loop(tree, node):
        return False
    return covers(block[block.index(node) + 1 :], outside)


def _block_of(tree: ast.Module, node: ast.stmt) -> list[ast.stmt] | None:
    for parent in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(parent, name, None)
            if isinstance(block, list) and node in block:
                return block
    return None


def _is_in_a_loop(tree: ast.Module, node: ast.If) -> bool:
    """Whether a loop of the same function is around it."""
    return any(
        isinstance(each, Loop) and covers([each], node.lineno)
        for each in ast.walk(scope_at(tree, node.lineno))
    )
