"""What class bodies bind: constants, members of enumerations."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ranksafe.semantics.rank_flow.run import Frame
from ranksafe.semantics.rank_flow.values import NOTHING_KNOWN, Known, Thing, Value

if TYPE_CHECKING:
    from ranksafe.semantics.module import Module
    from ranksafe.semantics.rank_flow.interpreter import Interpreter
    from ranksafe.semantics.rank_flow.run import Run

_MEMBERS = frozenset({"Enum", "Flag", "IntFlag"})
_VALUES = frozenset({"IntEnum", "StrEnum"})


@dataclass(frozen=True, slots=True)
class Member:
    """A member of an enumeration."""

    cls: str
    name: str
    value: Any = None


class ClassAttributes:
    """Evaluates class attributes; each once for a walk."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._run = interpreter.run
        self._interpreter = interpreter
        self._known: dict[tuple[int, str], Value] = {}

    def of_class(self, cls: Thing, name: str) -> Value | None:
        """``Settings.RANK``, ``Action.STOP``; None for what the class does not bind."""
        found = self._bound(cls, name)
        if found is None:
            return None
        module, node = found
        kinds = {_last(base) for base in node.bases}
        value = self._value(module, node, name)
        if kinds & _VALUES or (kinds & _MEMBERS and kinds & {"str", "int"}):
            return value
        if kinds & _MEMBERS:
            constant = value.constant if isinstance(value, Known) else None
            return Known(Member(node.name, name, constant))
        return value

    def of_object(self, base: Thing, name: str) -> Value | None:
        """``self.limit``: what the class says where the object was made here; of others whether it differs."""
        found = self._bound(base, name)
        if found is None:
            return None
        value = self._value(*found, name)
        made = self._run.attribute(base, "__made__") is not None
        if not made and not value.sameness.varies:
            # A class derived from it may say otherwise.
            return NOTHING_KNOWN
        shared = self._run.attribute(base, "__shared__") is not None
        if made and not shared and value is NOTHING_KNOWN:
            return self._before_stores(*found, name)
        return value

    def _before_stores(self, module: Module, cls: ast.ClassDef, name: str) -> Value:
        """``run = None`` of a class whose methods assign ``self.run``: what an object has that none of them has given
        another value."""
        values = _written(cls, name)
        nothing = len(values) == 1 and isinstance(values[0], ast.Constant)
        if not nothing or getattr(values[0], "value", "") is not None:
            return NOTHING_KNOWN
        through_class = any(
            isinstance(item, ast.Attribute)
            and isinstance(item.ctx, ast.Store)
            and item.attr == name
            and getattr(item.value, "id", "") in ("cls", cls.name)
            for item in ast.walk(module.tree)
        )
        return NOTHING_KNOWN if through_class else Known(None)

    def _bound(self, thing: Thing, name: str) -> tuple[Module, ast.ClassDef] | None:
        """The class, of those that a class derives from, whose body binds the name."""
        if not isinstance(thing.node, ast.ClassDef) or thing.module is None:
            return None
        pending: list[tuple[Module, ast.ClassDef]] = [(thing.module, thing.node)]
        for _ in range(8):
            if not pending:
                return None
            module, cls = pending.pop(0)
            if module.binds_in_class(cls, name):
                return module, cls
            for base in cls.bases:
                definition = self._interpreter.functions.named(module, base)
                if definition is not None and isinstance(definition.node, ast.ClassDef):
                    assert definition.module is not None
                    pending.append((definition.module, definition.node))
        return None

    def _value(self, module: Module, cls: ast.ClassDef, name: str) -> Value:
        key = (id(cls), name)
        found = self._known.get(key)
        if found is None:
            self._known[key] = NOTHING_KNOWN
            found = self._known[key] = self._evaluated(module, cls, name)
        return found

    def _evaluated(self, module: Module, cls: ast.ClassDef, name: str) -> Value:
        """A name that the body assigns once and no method does."""
        values = _written(cls, name)
        if len(values) != 1 or module.attribute_stores(cls, name):
            return NOTHING_KNOWN
        run = self._run
        outer_frame, outer_items = run.frame, run.items
        run.frame, run.items = Frame(module, module.tree, quiet=True), []
        try:
            for item in ast.walk(values[0]):
                if isinstance(item, ast.Name) and module.binds_in_class(cls, item.id):
                    # Class bodies see the names that they have bound before.
                    run.frame.variables[item.id] = self._value(module, cls, item.id)
            return self._interpreter.expressions.value(values[0])
        finally:
            run.frame, run.items = outer_frame, outer_items


def forget_nones(run: Run, made: Value) -> None:
    """An object of the file may have been given by now what it does not have at first."""
    if not isinstance(made, Thing) or run.whole_file:
        return
    attributes = run.heap.get(made, {})
    attributes["__shared__"] = Known(True)
    for name, value in attributes.items():
        if isinstance(value, Known) and value.constant is None and value.origin is None:
            attributes[name] = NOTHING_KNOWN


def _written(cls: ast.ClassDef, name: str) -> list[ast.expr]:
    """What the body of a class assigns to a name."""
    return [
        statement.value
        for statement in cls.body
        if isinstance(statement, (ast.Assign, ast.AnnAssign))
        and statement.value is not None
        and any(isinstance(t, ast.Name) and t.id == name for t in _targets(statement))
    ]


def _targets(statement: ast.Assign | ast.AnnAssign) -> list[ast.expr]:
    return statement.targets if isinstance(statement, ast.Assign) else [statement.target]


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
