"""What an expression may be."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any, Final

from ranksafe.semantics.guards import Guard, GuardKind
from ranksafe.semantics.structure import ModuleStructure


@dataclass(frozen=True, slots=True)
class Value:
    """One value an expression may have.

    ``node`` is the expression that makes the value (a constant, a dictionary display, a call, a lambda, ...), where
    it stands; ``guards`` are the conditions on the way from there to the place asked about.
    """

    node: ast.expr
    guards: tuple[Guard, ...]
    module: ModuleStructure

    @property
    def is_constant(self) -> bool:
        """Whether the value is known: a constant, or a negative number."""
        return isinstance(self.node, ast.Constant) or _negative(self.node) is not None

    @property
    def constant(self) -> Any:
        """The Python value of a constant; None when it is not one."""
        if isinstance(self.node, ast.Constant):
            return self.node.value
        return _negative(self.node)

    @property
    def is_guarded_by_launch(self) -> bool:
        """Whether the value depends on how the script was started, or on which rank runs."""
        return any(guard.kind in (GuardKind.LAUNCH, GuardKind.RANK) for guard in self.guards)


@dataclass(frozen=True, slots=True)
class Values:
    """All values an expression may have. ``complete`` is False when some way to it is not understood (a parameter,
    an unknown call, a loop): silence is right then, unless one known value suffices."""

    known: tuple[Value, ...]
    complete: bool

    @property
    def are_constants(self) -> bool:
        """Whether it is certainly one of the known values, and each of them is known."""
        return self.complete and all(value.is_constant for value in self.known)

    def only_constant(self) -> Any:
        """The constant that the expression certainly has, else None."""
        if not self.known or not self.are_constants:
            return None
        constants = {repr(value.constant) for value in self.known}
        return self.known[0].constant if len(constants) == 1 else None

    def only_expression(self) -> ast.expr | None:
        """The expression that it certainly is, else None: what was written where a variable got its value."""
        return self.known[0].node if self.complete and len(self.known) == 1 else None

    def constants(self) -> list[Any]:
        """All constants among the known values."""
        return [value.constant for value in self.known if value.is_constant]


NOTHING_KNOWN = Values((), False)
_MOST_VALUES: Final = 32
"""Of a variable that is assigned anew under many conditions each doubles the ways to it."""


def with_guards(values: Values, *guards: Guard) -> Values:
    """The values under further conditions."""
    if not guards:
        return values
    known = tuple(
        Value(value.node, (*value.guards, *guards), value.module) for value in values.known
    )
    return Values(known, values.complete)


def merged(parts: list[Values]) -> Values:
    """All values of several answers; complete if each of them is, and they are not too many."""
    known: dict[tuple[int, tuple[Guard, ...]], Value] = {}
    for part in parts:
        for value in part.known:
            known.setdefault((id(value.node), value.guards), value)
            if len(known) > _MOST_VALUES:
                return Values(tuple(known.values()), False)
    return Values(tuple(known.values()), all(part.complete for part in parts))


def _negative(node: ast.expr) -> int | float | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        operand = node.operand
        if isinstance(operand, ast.Constant) and isinstance(operand.value, (int, float)):
            return -operand.value
    return None
