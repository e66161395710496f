"""Where values come from: reaching definitions, and the values an expression may have.

Flow is followed by the structure of the code (blocks, branches, loops), not by a control-flow graph: enough to see a
keyword dictionary handed on, and to see that a branch guards it. What is not understood makes an answer incomplete.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ranksafe.semantics.guards import Guard, GuardKind
from ranksafe.semantics.walking import FUNCTIONS, Scope

if TYPE_CHECKING:
    from ranksafe.semantics.module import Module

_MAXIMUM_DEPTH = 7
_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
_CONDITIONAL = (
    ast.If,
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.Try,
    ast.ExceptHandler,
    ast.Match,
    ast.IfExp,
)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


@dataclass(frozen=True, slots=True)
class Value:
    """One value an expression may have.

    ``node`` is the expression that makes the value (a constant, a dictionary display, a call, a lambda, ...), where
    it stands; ``guards`` are the conditions on the way from there to the place asked about.
    """

    node: ast.expr
    guards: tuple[Guard, ...]
    module: Module

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

    def only_constant(self) -> Any:
        """The constant that the expression certainly has, else None."""
        if (
            not self.complete
            or not self.known
            or not all(value.is_constant for value in self.known)
        ):
            return None
        constants = {repr(value.constant) for value in self.known}
        return self.known[0].constant if len(constants) == 1 else None

    def constants(self) -> list[Any]:
        """All constants among the known values."""
        return [value.constant for value in self.known if value.is_constant]


NOTHING_KNOWN = Values((), False)


class Flow:
    """Value flow of one module."""

    def __init__(self, module: Module) -> None:
        self._module = module

    # -- definitions

    def assigned_value(self, target: ast.Name) -> ast.expr | None:
        """The expression that a plain assignment gives to the name (element by element for tuples), else None."""
        parent = self._module.parent(target)
        if isinstance(parent, ast.Assign):
            return parent.value
        if isinstance(parent, (ast.AnnAssign, ast.NamedExpr)):
            return parent.value
        if isinstance(parent, (ast.Tuple, ast.List)):
            statement = self._module.parent(parent)
            if isinstance(statement, ast.Assign) and isinstance(
                statement.value, (ast.Tuple, ast.List)
            ):
                if len(statement.value.elts) == len(parent.elts):
                    index = next(i for i, item in enumerate(parent.elts) if item is target)
                    element = statement.value.elts[index]
                    return None if isinstance(element, ast.Starred) else element
        return None

    def assigned_values(self, use: ast.Name) -> list[ast.expr]:
        """Expressions that the name may have been assigned at ``use``."""
        scope, bindings = self._module.names.bindings(use)
        if scope is None:
            return []
        found = []
        for binding in self.reaching_bindings(use, scope, bindings):
            if isinstance(binding, ast.Name):
                value = self.assigned_value(binding)
                if value is not None:
                    found.append(value)
        return found

    def reaching_bindings(
        self, use: ast.AST, scope: Scope, bindings: list[ast.AST]
    ) -> list[ast.AST]:
        """The bindings that may still hold at ``use``, in source order."""
        return [binding for binding, _ in self.reaching(use, scope, bindings)]

    def reaching(
        self, use: ast.AST, scope: Scope, bindings: list[ast.AST]
    ) -> list[tuple[ast.AST, tuple[Guard, ...]]]:
        """The bindings that may still hold at ``use`` with the conditions under which they do, in source order."""
        module = self._module
        if not self._same_scope(use, scope):
            return [(binding, module.guards_of.around(binding)) for binding in bindings]
        use_path = self._path(use)
        use_steps = {id(step.parent): step for step in use_path}
        use_order = module.order_of(use)
        found: list[tuple[ast.AST, tuple[Guard, ...]]] = []
        overridden: list[Guard] = []
        arms_seen: set[tuple[int, str]] = set()
        for binding in reversed(bindings):
            relation = self._relation(binding, use_steps)
            if relation is None:
                continue
            below, loop_shared = relation
            if module.order_of(binding) >= use_order or self._inside_same_statement(binding, use):
                if loop_shared:
                    found.append((binding, ()))
                continue
            guards = tuple(
                guard
                for step in below
                if (guard := module.guards_of.of_branch(step.parent, step.child)) is not None
            )
            found.append((binding, (*guards, *overridden)))
            conditional = [step for step in below if isinstance(step.parent, _CONDITIONAL)]
            if not conditional:
                break
            if self._completes_both_arms(conditional, arms_seen):
                break
            if len(guards) == 1:
                overridden.append(guards[0].negated())
        found.reverse()
        return found

    def _completes_both_arms(self, conditional: list[_Step], seen: set[tuple[int, str]]) -> bool:
        """Whether the other arm of the same outermost ``if`` was seen to bind the name too."""
        step = conditional[-1]
        if len(conditional) != 1 or not isinstance(step.parent, ast.If):
            return False
        other = "orelse" if step.block == "body" else "body"
        seen.add((id(step.parent), step.block))
        return (id(step.parent), other) in seen

    def _relation(
        self, binding: ast.AST, use_steps: dict[int, _Step]
    ) -> tuple[list[_Step], bool] | None:
        """Steps from the block shared with the use down to the binding, innermost first, and whether a loop is
        shared; None when the two are in different arms of one branch."""
        below: list[_Step] = []
        for step in self._path(binding):
            shared = use_steps.get(id(step.parent))
            if shared is None:
                below.append(step)
                continue
            exclusive = (
                isinstance(step.parent, (ast.If, ast.IfExp, ast.Match))
                and shared.block != step.block
            )
            if exclusive and "test" not in (step.block, shared.block):
                if not self._has_loop_above(step.parent):
                    return None
            return below, self._has_loop_above(binding) and self._has_loop_above(shared.child)
        return below, False

    def _has_loop_above(self, node: ast.AST) -> bool:
        current = self._module.parent(node)
        while current is not None and not isinstance(
            current, (*FUNCTIONS, ast.Lambda, ast.ClassDef)
        ):
            if isinstance(current, _LOOPS):
                return True
            current = self._module.parent(current)
        return False

    def _inside_same_statement(self, binding: ast.AST, use: ast.AST) -> bool:
        """``x = f(x)``: the binding on the left does not reach the use on the right."""
        parent = self._module.parent(binding)
        while isinstance(parent, (ast.Tuple, ast.List, ast.Starred)):
            parent = self._module.parent(parent)
        if not isinstance(parent, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            return False
        current: ast.AST | None = use
        while current is not None and not isinstance(current, ast.stmt):
            current = self._module.parent(current)
        return current is parent

    def _same_scope(self, use: ast.AST, scope: Scope) -> bool:
        current: Scope | None = self._module.scope_of(use)
        while current is not None and current.kind == "comprehension":
            current = current.parent
        if current is None:
            return False
        return current is scope or (current.kind == scope.kind == "module")

    def _path(self, node: ast.AST) -> list[_Step]:
        """Steps from the node up to its function or the module."""
        steps = []
        child = node
        parent = self._module.parent(child)
        while parent is not None:
            steps.append(_Step(parent, child, _block_of(parent, child)))
            if isinstance(parent, (*FUNCTIONS, ast.Lambda, ast.Module, ast.ClassDef)):
                break
            child, parent = parent, self._module.parent(parent)
        return steps

    # -- values

    def values(self, node: ast.expr, depth: int = 0) -> Values:
        """See `Module.values`."""
        if depth > _MAXIMUM_DEPTH:
            return NOTHING_KNOWN
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript, ast.Call)):
            answer: Values = self._module.memoized("values", node, depth, self._compute)
            return answer
        return self._compute(node, depth)

    def _compute(self, node: ast.expr, depth: int) -> Values:
        module = self._module
        if isinstance(node, ast.Name):
            return self._of_name(node, depth)
        if isinstance(node, ast.IfExp):
            return _merged(
                [
                    _with_guards(
                        self.values(node.body, depth + 1), module.guards_of.guard(node.test, True)
                    ),
                    _with_guards(
                        self.values(node.orelse, depth + 1),
                        module.guards_of.guard(node.test, False),
                    ),
                ]
            )
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
            return _merged([self.values(item, depth + 1) for item in node.values])
        if isinstance(node, ast.NamedExpr):
            return self.values(node.value, depth + 1)
        if isinstance(node, ast.Attribute):
            return self._of_attribute(node, depth)
        if isinstance(node, ast.Subscript):
            return self._of_item(node, depth)
        if isinstance(node, ast.Call):
            return self._of_call(node, depth)
        return Values((Value(node, (), module),), True)

    def _of_name(self, node: ast.Name, depth: int) -> Values:
        module = self._module
        scope, bindings = module.names.bindings(node)
        if scope is None or not bindings:
            return NOTHING_KNOWN
        parts = []
        for binding, guards in self.reaching(node, scope, bindings):
            parts.append(_with_guards(self._of_binding(binding, depth), *guards))
        return _merged(parts) if parts else NOTHING_KNOWN

    def _of_binding(self, binding: ast.AST, depth: int) -> Values:
        if isinstance(binding, ast.Name):
            assigned = self.assigned_value(binding)
            if assigned is not None:
                return self.values(assigned, depth + 1)
            return self._of_unpacked(binding, depth)
        if isinstance(binding, ast.arg):
            default = _default_of(binding, self._module.parent(binding))
            if default is not None:
                return Values(self.values(default, depth + 1).known, False)
        if isinstance(binding, ast.alias):
            return self._module.imported_values(binding)
        return NOTHING_KNOWN

    def _of_unpacked(self, target: ast.Name, depth: int) -> Values:
        """``model, tokenizer = load()`` with ``return model, tokenizer`` in the function."""
        unpacked = self._module.parent(target)
        statement = self._module.parent(unpacked) if unpacked is not None else None
        if not isinstance(unpacked, (ast.Tuple, ast.List)) or not isinstance(statement, ast.Assign):
            return NOTHING_KNOWN
        index = next(i for i, item in enumerate(unpacked.elts) if item is target)
        parts = []
        for value in self.values(statement.value, depth + 1).known:
            elements = value.node.elts if isinstance(value.node, (ast.Tuple, ast.List)) else []
            if len(elements) != len(unpacked.elts) or isinstance(elements[index], ast.Starred):
                return NOTHING_KNOWN
            parts.append(_with_guards(self.values(elements[index], depth + 1), *value.guards))
        return _merged(parts) if parts else NOTHING_KNOWN

    def _of_attribute(self, node: ast.Attribute, depth: int) -> Values:
        module = self._module
        cls = module.class_of_self(node.value)
        if cls is not None:
            stores = module.attribute_stores(cls, node.attr)
            parts = []
            for store in stores:
                assigned = module.assigned_to_attribute(store)
                guards = module.guards_of.around(store)
                if assigned is None:
                    parts.append(NOTHING_KNOWN)
                else:
                    parts.append(_with_guards(self.values(assigned, depth + 1), *guards))
            return _merged(parts) if parts else NOTHING_KNOWN
        default = self._argparse_default(node)
        if default is not None:
            return Values(self.values(default, depth + 1).known, False)
        return NOTHING_KNOWN

    def _argparse_default(self, node: ast.Attribute) -> ast.expr | None:
        """The default of ``--name`` for ``args.name`` with ``args = parser.parse_args()``."""
        options_added = self._module.calls_written("add_argument")
        if not options_added or not isinstance(node.value, ast.Name):
            return None
        parsed = any(
            isinstance(value, ast.Call)
            and isinstance(value.func, ast.Attribute)
            and value.func.attr in ("parse_args", "parse_known_args")
            for value in self.assigned_values(node.value)
        )
        if not parsed:
            return None
        for call in options_added:
            words = [item.value for item in call.args if isinstance(item, ast.Constant)]
            options = {str(word).lstrip("-").replace("-", "_") for word in words}
            if node.attr in options:
                return next((item.value for item in call.keywords if item.arg == "default"), None)
        return None

    def _of_item(self, node: ast.Subscript, depth: int) -> Values:
        if not isinstance(node.slice, ast.Constant):
            return NOTHING_KNOWN
        key = node.slice.value
        containers = self.values(node.value, depth + 1)
        parts = []
        for value in containers.known:
            if not isinstance(key, str):
                if isinstance(value.node, (ast.List, ast.Tuple)) and isinstance(key, int):
                    if 0 <= key < len(value.node.elts):
                        parts.append(self.values(value.node.elts[key], depth + 1))
                        continue
                return NOTHING_KNOWN
            item = self.item(value.node, key, depth)
            if item is None:
                return NOTHING_KNOWN
            parts.append(_with_guards(item, *value.guards))
        merged = _merged(parts) if parts else NOTHING_KNOWN
        return Values(merged.known, merged.complete and containers.complete)

    def _of_call(self, node: ast.Call, depth: int) -> Values:
        function = self._module.function_called(node)
        if function is None:
            return Values((Value(node, (), self._module),), True)
        returns = [item for item in self._module.returns_of(function) if item.value is not None]
        if not returns or depth > 3:
            return Values((Value(node, (), self._module),), True)
        parts = []
        for item in returns:
            guards = self._module.guards_of.around(item)
            assert item.value is not None
            parts.append(_with_guards(self.values(item.value, depth + 1), *guards))
        return _merged(parts)

    # -- dictionaries and arguments

    def item(self, node: ast.expr, key: str, depth: int = 0) -> Values | None:
        """Values under a string key of a dictionary display, ``dict(...)`` call or keyword-dictionary expression;
        None: the key is certainly not there."""
        if isinstance(node, ast.Dict):
            result: Values | None = None
            complete = True
            for name, value in zip(node.keys, node.values, strict=True):
                if name is None:
                    inner = self.entry(value, key, depth + 1)
                    if inner is not None:
                        if not inner.known and not inner.complete:
                            complete = False
                        else:
                            result = inner
                elif isinstance(name, ast.Constant):
                    if name.value == key:
                        result = self.values(value, depth + 1)
                else:
                    complete = False
            if result is None:
                return None if complete else NOTHING_KNOWN
            return result
        if isinstance(node, ast.Call) and self._module.qualified_name(node.func) == "builtins.dict":
            for keyword in node.keywords:
                if keyword.arg == key:
                    return self.values(keyword.value, depth + 1)
            merged = [item.value for item in node.keywords if item.arg is None] + list(node.args)
            for source in merged:
                found = self.entry(source, key, depth + 1)
                if found is not None:
                    return found
            return None
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return self.entry(node.right, key, depth + 1) or self.entry(node.left, key, depth + 1)
        return NOTHING_KNOWN

    def entry(self, node: ast.expr, key: str, depth: int = 0) -> Values | None:
        """Values under a string key of whatever dictionary the expression may be, changes made to it in between
        included; None: certainly not there."""
        if depth > _MAXIMUM_DEPTH:
            return NOTHING_KNOWN
        changed = self._changes(node, key, depth)
        if changed is not None and not (changed.known and not changed.complete):
            return changed
        dictionaries = self.values(node, depth + 1)
        if not dictionaries.known:
            return changed or NOTHING_KNOWN
        parts: list[Values] = [changed] if changed is not None else []
        for value in dictionaries.known:
            found = self.item(value.node, key, depth + 1)
            if found is not None:
                parts.append(_with_guards(found, *value.guards))
        if not parts:
            return None if dictionaries.complete else NOTHING_KNOWN
        merged = _merged(parts)
        return Values(merged.known, merged.complete and dictionaries.complete)

    def _changes(self, node: ast.expr, key: str, depth: int) -> Values | None:
        """What ``d[key] = v``, ``d.update(key=v)``, ``d.pop(key)`` before the use do to an entry; None: nothing.
        Incomplete but known values: the change is conditional."""
        if not isinstance(node, ast.Name):
            return None
        module = self._module
        before = module.order_of(node)
        result: Values | None = None
        for use in module.loads_of_same_name(node):
            if module.order_of(use) >= before:
                continue
            parent = module.parent(use)
            new: Values | None = None
            if isinstance(parent, ast.Subscript) and parent.value is use:
                if isinstance(parent.slice, ast.Constant) and parent.slice.value == key:
                    statement = module.parent(parent)
                    if isinstance(parent.ctx, ast.Store) and isinstance(statement, ast.Assign):
                        new = self.values(statement.value, depth + 1)
                    elif isinstance(parent.ctx, ast.Del):
                        new = NOTHING_KNOWN
            elif isinstance(parent, ast.Attribute):
                call = module.parent(parent)
                if isinstance(call, ast.Call) and call.func is parent:
                    new = self._method_change(call, parent.attr, key, depth)
            if new is not None:
                guards = module.guards_of.around(use)
                result = _with_guards(new, *guards)
                if guards:
                    result = Values(result.known, False)
        return result

    def _method_change(self, call: ast.Call, method: str, key: str, depth: int) -> Values | None:
        if method in ("pop", "setdefault") and call.args:
            first = call.args[0]
            if isinstance(first, ast.Constant) and first.value == key:
                return NOTHING_KNOWN
            return None
        if method == "clear":
            return NOTHING_KNOWN
        if method == "update":
            for keyword in call.keywords:
                if keyword.arg == key:
                    return self.values(keyword.value, depth + 1)
            for argument in call.args:
                found = self.entry(argument, key, depth + 1)
                if found is not None:
                    return found
        return None

    def argument(self, call: ast.Call, name: str, position: int | None) -> Values | None:
        """See `Module.argument`."""
        for keyword in call.keywords:
            if keyword.arg == name:
                return self.values(keyword.value)
        if position is not None and position < len(call.args):
            before = call.args[: position + 1]
            if not any(isinstance(item, ast.Starred) for item in before):
                return self.values(call.args[position])
            return NOTHING_KNOWN
        for keyword in call.keywords:
            if keyword.arg is None:
                found = self.entry(keyword.value, name)
                if found is not None:
                    return found
        return None

    def argument_node(self, call: ast.Call, name: str, position: int | None) -> ast.expr | None:
        """See `Module.argument_node`."""
        for keyword in call.keywords:
            if keyword.arg == name:
                return keyword.value
        if position is not None and position < len(call.args):
            argument = call.args[position]
            return None if isinstance(argument, ast.Starred) else argument
        for keyword in call.keywords:
            if keyword.arg is None:
                found = self.entry(keyword.value, name)
                if found is not None and found.known:
                    return found.known[0].node
        return None


@dataclass(frozen=True, slots=True)
class _Step:
    parent: ast.AST
    child: ast.AST
    block: str


def _block_of(parent: ast.AST, child: ast.AST) -> str:
    if isinstance(parent, ast.IfExp):
        return "body" if child is parent.body else "orelse" if child is parent.orelse else "test"
    if isinstance(parent, ast.Match):
        for index, case in enumerate(parent.cases):
            if case is child:
                return f"case {index}"
        return "test"
    for block in _BLOCKS:
        statements = getattr(parent, block, None)
        if isinstance(statements, list) and any(child is item for item in statements):
            return block
    return "test"


def _default_of(argument: ast.arg, function: ast.AST | None) -> ast.expr | None:
    arguments = getattr(function, "args", None)
    if not isinstance(arguments, ast.arguments):
        return None
    positional = [*arguments.posonlyargs, *arguments.args]
    for index, item in enumerate(positional):
        if item is argument:
            offset = index - (len(positional) - len(arguments.defaults))
            return arguments.defaults[offset] if offset >= 0 else None
    for item, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if item is argument:
            return default
    return None


def _negative(node: ast.expr) -> int | float | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        operand = node.operand
        if isinstance(operand, ast.Constant) and isinstance(operand.value, (int, float)):
            return -operand.value
    return None


def _with_guards(values: Values, *guards: Guard) -> Values:
    if not guards:
        return values
    known = tuple(
        Value(value.node, (*value.guards, *guards), value.module) for value in values.known
    )
    return Values(known, values.complete)


def _merged(parts: list[Values]) -> Values:
    known: list[Value] = []
    for part in parts:
        for value in part.known:
            if not any(
                value.node is other.node and value.guards == other.guards for other in known
            ):
                known.append(value)
    return Values(tuple(known), all(part.complete for part in parts))
