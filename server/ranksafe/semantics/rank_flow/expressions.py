"""Values of expressions on one rank."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ranksafe.semantics.rank_flow import sources
from ranksafe.semantics.rank_flow.traces import Branch, Decision, Loop, matters
from ranksafe.semantics.rank_flow.values import (
    NOTHING_KNOWN,
    SAME,
    Known,
    Many,
    Missing,
    Sameness,
    Share,
    Thing,
    Unknown,
    Value,
    combined,
    elementwise,
    joined,
    length_of,
    origin_of,
)

if TYPE_CHECKING:
    from ranksafe.semantics.rank_flow.interpreter import Interpreter

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda left, right: left in right,
    ast.NotIn: lambda left, right: left not in right,
}
_PLAIN = (bool, int, float, str, type(None), tuple)
_STRUCTURE = frozenset({"shape", "ndim", "dtype", "device", "is_cuda", "requires_grad", "grad_fn"})
"""What tensors of different data usually have in common."""
_LONGEST = 64


class Expressions:
    """Evaluates expressions; collectives in them are written to the trace in the order of evaluation."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._run = interpreter.run
        self._interpreter = interpreter
        self._of: dict[type[ast.AST], Callable[[Any], Value]] = {
            ast.Constant: self._constant,
            ast.Name: self._name,
            ast.Attribute: self._attribute,
            ast.Subscript: self._subscript,
            ast.Call: interpreter.calls.value,
            ast.BoolOp: self._bool_operation,
            ast.BinOp: self._binary,
            ast.UnaryOp: self._unary,
            ast.Compare: self._compare,
            ast.IfExp: self._conditional,
            ast.Tuple: self._display,
            ast.List: self._display,
            ast.Set: self._display,
            ast.Dict: self._dictionary,
            ast.ListComp: self._comprehension,
            ast.GeneratorExp: self._comprehension,
            ast.SetComp: self._comprehension,
            ast.NamedExpr: self._named,
            ast.Lambda: self._lambda,
            ast.Starred: lambda node: self.value(node.value),
            ast.Await: lambda node: self.value(node.value),
            ast.Yield: self._yield,
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

    # -- names and attributes

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
            if found is not None:
                open_ = isinstance(found, Unknown) and found.sameness is Sameness.UNKNOWN
                by_convention = self.by_word(node.attr, node) if open_ else None
                return found if by_convention is None else by_convention
            computed = self._interpreter.calls.property_value(base, node)
            if computed is not None:
                return computed
        word = self.by_word(node.attr, node)
        if word is not None and not self._is_of_control(node):
            return word
        if isinstance(base, Unknown) and base.sameness.varies:
            # Batches and losses hand on what they are made of; an object that differs says nothing of its parts.
            if node.attr in _STRUCTURE:
                return NOTHING_KNOWN
            return replace(base, length=Sameness.UNKNOWN)
        return NOTHING_KNOWN

    def _is_of_control(self, node: ast.Attribute) -> bool:
        """``args.should_save`` is true on the main process; ``control.should_save`` is the same everywhere."""
        if node.attr != "should_save":
            return False
        return not self._run.module.text_of(node.value).endswith("args")

    # -- operators

    def _display(self, node: ast.Tuple | ast.List | ast.Set) -> Value:
        items = [self.value(item) for item in node.elts]
        if any(isinstance(item, ast.Starred) for item in node.elts):
            return combined(*items)
        return Many(tuple(items))

    def _dictionary(self, node: ast.Dict) -> Value:
        values = [self.value(item) for item in node.values]
        keys = [None if key is None else self.value(key) for key in node.keys]
        if values and all(isinstance(key, Known) for key in keys):
            found = combined(*values)
            # A loop over it gives the keys.
            each = Many(tuple(key for key in keys if key is not None))
            return replace(
                found, length=Sameness.SAME, each=self._interpreter.libraries.element(each)
            )
        return combined(*values)

    def _subscript(self, node: ast.Subscript) -> Value:
        run = self._run
        if run.module.qualified_name(node.value) == "os.environ":
            return self._interpreter.calls.environment_variable(node.slice, node)
        base = self.value(node.value)
        run.none_used(base, node.value)
        if isinstance(node.slice, ast.Slice):
            return self._slice(base, node.slice)
        index = self.value(node.slice)
        if isinstance(base, Many) and isinstance(index, Known) and isinstance(index.constant, int):
            if -len(base.items) <= index.constant < len(base.items):
                item = base.items[index.constant]
                if index.origin is not None and isinstance(item, Known):
                    return Known(item.constant, index.origin)
                return item
        if isinstance(base, Unknown) and isinstance(base.each, Unknown) and base.share is not None:
            # One of the parts of np.array_split.
            part = base.each
            return replace(part, origin=origin_of(index) or part.origin)
        found = combined(base, index)
        if index.sameness is Sameness.DATA and self._is_mask(node.slice):
            # A mask keeps as many elements as it has ones.
            return replace(found, shape=Sameness.DATA, origin=origin_of(index) or found.origin)
        return found

    def _is_mask(self, node: ast.expr) -> bool:
        """Whether an index is a comparison's result."""
        if isinstance(node, ast.UnaryOp):
            return self._is_mask(node.operand)
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitAnd, ast.BitOr)):
            return self._is_mask(node.left)
        if isinstance(node, ast.Name):
            return any(
                self._is_mask(item)
                for item in self._run.module.flow.assigned_values(node)
                if not isinstance(item, ast.Name)
            )
        return isinstance(node, ast.Compare)

    def _slice(self, base: Value, node: ast.Slice) -> Value:
        bounds = [
            None if item is None else self.value(item)
            for item in (node.lower, node.upper, node.step)
        ]
        given = [item for item in bounds if item is not None]
        if isinstance(base, Many) and all(isinstance(item, Known) for item in given):
            constants = [None if item is None else item.constant for item in bounds]  # type: ignore[union-attr]
            if all(item is None or isinstance(item, int) for item in constants):
                return Many(base.items[slice(*constants)], origin_of(*given))
        found = combined(base, *given)
        varying = max((item.sameness for item in given), default=Sameness.SAME)
        if not varying.varies:
            return replace(found, length=Sameness.UNKNOWN)
        step = bounds[2]
        even = isinstance(base, Unknown) and base.share is Share.EVEN
        rows = length_of(base)
        if not isinstance(rows, Sameness) and rows % self._run.world.size == 0:
            even = True
        # xs[rank::world_size]: the shares differ by one wherever the length does not divide.
        strided = isinstance(step, Known) and step.constant == self._run.world.size and not even
        uneven = strided or found.share is Share.UNEVEN
        shape = Sameness.RANK if uneven else Sameness.UNKNOWN
        return replace(
            found,
            sameness=Sameness.DATA,
            length=Sameness.RANK if uneven else Sameness.UNKNOWN,
            shape=Sameness.DATA if varying is Sameness.DATA else shape,
            origin=origin_of(*given) or found.origin,
        )

    def _binary(self, node: ast.BinOp) -> Value:
        left, right = self.value(node.left), self.value(node.right)
        if isinstance(left, Known) and isinstance(right, Known):
            if left.origin is not None and isinstance(node.op, (ast.Mod, ast.FloorDiv)):
                self._run.depends_on_parity = True
            return _computed(_BINARY.get(node.op.__class__), left, right)
        if isinstance(node.op, ast.Mult):
            items, times = (left, right) if isinstance(left, Many) else (right, left)
            if (
                isinstance(items, Many)
                and isinstance(times, Known)
                and isinstance(times.constant, int)
            ):
                if 0 <= times.constant * len(items.items) <= _LONGEST:
                    return Many(items.items * times.constant)
        if isinstance(node.op, ast.Add) and isinstance(left, Many) and isinstance(right, Many):
            return Many(left.items + right.items)
        return self._shared_out(node, left, right)

    def _shared_out(self, node: ast.BinOp, left: Value, right: Value) -> Value:
        """Arithmetic with something unknown; remembers how a length is cut into parts."""
        found = elementwise(left, right)
        by_size = isinstance(right, Known) and right.constant == self._run.world.size
        if by_size and isinstance(node.op, (ast.Mod, ast.FloorDiv)) and self._run.world.size > 1:
            rounded_up = isinstance(node.op, ast.FloorDiv) and isinstance(
                node.left, (ast.UnaryOp, ast.BinOp)
            )
            return replace(found, share=Share.UNEVEN if rounded_up else Share.EVEN)
        return found

    def computed(self, operation: ast.operator, left: Known, right: Known) -> Value:
        """The result of an operator on two constants."""
        return _computed(_BINARY.get(operation.__class__), left, right)

    def _unary(self, node: ast.UnaryOp) -> Value:
        value = self.value(node.operand)
        if isinstance(value, Known):
            if isinstance(node.op, ast.Not):
                return Known(not value.constant, value.origin)
            if isinstance(node.op, ast.USub) and isinstance(value.constant, (int, float)):
                return Known(-value.constant, value.origin)
        if isinstance(node.op, ast.Not) and isinstance(value, Many):
            return Known(not value.items)
        return combined(value)

    def _compare(self, node: ast.Compare) -> Value:
        values = [self.value(node.left), *(self.value(item) for item in node.comparators)]
        if len(values) == 2:
            left, right = values
            test = _COMPARE.get(node.ops[0].__class__)
            if isinstance(left, Known):
                plain = _plain(right)
                if plain is not None:
                    self._note_comparison(left, plain)
                    return _computed(test, left, plain)
            if isinstance(node.ops[0], (ast.Is, ast.IsNot)) and isinstance(right, Known):
                if right.constant is None and isinstance(left, (Thing, Many)):
                    return Known(isinstance(node.ops[0], ast.IsNot))
            if isinstance(node.ops[0], (ast.Is, ast.IsNot)):
                # What is there is decided by the code, not by the data.
                return NOTHING_KNOWN
            if isinstance(node.ops[0], (ast.In, ast.NotIn)) and isinstance(left, Known):
                return NOTHING_KNOWN
        return replace(combined(*values), decides=True)

    def _note_comparison(self, left: Known, right: Known) -> None:
        if left.origin is None and right.origin is None:
            return
        for side in (left, right):
            if side.origin is None:
                named = side.constant if isinstance(side.constant, tuple) else (side.constant,)
                for item in named:
                    if isinstance(item, int) and item < 16:
                        self._run.largest_rank = max(self._run.largest_rank, item)

    def _bool_operation(self, node: ast.BoolOp) -> Value:
        stops_at = isinstance(node.op, ast.Or)
        decided: list[Value] = []
        undecided: list[Value] = []
        for operand in node.values:
            value = self._guarded(operand, node, undecided) if undecided else self.value(operand)
            truth = truth_of(value)
            if truth is None:
                undecided.append(value)
            elif truth is stops_at:
                origin = origin_of(value, *decided)
                if isinstance(value, Known) and not undecided:
                    return Known(value.constant, origin)
                return Known(stops_at, origin)
            else:
                decided.append(value)
        if undecided:
            return combined(*undecided)
        last = decided[-1]
        return Known(last.constant, origin_of(*decided)) if isinstance(last, Known) else last

    def _guarded(self, operand: ast.expr, node: ast.BoolOp, before: list[Value]) -> Value:
        """An operand that is evaluated only if the ones before let it."""
        outer, self._run.items = self._run.items, []
        value = self.value(operand)
        items, self._run.items = self._run.items, outer
        if matters(items):
            outer.append(Branch(self._run.place(node), combined(*before), items, []))
        return value

    def _conditional(self, node: ast.IfExp) -> Value:
        test = self.value(node.test)
        truth = truth_of(test)
        if truth is not None:
            if test.sameness.varies:
                self._run.items.append(Decision(self._run.place(node), truth, test))
            value = self.value(node.body if truth else node.orelse)
            if test.sameness.varies and isinstance(value, Known) and value.origin is None:
                return Known(value.constant, origin_of(test))
            if test.sameness.varies and isinstance(value, Unknown) and _may_be_bound(value):
                return replace(value, share=Share.UNEVEN)
            return value
        outer = self._run.items
        arms: list[tuple[Value, list[Any]]] = []
        for arm in (node.body, node.orelse):
            self._run.items = []
            value = self.value(arm)
            arms.append((value, self._run.items))
        self._run.items = outer
        if any(matters(items) for _, items in arms):
            outer.append(Branch(self._run.place(node), test, arms[0][1], arms[1][1]))
        return joined(arms[0][0], arms[1][0], test)

    # -- the rest

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp) -> Value:
        run = self._run
        saved = dict(run.frame.variables)
        outer = run.items
        sources_ = []
        conditions = []
        for generator in node.generators:
            iterable = self.value(generator.iter)
            sources_.append(iterable)
            self._interpreter.statements.bind_each(generator.target, iterable)
            conditions += [self.value(test) for test in generator.ifs]
        length = length_of(sources_[0])
        known = isinstance(length, int) and not isinstance(length, Sameness)
        if len(node.generators) == 1 and not conditions and known and length <= _LONGEST:
            items = []
            for index in range(length):
                self._interpreter.statements.bind_item(
                    node.generators[0].target, sources_[0], index
                )
                items.append(self.value(node.elt))
            run.frame.variables = saved
            source = sources_[0]
            return Many(tuple(items), source.origin if isinstance(source, Many) else None)
        run.items = []
        element = self.value(node.elt)
        inner, run.items = run.items, outer
        if matters(inner):
            count: Any = length
            run.items.append(
                Loop(run.place(node), count, inner, sources_[0], bool(run.inside.joined))
            )
        run.frame.variables = saved
        found = combined(element, *sources_, *conditions)
        varies = max((item.sameness for item in conditions), default=Sameness.SAME)
        if node.generators[0].ifs and sources_[0].sameness is Sameness.DATA:
            varies = Sameness.DATA
        if varies.varies:
            origin = origin_of(*conditions) or found.origin
            return replace(found, length=varies, origin=origin)
        if len(node.generators) == 1 and not conditions and isinstance(length, Sameness):
            return replace(found, length=length)
        return found

    def _named(self, node: ast.NamedExpr) -> Value:
        value = self.value(node.value)
        self._run.frame.variables[node.target.id] = value
        return value

    def _lambda(self, node: ast.Lambda) -> Value:
        return Thing("function", node=node, module=self._run.module, detail=self._run.frame)

    def _yield(self, node: ast.Yield) -> Value:
        if node.value is not None:
            self.value(node.value)
        return NOTHING_KNOWN


