"""What a call runs: functions, methods, classes, what ``partial`` and decorators make of them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ranksafe.semantics.rank_flow import sources
from ranksafe.semantics.rank_flow.arguments import Given, given_in, has_decorator
from ranksafe.semantics.rank_flow.run import Frame
from ranksafe.semantics.rank_flow.values import Thing, Value
from ranksafe.semantics.rank_flow.wrapped_models import SHARDED
from ranksafe.semantics.walking import FUNCTIONS

if TYPE_CHECKING:
    from ranksafe.semantics.module import Module
    from ranksafe.semantics.rank_flow.interpreter import Interpreter

CALLABLE = ("function", "object", "wrapped", "class", "partial", "record")
_PLAIN = "plain"
"""Type of a function that stands for itself, without its decorators."""


class Callables:
    """Finds what calls run."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._run = interpreter.run
        self._interpreter = interpreter
        self._decorated: dict[int, Thing | None] = {}

    def of_call(self, node: ast.Call, receiver: Value | None) -> Thing | None:
        """The function of the project that a call runs, or the object that it calls."""
        function = node.func
        if isinstance(function, ast.Name):
            return self._of_name(function)
        if isinstance(function, ast.Attribute):
            if _is_super(function.value):
                return self._of_super(function)
            if receiver is not None:
                return self._of_attribute(receiver, function)
            return self._of_class(function) or self._interpreter.functions.named(
                self._run.module, function
            )
        found = self._interpreter.expressions.value(function)
        return found if isinstance(found, Thing) and found.kind in CALLABLE else None

    def _of_name(self, function: ast.Name) -> Thing | None:
        local = self._interpreter.expressions.variable(function.id)
        if local is None:
            found = self._interpreter.functions.named(self._run.module, function)
            if found is not None:
                return found
            bindings = self._run.module.module_bindings(function.id)
            if len(bindings) != 1 or not isinstance(bindings[0], ast.Name):
                return None
            local = self._interpreter.functions.module_value(self._run, self._interpreter, function)
        return local if isinstance(local, Thing) and local.kind in CALLABLE else None

    def _of_attribute(self, receiver: Value, function: ast.Attribute) -> Thing | None:
        run = self._run
        if isinstance(receiver, Thing) and receiver.kind == "class":
            return self.of_class(receiver, function.attr)
        if isinstance(receiver, Thing) and receiver.kind in ("object", "wrapped"):
            held = run.attribute(receiver, function.attr)
            if isinstance(held, Thing) and held.kind in CALLABLE:
                return held
            owner = run.attribute(receiver, "module") if receiver.kind == "wrapped" else receiver
            if isinstance(owner, Thing) and owner.kind == "object":
                if owner is receiver:
                    return self._interpreter.functions.method(receiver, function.attr)
                if run.attribute(owner, SHARDED) is not None and function.attr != "forward":
                    return self._method_of(owner, function.attr)
            return None
        value = self._interpreter.expressions.attribute_of(receiver, function)
        return value if isinstance(value, Thing) and value.kind in ("function", "wrapped") else None

    def _method_of(self, owner: Thing, name: str) -> Thing | None:
        """A method that is bound to an object."""
        found = self._interpreter.functions.method(owner, name)
        if found is None:
            return None
        return Thing("function", node=found.node, module=found.module, detail=owner)

    def _of_class(self, function: ast.Attribute) -> Thing | None:
        """``Tools.check(x)`` of a class that the file names."""
        if not isinstance(function.value, ast.Name):
            return None
        cls = self._interpreter.expressions.variable(function.value.id)
        if cls is None:
            cls = self._interpreter.functions.named(self._run.module, function.value)
        if not isinstance(cls, Thing) or cls.kind != "class":
            return None
        return self.of_class(cls, function.attr)

    def of_class(self, cls: Thing, name: str) -> Thing | None:
        """A function of a class, asked of the class itself: a class method is given it."""
        found = self._interpreter.functions.method(cls, name)
        if found is None:
            return None
        owner = cls if has_decorator(found.node, "classmethod") else None
        return Thing("function", node=found.node, module=found.module, detail=owner)

    def _of_super(self, function: ast.Attribute) -> Thing | None:
        """``super().method``, from the bases that the class names, bound to the object of the call."""
        run = self._run
        method: ast.AST | None = run.frame.function
        cls = run.module.parent(method) if isinstance(method, FUNCTIONS) else None
        if not isinstance(cls, ast.ClassDef) or not isinstance(method, FUNCTIONS):
            return None
        positional = [*method.args.posonlyargs, *method.args.args]
        receiver = run.frame.variables.get(positional[0].arg) if positional else None
        if not isinstance(receiver, Thing):
            return None
        for base in cls.bases:
            found = self._interpreter.functions.named(run.module, base)
            if found is None or found.kind != "class":
                continue
            inherited = self._interpreter.functions.method(found, function.attr)
            if inherited is not None:
                return Thing(
                    "function", node=inherited.node, module=inherited.module, detail=receiver
                )
        return None

    # -- made of functions

    def partial(self, node: ast.Call) -> Thing | None:
        """``functools.partial(function, ...)`` of what is followed; None for others."""
        if not node.args:
            return None
        found = self._interpreter.expressions.look(node.args[0])
        if not isinstance(found, Thing) or found.kind not in ("function", "class", "partial"):
            return None
        given = given_in(self._interpreter, node)
        given.positional = given.positional[1:]
        return Thing("partial", node=found.node, module=found.module, detail=(found, given))

    def decorated(self, function: Thing) -> Thing:
        """What a function's decorators of the project make of it; the function itself where that is not followed."""
        body = function.node
        if not isinstance(body, FUNCTIONS) or function.type == _PLAIN or not body.decorator_list:
            return function
        if isinstance(function.detail, Frame):
            return function
        found = self._decorated.get(id(body))
        if id(body) not in self._decorated:
            self._decorated[id(body)] = None
            assert function.module is not None
            found = self._decorated[id(body)] = self._decorate(body, function.module)
        return function if found is None else found

    def _decorate(
        self, body: ast.FunctionDef | ast.AsyncFunctionDef, module: Module
    ) -> Thing | None:
        run, functions = self._run, self._interpreter.functions
        found: list[tuple[ast.expr, Thing]] = []
        for decorator in reversed(body.decorator_list):
            target = decorator.func if isinstance(decorator, ast.Call) else decorator
            word = target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")
            if word in sources.GUARDING_DECORATORS:
                return None
            known = functions.named(module, target)
            if known is not None and known.kind == "function":
                found.append((decorator, known))
        if not found:
            return None
        inner = Thing("function", type=_PLAIN, node=body, module=module)
        made: Value = inner
        outer = run.frame
        run.frame = Frame(module, module.tree, quiet=True, calls=outer.calls)
        try:
            with run.unnoticed():
                for decorator, known in found:
                    applied: Value = known
                    if isinstance(decorator, ast.Call):
                        given = given_in(self._interpreter, decorator)
                        applied = self._interpreter.followed.entered(decorator, known, given)
                    if isinstance(applied, Thing) and applied.kind == "function":
                        made = self._interpreter.followed.entered(decorator, applied, Given([made]))
        finally:
            run.frame = outer
        own = isinstance(made, Thing) and made.kind == "function" and made is not inner
        return made if own and isinstance(made, Thing) else None


def _is_super(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"
    )


def constant_name(node: ast.Call) -> str | None:
    """The name in ``getattr(x, "name")``; None where it is computed."""
    if len(node.args) < 2 or not isinstance(node.args[1], ast.Constant):
        return None
    return str(node.args[1].value)
