"""What statements do on one rank."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ranksafe.semantics.facts import is_main_guard
from ranksafe.semantics.rank_flow.expressions import truth_of
from ranksafe.semantics.rank_flow.traces import (
    Branch,
    Decision,
    Event,
    Exit,
    Loop,
    Passed,
    events_in,
    matters,
)
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
    joined,
    length_of,
    origin_of,
)
from ranksafe.semantics.walking import FUNCTIONS

if TYPE_CHECKING:
    from ranksafe.semantics.rank_flow.interpreter import Interpreter

_UNIFORM_EXCEPTIONS = frozenset(
    {
        "ImportError", "ModuleNotFoundError", "AttributeError", "NotImplementedError", "NameError",
        "TypeError", "KeyboardInterrupt", "SystemExit", "GeneratorExit",
    }
)  # fmt: skip
_READING = frozenset(
    {"OSError", "IOError", "FileNotFoundError", "PermissionError", "Exception", "BaseException"}
    | {"JSONDecodeError", "ValueError", "KeyError", "RuntimeError"}
)
_UNROLLED = 4


class Statements:
    """Runs statements; says whether the code after them is reached."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._run = interpreter.run
        self._interpreter = interpreter
        self._of: dict[type[ast.AST], Callable[[Any], bool]] = {
            ast.Expr: self._expression,
            ast.Assign: self._assign,
            ast.AnnAssign: self._annotated,
            ast.AugAssign: self._augmented,
            ast.If: self._if,
            ast.For: self._for,
            ast.AsyncFor: self._for,
            ast.While: self._while,
            ast.Try: self._try,
            ast.With: self._with,
            ast.AsyncWith: self._with,
            ast.Return: self._return,
            ast.Raise: self._raise,
            ast.Break: lambda node: self._leave("break", node),
            ast.Continue: lambda node: self._leave("continue", node),
            ast.FunctionDef: self._define,
            ast.AsyncFunctionDef: self._define,
            ast.Assert: self._assert,
            ast.Match: self._match,
        }
        if hasattr(ast, "TryStar"):
            self._of[ast.TryStar] = self._try

    def block(self, statements: list[ast.stmt]) -> bool:
        """Run statements in order; whether the end is reached."""
        return all(self.statement(statement) for statement in statements)

    def statement(self, node: ast.stmt) -> bool:
        """Run one statement."""
        self._run.step()
        execute = self._of.get(node.__class__)
        return True if execute is None else execute(node)

    def _value(self, node: ast.expr) -> Value:
        return self._interpreter.expressions.value(node)

    def _expression(self, node: ast.Expr) -> bool:
        self._value(node.value)
        if isinstance(node.value, ast.Call) and self._interpreter.calls.leaves_process(node.value):
            return self._leave("exit", node)
        return True

    def _leave(self, kind: Any, node: ast.AST) -> bool:
        if kind in ("break", "continue"):
            self._run.frame.left.append((kind, self._run.snapshot()))
        self._run.items.append(Exit(kind, self._run.place(node)))
        return False

    def _return(self, node: ast.Return) -> bool:
        value = Known(None) if node.value is None else self._value(node.value)
        if isinstance(value, Known) and value.constant is None and value.instead_of is None:
            value = Known(None, value.origin, instead_of=self._run.frame.value_elsewhere)
        condition = self._run.frame.condition
        if condition is not None and condition.sameness > value.sameness:
            value = combined(value, condition)
        self._run.frame.returns.append(value)
        return self._leave("return", node)

    def _raise(self, node: ast.Raise) -> bool:
        return self._leave("raise", node)

    def _assert(self, node: ast.Assert) -> bool:
        self._value(node.test)
        return True

    def _define(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
        run = self._run
        run.frame.variables[node.name] = Thing(
            "function", node=node, module=run.module, detail=run.frame
        )
        return True

    # -- assignments

    def _assign(self, node: ast.Assign) -> bool:
        value = self._value(node.value)
        for target in node.targets:
            self.bind(target, value)
        return True

    def _annotated(self, node: ast.AnnAssign) -> bool:
        if node.value is not None:
            self.bind(node.target, self._value(node.value))
        return True

    def _augmented(self, node: ast.AugAssign) -> bool:
        target = node.target
        if isinstance(target, ast.Name):
            load: ast.expr = ast.Name(target.id, ast.Load())
            before = self._interpreter.expressions.variable(target.id)
        else:
            load, before = target, None
        if before is None:
            before = self._value(load) if not isinstance(target, ast.Name) else NOTHING_KNOWN
        added = self._value(node.value)
        if isinstance(before, Known) and isinstance(added, Known):
            self.bind(target, self._interpreter.expressions.computed(node.op, before, added))
        elif isinstance(before, Many) and isinstance(added, Many) and isinstance(node.op, ast.Add):
            self.bind(target, Many(before.items + added.items))
        else:
            self.bind(target, combined(before, added))
        return True

    def bind(self, target: ast.expr, value: Value) -> None:
        """Give a target a value."""
        run = self._run
        if isinstance(target, ast.Name):
            run.frame.variables[target.id] = value
        elif isinstance(target, ast.Attribute):
            base = self._value(target.value)
            if isinstance(base, Thing):
                run.set_attribute(base, target.attr, value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            for index, element in enumerate(target.elts):
                if isinstance(element, ast.Starred):
                    self.bind(element.value, combined(value))
                else:
                    self.bind(element, self._item(value, index, len(target.elts)))
        elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            # ``found[0] = x``: the container may now differ where x does.
            before = self._interpreter.expressions.variable(target.value.id)
            if isinstance(before, Unknown) and value.sameness > before.sameness:
                self.bind(target.value, combined(before, value))
            elif isinstance(before, Many):
                self.bind(target.value, _with_item(before, self._value(target.slice), value))

    def _item(self, value: Value, index: int, count: int) -> Value:
        if isinstance(value, Many) and len(value.items) == count:
            return value.items[index]
        if isinstance(value, Unknown):
            return replace(value, length=Sameness.UNKNOWN)
        return NOTHING_KNOWN

    def bind_each(self, target: ast.expr, iterable: Value) -> None:
        """Give a loop's target what any step gives it."""
        self.bind(target, self._interpreter.libraries.element(iterable))

    def bind_item(self, target: ast.expr, iterable: Value, index: int) -> None:
        """Give a loop's target the value of one step of known number."""
        if isinstance(iterable, Many):
            self.bind(target, iterable.items[index])
        elif isinstance(iterable, Known):
            self.bind(target, Known(iterable.constant[index], None))

    # -- branches

    def _if(self, node: ast.If) -> bool:
        if is_main_guard(node.test):
            return self.block(node.body)
        test = self._value(node.test)
        truth = truth_of(test)
        if truth is not None:
            return self._decided(node, test, truth)
        if isinstance(test, Unknown) and test.sameness is Sameness.DATA and not test.decides:
            # ``if batch:`` asks whether there is one, which says nothing of what is in it.
            test = replace(test, sameness=Sameness.UNKNOWN)
        return self.undecided(node, test, [node.body, node.orelse])

    def _decided(self, node: ast.If, test: Value, truth: bool) -> bool:
        run = self._run
        taken, skipped = (node.body, node.orelse) if truth else (node.orelse, node.body)
        if test.sameness.varies:
            run.items.append(Decision(run.place(node), truth, test))
            reached = self.block(taken)
            if reached:
                self._miss(skipped, node)
                self._mark_shares(taken, skipped)
            return reached
        return self.block(taken)

    def _mark_shares(self, taken: list[ast.stmt], skipped: list[ast.stmt]) -> None:
        """A bound that one rank computes otherwise than the others cuts the data unevenly."""
        variables = self._run.frame.variables
        for name in _assigned_in(taken) | _assigned_in(skipped):
            value = variables.get(name)
            if isinstance(value, Unknown) and not value.decides and value.sameness < Sameness.DATA:
                variables[name] = replace(value, share=Share.UNEVEN)

    def _miss(self, skipped: list[ast.stmt], branch: ast.If) -> None:
        """What other ranks assign in the arm that this one does not take, or return from it."""
        if _returns_value(skipped):
            self._run.frame.value_elsewhere = branch
        if not _reaches_end(skipped):
            return
        variables = self._run.frame.variables
        self._miss_attributes(skipped, branch)
        for name in _assigned_in(skipped):
            before = variables.get(name)
            if before is None:
                if not self._bound_before(name, branch):
                    variables[name] = Missing(name, branch)
            elif isinstance(before, Known) and before.constant is None:
                variables[name] = Known(None, before.origin, instead_of=branch)

    def _miss_attributes(self, skipped: list[ast.stmt], branch: ast.If) -> None:
        """The same for attributes of objects whose class does not give them a value."""
        run = self._run
        for statement in skipped:
            if not isinstance(statement, ast.Assign):
                continue
            for target in statement.targets:
                if not isinstance(target, ast.Attribute) or not isinstance(target.value, ast.Name):
                    continue
                holder = self._interpreter.expressions.variable(target.value.id)
                if not isinstance(holder, Thing) or holder.kind != "object":
                    continue
                cls, module = holder.node, holder.module
                if run.attribute(holder, "__made__") is None or not isinstance(cls, ast.ClassDef):
                    continue
                assert module is not None
                known = module.attribute_stores(cls, target.attr)
                named = self._interpreter.functions.class_attribute(holder, target.attr)
                if run.attribute(holder, target.attr) is None and not known and named is None:
                    run.set_attribute(holder, target.attr, Missing(target.attr, branch))

    def _bound_before(self, name: str, branch: ast.AST) -> bool:
        """Whether the name may have been bound in a way that was not followed: a parameter, an import, a global."""
        scope = self._run.module.scope_of(branch)
        frame = self._run.frame
        if frame.outer is not None and self._interpreter.expressions.variable(name) is not None:
            return True
        bindings = (
            self._run.module.module_bindings(name)
            if scope.kind == "module"
            else scope.bindings.get(name, [])
        )
        if name in scope.globals:
            return True
        inside = set(map(id, ast.walk(branch)))
        order = self._run.module.order_of
        return any(
            id(binding) not in inside
            and (not isinstance(binding, ast.Name) or order(binding) < order(branch))
            for binding in bindings
        )

    def undecided(self, node: ast.AST, test: Value, arms: list[list[ast.stmt]]) -> bool:
        """Run both arms and keep what they have in common."""
        run = self._run
        outer = run.items
        start = run.snapshot()
        condition = run.frame.condition
        ends: list[tuple[Any, list[Any], bool]] = []
        for index, arm in enumerate(arms):
            run.restore(start)
            run.items = []
            run.frame.condition = _stronger(condition, test)
            run.inside.uncertain += not test.sameness.varies
            self._narrow(node, index == 0)
            reached = self.block(arm)
            run.inside.uncertain -= not test.sameness.varies
            ends.append((run.snapshot(), run.items, reached))
        run.items = outer
        run.frame.condition = condition
        (then, then_items, then_reached), (other, other_items, other_reached) = ends
        if matters(then_items) or matters(other_items):
            outer.append(Branch(run.place(node), test, then_items, other_items))
        else:
            outer.append(Passed(run.place(node)))
        if then_reached and other_reached:
            run.restore(self._joined(then, other, test))
        elif then_reached or other_reached:
            run.restore(then if then_reached else other)
            if _returns(then_items) or _returns(other_items):
                run.frame.condition = _stronger(condition, test)
        return then_reached or other_reached

    def _narrow(self, node: ast.AST, taken: bool) -> None:
        """``if x is None`` says what x is in its arm."""
        test = node.test if isinstance(node, ast.If) else None
        if (
            isinstance(test, ast.Compare)
            and isinstance(test.left, ast.Name)
            and isinstance(test.comparators[0], ast.Constant)
            and test.comparators[0].value is None
        ):
            is_none = isinstance(test.ops[0], ast.Is)
            if isinstance(test.ops[0], (ast.Is, ast.IsNot)) and is_none is taken:
                self._run.frame.variables[test.left.id] = Known(None)

    def _joined(self, first: Any, second: Any, test: Value) -> Any:
        variables = _joined_names(first[0], second[0], test)
        heap = {}
        for thing in {*first[1], *second[1]}:
            heap[thing] = _joined_names(first[1].get(thing, {}), second[1].get(thing, {}), test)
        return variables, heap

    def _match(self, node: ast.Match) -> bool:
        subject = self._value(node.subject)
        reached = True
        for case in node.cases:
            reached = self.undecided(node, combined(subject), [case.body, []]) and reached
        return reached

    # -- loops

    def _for(self, node: ast.For) -> bool:
        iterable = self._value(node.iter)
        count = length_of(iterable)
        self._run.none_used(iterable, node.iter)
        depends = origin_of(iterable) is not None and not isinstance(count, Sameness)
        if not depends and not isinstance(count, Sameness) and count <= _UNROLLED:
            if isinstance(iterable, (Many, Known)) and not _has_loop_exit(node.body):
                return self._unrolled(node, iterable, count)
        return self._loop(node, iterable, count, lambda: self.bind_each(node.target, iterable))

    def _unrolled(self, node: ast.For, iterable: Value, count: int) -> bool:
        run = self._run
        outer = run.items
        for index in range(count):
            run.items = []
            self.bind_item(node.target, iterable, index)
            reached = self.block(node.body)
            step, run.items = run.items, outer
            if not matters(step):
                continue
            outer.append(Loop(run.place(node), 1, step, iterable, bool(run.inside.joined)))
            if not reached:
                return False
        return self.block(node.orelse)

    def _while(self, node: ast.While) -> bool:
        return self._loop(node, None, Sameness.UNKNOWN, lambda: None)

    def _loop(
        self,
        node: ast.For | ast.While,
        iterable: Value | None,
        count: Any,
        bind: Callable[[], None],
    ) -> bool:
        """Run the body until what is known at its start no longer changes, and once more for the trace."""
        run = self._run
        outer = run.items
        notes = list(run.notes)
        run.frame.loops += 1
        around, run.frame.left = run.frame.left, []
        for _ in range(1 if run.inside.settling else 3):
            start = run.snapshot()
            run.items = []
            if isinstance(node, ast.While):
                self._value(node.test)
            bind()
            run.inside.settling += 1
            self.block(node.body)
            run.inside.settling -= 1
            run.notes = list(notes)
            merged = self._joined(start, run.snapshot(), SAME)
            for _, state in run.frame.left:
                merged = self._joined(merged, state, SAME)
            run.frame.left = []
            run.restore(merged)
            if _same_knowledge(start, run.snapshot()):
                break
        if run.inside.settling:
            run.items = outer
            run.frame.loops -= 1
            run.frame.left = around
            return True
        start = run.snapshot()
        run.items = []
        test: Value | None = None
        if isinstance(node, ast.While):
            test = self._value(node.test)
            truth = truth_of(test)
            count = Sameness.SAME if truth is not None else test.sameness
        bind()
        reached = self.block(node.body)
        body, run.items = run.items, outer
        run.frame.loops -= 1
        exits, run.frame.left = run.frame.left, around
        source = iterable if iterable is not None else test
        if matters(body):
            outer.append(Loop(run.place(node), count, body, source, bool(run.inside.joined)))
        if reached:
            run.restore(self._joined(start, run.snapshot(), SAME))
        else:
            run.restore(start)
        for _, state in exits:
            run.restore(self._joined(run.snapshot(), state, SAME))
        if isinstance(node, ast.While) and isinstance(node.test, ast.Constant) and node.test.value:
            if not any(isinstance(item, Exit) and item.kind == "break" for item in _exits(body)):
                return False
        return self.block(node.orelse) if not _has_break(node.body) else True

    # -- exceptions and contexts

    def _try(self, node: ast.Try) -> bool:
        run = self._run
        start = run.snapshot()
        outer = run.items
        run.items = []
        reached = self.block(node.body)
        if reached:
            reached = self.block(node.orelse)
        body, run.items = run.items, outer
        outer.extend(body)
        end = run.snapshot()
        for handler in node.handlers:
            run.restore(start)
            run.items = []
            run.inside.handler += 1
            handled = self.block(handler.body)
            run.inside.handler -= 1
            inside, run.items = run.items, outer
            if not self._uniform(handler):
                self._judge_handler(handler, inside, body, handled)
                if handled:
                    end = self._joined(end, run.snapshot(), NOTHING_KNOWN)
            elif not reached and handled:
                reached = True
        run.restore(end)
        return self.block(node.finalbody) and reached

    def _judge_handler(
        self, handler: ast.ExceptHandler, inside: list[Any], body: list[Any], handled: bool
    ) -> None:
        events = list(events_in(inside, certain=True))
        if events:
            self._run.note("handler", events[0].place.node, branch=handler, event=events[0])
            return
        skipped = list(events_in(body, certain=True))
        parts = any(isinstance(item, Decision) for item in body)
        goes_on = handled or any(
            isinstance(item, Exit) and item.kind == "continue" for item in _exits(inside)
        )
        inside_loop = bool(self._run.frame.loops)
        if (
            skipped
            and goes_on
            and (
                (inside_loop and self._catches_step_failures(handler))
                or (parts and self._catches_reading(handler))
            )
        ):
            self._run.note("swallowed", handler, branch=handler, event=skipped[-1])

    def _uniform(self, handler: ast.ExceptHandler) -> bool:
        """Whether the handler is for what happens on all ranks alike: a version without a function, an interrupt."""
        names = _exception_names(handler)
        return bool(names) and names <= _UNIFORM_EXCEPTIONS

    def _catches_step_failures(self, handler: ast.ExceptHandler) -> bool:
        names = _exception_names(handler)
        return not names or not names.isdisjoint(
            {"Exception", "BaseException", "RuntimeError", "OutOfMemoryError", "ValueError"}
        )

    def _catches_reading(self, handler: ast.ExceptHandler) -> bool:
        """Whether the handler is for what one rank alone may meet when it alone reads something."""
        names = _exception_names(handler)
        return not names or not names.isdisjoint(_READING)

    def _with(self, node: ast.With) -> bool:
        inside = self._run.inside
        before = replace(inside)
        for item in node.items:
            value = self._interpreter.calls.enter(item.context_expr)
            if item.optional_vars is not None:
                self.bind(item.optional_vars, value)
        reached = self.block(node.body)
        inside.no_sync, inside.joined, inside.no_grad = (
            before.no_sync,
            before.joined,
            before.no_grad,
        )
        return reached


def _stronger(before: Value | None, test: Value) -> Value:
    if before is None or test.sameness > before.sameness:
        return test
    return before


def _joined_names(
    first: dict[str, Value], second: dict[str, Value], test: Value
) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for name in {*first, *second}:
        one, other = first.get(name), second.get(name)
        if one is None or other is None:
            only = one if one is not None else other
            assert only is not None
            if isinstance(only, Missing):
                found[name] = only
                continue
            # Assigned on one path: unknown on the other.
            found[name] = joined(only, NOTHING_KNOWN, test) if not isinstance(only, Thing) else only
        elif one is other:
            found[name] = one
        else:
            found[name] = joined(one, other, test)
    return found


def _same_knowledge(first: Any, second: Any) -> bool:
    return bool(first[0] == second[0] and first[1] == second[1])


def _with_item(before: Many, index: Value, value: Value) -> Value:
    if isinstance(index, Known) and isinstance(index.constant, int):
        if 0 <= index.constant < len(before.items):
            items = list(before.items)
            items[index.constant] = value
            return Many(tuple(items))
    return combined(before, value)


def _assigned_in(statements: list[ast.stmt]) -> set[str]:
    """Names that a block certainly assigns in its own function: nested branches left out."""
    found: set[str] = set()
    for statement in statements:
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                found |= {
                    node.id
                    for node in ast.walk(target)
                    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
                }
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            found.add(statement.target.id)
        elif isinstance(statement, ast.With):
            found |= _assigned_in(statement.body)
    return found


def _returns_value(statements: list[ast.stmt]) -> bool:
    return any(
        (isinstance(item, ast.Return) and item.value is not None)
        or (isinstance(item, ast.With) and _returns_value(item.body))
        for item in statements
    )


def _reaches_end(statements: list[ast.stmt]) -> bool:
    return bool(statements) and not isinstance(
        statements[-1], (ast.Return, ast.Raise, ast.Continue, ast.Break)
    )


def _exits(items: list[Any]) -> list[Exit]:
    """Exits of this level: those of loops inside belong to them."""
    found = []
    for item in items:
        if isinstance(item, Exit):
            found.append(item)
        elif isinstance(item, Branch):
            found += _exits(item.then) + _exits(item.otherwise)
    return found


def _returns(items: list[Any]) -> bool:
    return any(item.kind == "return" for item in _exits(items))


def _has_loop_exit(body: list[ast.stmt]) -> bool:
    return any(
        isinstance(node, (ast.Break, ast.Continue)) for item in body for node in ast.walk(item)
    )


def _has_break(body: list[ast.stmt]) -> bool:
    return any(isinstance(node, ast.Break) for item in body for node in ast.walk(item))


def _exception_names(handler: ast.ExceptHandler) -> set[str]:
    if handler.type is None:
        return set()
    types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return {
        item.attr if isinstance(item, ast.Attribute) else item.id
        for item in types
        if isinstance(item, (ast.Attribute, ast.Name))
    }


__all__ = ["FUNCTIONS", "Event", "Statements"]