def _may_be_bound(value: Unknown) -> bool:
    """Whether a value may be the bound of a range: not what comes out of data or tests."""
    return not value.decides and value.sameness is not Sameness.DATA


def truth_of(value: Value) -> bool | None:
    """Whether a value counts as true on this rank; None when that is not known."""
    if isinstance(value, Known):
        return bool(value.constant)
    if isinstance(value, Many):
        return bool(value.items)
    return None


def _plain(value: Value) -> Known | None:
    """A value as a constant: a tuple of constants is one."""
    if isinstance(value, Known):
        return value
    if isinstance(value, Many) and all(isinstance(item, Known) for item in value.items):
        constants = tuple(item.constant for item in value.items)  # type: ignore[union-attr]
        return Known(constants, origin_of(*value.items))
    return None


def _computed(operation: Callable[[Any, Any], Any] | None, left: Known, right: Known) -> Value:
    if operation is None:
        return combined(left, right)
    a, b = left.constant, right.constant
    if isinstance(a, (str, tuple)) and isinstance(b, int) and operation is operator.mul:
        return combined(left, right)
    try:
        result = operation(a, b)
    except (TypeError, ValueError, ZeroDivisionError, OverflowError):
        return combined(left, right)
    if isinstance(result, int) and abs(result) > 10**12:
        return combined(left, right)
    return Known(result, origin_of(left, right))
