"""Finds what evaluates an expression; evaluates names and attributes."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ranksafe.semantics.rank_flow import sources
from ranksafe.semantics.rank_flow.expressions.conditions import Conditions
from ranksafe.semantics.rank_flow.expressions.containers import Containers
from ranksafe.semantics.rank_flow.expressions.operators import Operators
from ranksafe.semantics.rank_flow.expressions.subscripts import Subscripts
from ranksafe.semantics.rank_flow.library_calls.iteration import element
from ranksafe.semantics.rank_flow.traces import Yield
from ranksafe.semantics.rank_flow.values import (
    NOTHING_KNOWN,
    SAME,
    Known,
    Missing,
    Sameness,
    Thing,
    Unknown,
    Value,
    combined,
    origin_of,
    part_of,
)

if TYPE_CHECKING:
    from ranksafe.semantics.rank_flow.interpreter import Interpreter

_PLAIN = (bool, int, float, str, type(None), tuple)
_STRUCTURE = frozenset({"shape", "ndim", "dtype", "device", "is_cuda", "requires_grad", "grad_fn"})
"""What tensors of different data usually have in common."""


class Expressions:
    """Evaluates expressions; collectives in them are written to the trace in the order of evaluation."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._run = interpreter.run
        self._interpreter = interpreter
        operators = Operators(interpreter)
        conditions = Conditions(interpreter)
        containers = Containers(interpreter)
        self._of: dict[type[ast.AST], Callable[[Any], Value]] = {
            ast.Constant: self._constant,
            ast.Name: self._name,
            ast.Attribute: self._attribute,
            ast.Subscript: Subscripts(interpreter).value,
            ast.Call: interpreter.calls.value,
            ast.BoolOp: conditions.bool_operation,
            ast.BinOp: operators.binary,
            ast.UnaryOp: operators.unary,
            ast.Compare: operators.compare,
            ast.IfExp: conditions.conditional,
            ast.Tuple: containers.display,
            ast.List: containers.display,
            ast.Set: containers.display,
            ast.Dict: containers.dictionary,
            ast.DictComp: containers.dictionary_comprehension,
            ast.ListComp: containers.comprehension,
            ast.GeneratorExp: containers.comprehension,
            ast.SetComp: containers.comprehension,
            ast.NamedExpr: self._named,
            ast.Lambda: self._lambda,
            ast.JoinedStr: self._text,
            ast.Starred: lambda node: self.value(node.value),
            ast.Await: lambda node: self.value(node.value),
            ast.Yield: self._yield,
            ast.YieldFrom: self._yield_from,
        }

    def value(self, node: ast.expr) -> Value:
        """The value of an expression on this rank."""
        evaluate = self._of.get(node.__class__)
        if evaluate is not None:
            return evaluate(node)
        return combined(
            *(
                self.value(child)
                for child in ast.iter_child_nodes(node)
                if isinstance(child, ast.expr)
            )
        )

    def look(self, node: ast.expr) -> Value:
        """The value of an expression that was evaluated before: what it does is not written again."""
        with self._run.unnoticed():
            return self.value(node)

    def _constant(self, node: ast.Constant) -> Value:
        return Known(node.value) if isinstance(node.value, _PLAIN) else SAME

    def _name(self, node: ast.Name) -> Value:
        run = self._run
        found = self.variable(node.id)
        if isinstance(found, Missing):
            run.missing(found, node)
            return NOTHING_KNOWN
        if found is not None:
            return found
        return self._interpreter.functions.module_value(run, self._interpreter, node)

    def variable(self, name: str) -> Value | None:
        """A variable of the call, or of a call around it."""
        frame = self._run.frame
        while True:
            found = frame.variables.get(name)
            if found is not None:
                return found
            if frame.outer is None:
                return None
            frame = frame.outer

    def by_word(self, word: str, node: ast.AST) -> Value | None:
        """What a name says of the rank by convention."""
        constant = sources.by_word(word, self._run.world)
        if constant is None:
            return None
        if sources.is_rank_word(word):
            return Known(constant, self._run.origin(node, Sameness.RANK))
        return Known(constant)

    def _attribute(self, node: ast.Attribute) -> Value:
        run = self._run
        name = run.module.qualified_name(node)
        if name is not None and not name.startswith("builtins."):
            found = self._interpreter.functions.library_constant(name)
            if found is not None:
                return found
        base = self.value(node.value)
        run.none_used(base, node.value)
        return self.attribute_of(base, node)

    def attribute_of(self, base: Value, node: ast.Attribute) -> Value:
        """An attribute of a value."""
        if isinstance(base, Thing):
            found = self._run.attribute(base, node.attr)
            if isinstance(found, Missing):
                self._run.missing(found, node)
                return NOTHING_KNOWN
            if found is None:
                found = self._interpreter.objects.property_value(base, node.attr, node)
            if found is None:
                found = self._interpreter.library_objects.attribute(base, node)
            if found is not None:
                open_ = isinstance(found, Unknown) and found.sameness is Sameness.UNKNOWN
                by_convention = None
                if open_ and not self._is_of_control(node):
                    by_convention = self.by_word(node.attr, node)
                return found if by_convention is None else by_convention
        word = self.by_word(node.attr, node)
        if word is not None and not self._is_of_control(node):
            return word
        if isinstance(base, Unknown) and base.sameness.varies:
            # Batches and losses hand on what they are made of; an object that differs says nothing of its parts.
            if node.attr in _STRUCTURE:
                return NOTHING_KNOWN
            return part_of(base)
        return NOTHING_KNOWN

    def _is_of_control(self, node: ast.Attribute) -> bool:
        """``args.should_save`` is true on the main process; ``control.should_save`` is the same everywhere."""
        if node.attr != "should_save":
            return False
        return not self._run.module.text_of(node.value).endswith("args")

    def _named(self, node: ast.NamedExpr) -> Value:
        value = self.value(node.value)
        self._run.frame.variables[node.target.id] = value
        return value

    def _lambda(self, node: ast.Lambda) -> Value:
        return Thing("function", node=node, module=self._run.module, detail=self._run.frame)

    def _text(self, node: ast.JoinedStr) -> Value:
        """``f"part{rank}"``"""
        parts: list[Value] = []
        plain = True
        for item in node.values:
            if isinstance(item, ast.FormattedValue):
                parts.append(self.value(item.value))
                plain = plain and item.format_spec is None and item.conversion == -1
            else:
                parts.append(self.value(item))
        known = [part.constant for part in parts if isinstance(part, Known)]
        if plain and len(known) == len(parts) and all(isinstance(k, (str, int)) for k in known):
            return Known("".join(map(str, known)), origin_of(*parts))
        return combined(*parts)

    def _yield(self, node: ast.Yield) -> Value:
        value = Known(None) if node.value is None else self.value(node.value)
        if self._run.frame.generates:
            self._run.items.append(Yield(self._run.place(node), value))
        return NOTHING_KNOWN

    def _yield_from(self, node: ast.YieldFrom) -> Value:
        source = self._interpreter.generators.iterated(self.value(node.value), node.value)
        if self._run.frame.generates:
            self._run.items.append(Yield(self._run.place(node), element(source), source))
        return NOTHING_KNOWN
