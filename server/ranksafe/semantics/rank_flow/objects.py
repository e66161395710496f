"""Objects of the project: what constructing them sets, their properties and special methods."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ranksafe.semantics.rank_flow.arguments import Given, given_in
from ranksafe.semantics.rank_flow.expressions.entries import EMPTY_DICTIONARY
from ranksafe.semantics.rank_flow.run import MAXIMUM_DEPTH
from ranksafe.semantics.rank_flow.traces import Call, matters_to_caller
from ranksafe.semantics.rank_flow.values import NOTHING_KNOWN, Known, Many, Thing, Value
from ranksafe.semantics.walking import FUNCTIONS

if TYPE_CHECKING:
    from ranksafe.semantics.rank_flow.interpreter import Interpreter

_FIELDS = "__fields__"
_EMPTY: dict[str, Value] = {"dict": EMPTY_DICTIONARY, "list": Many(())}
_NAMESPACES = frozenset({"argparse.Namespace", "types.SimpleNamespace"})


class Objects:
    """Makes objects and asks them."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._run = interpreter.run
        self._interpreter = interpreter

    def construct(self, node: ast.Call, cls: Thing, given: Given | None) -> Value:
        """A new object of a class, after its ``__init__``."""
        run = self._run
        made = Thing("object", type=cls.type, node=cls.node, module=cls.module)
        run.set_attribute(made, "__made__", Known(True))
        functions = self._interpreter.functions
        initialise = functions.method(made, "__init__")
        if initialise is None:
            passed = given_in(self._interpreter, node) if given is None else given
            if cls.module is not None and isinstance(cls.node, ast.ClassDef):
                names = self._fields_of(cls.node)
                self._set_fields(made, names, passed)
                self._set_defaults(made, cls, names[len(passed.positional) :])
            finish = functions.method(made, "__post_init__")
            if finish is not None and functions.is_small(finish):
                self._interpreter.followed.entered(node, finish, Given(), made)
        elif functions.concerns(initialise) or functions.is_small(initialise):
            self._interpreter.followed.entered(node, initialise, given, made)
        elif given is None:
            self._interpreter.calls.arguments(node)
        return made

    def record(self, node: ast.Call, record: Thing, given: Given | None) -> Value:
        """An object of a ``namedtuple``."""
        made = Thing("object", node=node, module=self._run.module)
        passed = given_in(self._interpreter, node) if given is None else given
        self._set_fields(made, list(record.detail), passed)
        return made

    def by_library(self, node: ast.Call, name: str, arguments: list[Value]) -> Thing | None:
        """Namespaces, and classes that ``namedtuple`` makes; None for other calls."""
        if name in _NAMESPACES:
            made = Thing("object", node=node, module=self._run.module)
            for keyword, value in zip(node.keywords, arguments[len(node.args) :], strict=True):
                if keyword.arg is not None:
                    self._run.set_attribute(made, keyword.arg, value)
            return made
        if name == "collections.namedtuple" and len(arguments) > 1:
            names = _names_in(arguments[1])
            return None if names is None else Thing("record", detail=names)
        return None

    def _set_fields(self, made: Thing, names: list[str], given: Given) -> None:
        for name, value in zip(names, given.positional, strict=False):
            self._run.set_attribute(made, name, value)
        for key, value in given.named.items():
            if key in names:
                self._run.set_attribute(made, key, value)
        self._run.set_attribute(made, _FIELDS, Many(tuple(Known(name) for name in names)))

    def _set_defaults(self, made: Thing, cls: Thing, names: list[str]) -> None:
        """``metrics: dict = field(default_factory=dict)``: each object is given its own."""
        assert isinstance(cls.node, ast.ClassDef)
        for statement in cls.node.body:
            target = getattr(statement, "target", None)
            if not isinstance(statement, ast.AnnAssign) or not isinstance(target, ast.Name):
                continue
            written = statement.value
            if target.id not in names or not isinstance(written, ast.Call):
                continue
            if self._run.attribute(made, target.id) is not None:
                continue
            given = {item.arg: item.value for item in written.keywords}
            factory, default = given.get("default_factory"), given.get("default")
            value: Value | None = None
            if isinstance(factory, ast.Name) and factory.id in _EMPTY:
                value = _EMPTY[factory.id]
            elif isinstance(default, ast.Constant):
                value = Known(default.value)
            if value is not None:
                self._run.set_attribute(made, target.id, value)
                self._run.made_here(made, target.id)

    def _fields_of(self, cls: ast.ClassDef) -> list[str]:
        """The annotated names of a dataclass or named tuple, in order."""
        return [
            statement.target.id
            for statement in cls.body
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
        ]

    def unpacked(self, made: Thing, count: int) -> Value:
        """The fields of a named tuple, where there are as many as are asked for."""
        fields = self._run.attribute(made, _FIELDS)
        if not isinstance(fields, Many) or len(fields.items) != count:
            return made
        names = [item.constant for item in fields.items if isinstance(item, Known)]
        return Many(tuple(self._run.attribute(made, name) or NOTHING_KNOWN for name in names))

    def property_value(self, base: Thing, name: str, node: ast.AST) -> Value | None:
        """What an attribute gives that no assignment has set: a property's result, a method, a class attribute."""
        if base.kind == "class":
            return self._interpreter.callables.of_class(
                base, name
            ) or self._interpreter.class_attributes.of_class(base, name)
        if base.kind != "object":
            return None
        run, functions = self._run, self._interpreter.functions
        method = functions.method(base, name)
        if method is None:
            return self._interpreter.class_attributes.of_object(base, name)
        body = method.node
        if not isinstance(body, FUNCTIONS) or not _is_property(body):
            return Thing("function", node=body, module=method.module, detail=base)
        if not functions.concerns(method) and not functions.is_small(method):
            return NOTHING_KNOWN
        if len(run.frame.calls) >= MAXIMUM_DEPTH:
            return NOTHING_KNOWN
        frame = self._interpreter.frame_for(method, base, node, Given())
        outer, run.items = run.items, []
        result = self._interpreter.run_frame(frame, body)
        items, run.items = run.items, outer
        if matters_to_caller(items):
            run.items.append(Call(run.place(node), items))
        return result

    def special(self, base: Value, name: str, node: ast.AST, *values: Value) -> Value | None:
        """What ``__getitem__`` and its like return for an object of the project; None for others."""
        if not isinstance(base, Thing) or base.kind != "object" or base.node is None:
            return None
        method = self._interpreter.functions.method(base, name)
        if method is None:
            return None
        return self._interpreter.followed.entered(node, method, Given(list(values)), base)


def _is_property(body: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(
        getattr(item, "id", getattr(item, "attr", "")) in ("property", "cached_property")
        for item in body.decorator_list
    )


def _names_in(value: Value) -> tuple[str, ...] | None:
    """The fields in ``namedtuple("Result", ["loss", "stop"])`` or ``"loss stop"``."""
    if isinstance(value, Known) and isinstance(value.constant, str):
        return tuple(value.constant.replace(",", " ").split())
    if not isinstance(value, Many):
        return None
    names = [item.constant for item in value.items if isinstance(item, Known)]
    return tuple(names) if len(names) == len(value.items) else None
