"""Under which conditions code runs, and which assignments may still hold at a use.

Followed by the structure of the code (blocks, branches, loops), not by a control-flow graph: enough to see a keyword
dictionary handed on, and to see that a branch guards it.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from ranksafe.semantics.guards import Guard, GuardKind, kind_of_words
from ranksafe.semantics.structure import ModuleStructure
from ranksafe.semantics.walking import FUNCTIONS, Scope

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
_GOING_ON = (ast.Return, ast.Continue, ast.Break)
"""They leave the block, and the program runs on."""
_LEAVING = (*_GOING_ON, ast.Raise)
_LEAVING_CALLS = frozenset({"sys.exit", "os._exit", "builtins.exit", "builtins.quit"})
_TESTS = (ast.Compare, ast.BoolOp, ast.UnaryOp, ast.Name)
_LONGEST_WAY = 4
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_ONCE = ("iter", "orelse")
"""Parts of a loop that do not run in each of its steps."""


class ControlFlow:
    """Conditions and assignments in one file."""

    def __init__(self, module: ModuleStructure) -> None:
        self._module = module

    # -- conditions

    def around(self, node: ast.AST, until: ast.AST | None = None) -> tuple[Guard, ...]:
        """Conditions on the way from the enclosing function (or ``until``) to ``node``, innermost first."""
        module = self._module
        found: list[Guard] = []
        child = node
        parent = module.parent(child)
        while parent is not None and child is not until:
            guard = self.of_branch(parent, child)
            if guard is not None:
                found.append(guard)
            found.extend(self._earlier_exits(parent, child))
            if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.Module)):
                break
            child, parent = parent, module.parent(parent)
        return tuple(found)

    def of_branch(self, parent: ast.AST, child: ast.AST) -> Guard | None:
        """The condition that ``parent`` puts on its direct child."""
        if isinstance(parent, (ast.If, ast.While)):
            if child is parent.test:
                return None
            return self.guard(parent.test, any(child is item for item in parent.body))
        if isinstance(parent, ast.IfExp) and child is not parent.test:
            return self.guard(parent.test, child is parent.body)
        if isinstance(parent, ast.BoolOp) and child is not parent.values[0]:
            return self.guard(parent.values[0], isinstance(parent.op, ast.And))
        return None

    def guard(self, test: ast.expr, positive: bool, *, is_demanded: bool = False) -> Guard:
        """A guard; ``not x`` is x with the other sign."""
        while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            test, positive = test.operand, not positive
        return Guard(test, positive, self, is_demanded=is_demanded)

    def read(self, test: ast.expr, holds: bool) -> tuple[ast.expr, bool]:
        """See `ranksafe.semantics.guards.Tests`."""
        for _ in range(_LONGEST_WAY):
            if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
                test, holds = test.operand, not holds
                continue
            meaning = self._named_test(test)
            if meaning is None:
                break
            test = meaning
        return test, holds

    def _named_test(self, test: ast.expr) -> ast.expr | None:
        """The test that a variable was assigned, where there is just one."""
        if not isinstance(test, ast.Name):
            return None
        scope, bindings = self._module.bindings(test)
        if scope is None or len(bindings) != 1 or not isinstance(bindings[0], ast.Name):
            return None
        assigned = self.assigned_value(bindings[0])
        return assigned if isinstance(assigned, _TESTS) else None

    def kind_of(self, test: ast.expr, depth: int = 0) -> GuardKind:
        """What a condition depends on, through the names in it."""
        found: GuardKind = self._module.memoized("guard kind", test, depth, self._find_kind)
        return found

    def _find_kind(self, test: ast.expr, depth: int) -> GuardKind:
        kinds: set[GuardKind] = set()
        for node in ast.walk(test):
            kind = None if _is_module_of_torch(node) else kind_of_words(node)
            if kind is not None:
                kinds.add(kind)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and depth < 3:
                for assigned in self.assigned_values(node):
                    kinds.add(self.kind_of(assigned, depth + 1))
        for kind in (GuardKind.LAUNCH, GuardKind.RANK, GuardKind.DEVICE_COUNT):
            if kind in kinds:
                return kind
        return GuardKind.OTHER

    def _earlier_exits(self, parent: ast.AST, child: ast.AST) -> list[Guard]:
        """``if c: return`` before ``child`` in the same block: it runs only where c does not hold; with the exit in
        the ``else``, where c holds."""
        if not isinstance(child, ast.stmt) or isinstance(parent, ast.ClassDef):
            return []
        if isinstance(parent, ast.Module):
            self._module.note_early_exits()
        exits: list[_Exit] = self._module.memoized("exits in", parent, 0, self._exits_in)
        if not exits:
            return []
        block, order = _block_of(parent, child), self._module.order_of(child)
        return [
            self.guard(exit_.test, exit_.holds, is_demanded=exit_.ends)
            for exit_ in exits
            if exit_.block == block and self._module.order_of(exit_.statement) < order
        ]

    def _exits_in(self, parent: ast.AST, _depth: int) -> list[_Exit]:
        found = []
        for block in ("body", "orelse", "finalbody"):
            statements = getattr(parent, block, None)
            for statement in statements if isinstance(statements, list) else ():
                if isinstance(statement, ast.If):
                    leaves = self._leaves(statement.body[-1])
                    other = bool(statement.orelse) and self._leaves(statement.orelse[-1])
                    if leaves is not other:
                        last = (statement.orelse if other else statement.body)[-1]
                        ends = not isinstance(last, _GOING_ON)
                        found.append(_Exit(block, statement, statement.test, other, ends))
                elif isinstance(statement, ast.Assert):
                    found.append(_Exit(block, statement, statement.test, True, True))
        return found

    def _leaves(self, statement: ast.stmt) -> bool:
        if isinstance(statement, _LEAVING):
            return True
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            return self._written_name(statement.value.func) in _LEAVING_CALLS
        return False

    def _written_name(self, node: ast.expr) -> str | None:
        """The name of what an expression refers to, as far as imports alone tell: conditions are needed to tell which
        assignment holds, so they cannot ask that themselves."""
        if isinstance(node, ast.Attribute):
            base = self._written_name(node.value)
            return None if base is None else f"{base}.{node.attr}"
        if not isinstance(node, ast.Name):
            return None
        _, bindings = self._module.bindings(node)
        if not bindings:
            return f"builtins.{node.id}"
        alias = bindings[0]
        if not isinstance(alias, ast.alias):
            return None
        statement = self._module.parent(alias)
        if isinstance(statement, ast.ImportFrom):
            return f"{statement.module}.{alias.name}"
        return alias.name if alias.asname else alias.name.partition(".")[0]

    # -- assignments

    def assigned_value(self, target: ast.Name) -> ast.expr | None:
        """The expression that a plain assignment gives to the name (element by element for tuples), else None."""
        return self._module.assigned_value(target)

    def assigned_values(self, use: ast.Name) -> list[ast.expr]:
        """Expressions that the name may have been assigned at ``use``."""
        scope, bindings = self._module.bindings(use)
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
            return [(binding, self.around(binding)) for binding in bindings]
        use_path = self._path(use)
        use_steps = {id(step.parent): step for step in use_path}
        use_order = module.order_of(use)
        found: list[tuple[ast.AST, tuple[Guard, ...]]] = []
        of_step_before: dict[int, ast.AST] = {}
        """By binding that holds from the last step of a loop on, that loop."""
        overridden: list[Guard] = []
        arms_seen: set[tuple[int, str]] = set()
        for binding in reversed(bindings):
            relation = self._relation(binding, use_steps)
            if relation is None:
                continue
            below, loop = relation
            if module.order_of(binding) >= use_order or self._inside_same_statement(binding, use):
                if loop is not None:
                    of_step_before[id(binding)] = loop
                    found.append((binding, ()))
                continue
            guards = tuple(
                guard
                for step in below
                if (guard := self.of_branch(step.parent, step.child)) is not None
            )
            found.append((binding, (*guards, *overridden)))
            conditional = [step for step in below if isinstance(step.parent, _CONDITIONAL)]
            if not conditional or self._completes_both_arms(conditional, arms_seen):
                anew = {id(step.parent) for step in self._path(binding) if step.block not in _ONCE}
                found = [
                    item for item in found
                    if id(of_step_before.get(id(item[0]))) not in anew
                ]  # fmt: skip
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
    ) -> tuple[list[_Step], ast.AST | None] | None:
        """Steps from the block shared with the use down to the binding, innermost first, and the innermost loop that
        is shared; None when the two are in different arms of one branch."""
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
                if self._loop_above(step.parent) is None:
                    return None
            loop = self._loop_above(shared.child)
            return below, None if self._loop_above(binding) is None else loop
        return below, None

    def _loop_above(self, node: ast.AST) -> ast.AST | None:
        current = self._module.parent(node)
        while current is not None and not isinstance(
            current, (*FUNCTIONS, ast.Lambda, ast.ClassDef)
        ):
            if isinstance(current, _LOOPS):
                return current
            current = self._module.parent(current)
        return None

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
        found: list[_Step] = self._module.memoized("path", node, 0, self._find_path)
        return found

    def _find_path(self, node: ast.AST, _depth: int) -> list[_Step]:
        steps = []
        child = node
        parent = self._module.parent(child)
        while parent is not None:
            steps.append(_Step(parent, child, _block_of(parent, child)))
            if isinstance(parent, (*FUNCTIONS, ast.Lambda, ast.Module, ast.ClassDef)):
                break
            child, parent = parent, self._module.parent(parent)
        return steps


@dataclass(frozen=True, slots=True)
class _Exit:
    """A statement behind which a condition holds, or (``holds`` is False) does not."""

    block: str
    statement: ast.stmt
    test: ast.expr
    holds: bool
    ends: bool
    """Whether the other way ends in an exception or ends the program."""


@dataclass(frozen=True, slots=True)
class _Step:
    parent: ast.AST
    child: ast.AST
    block: str


def _is_module_of_torch(node: ast.AST) -> bool:
    """``torch.distributed`` of ``torch.distributed.get_rank()``: no question by itself."""
    return (
        isinstance(node, ast.Attribute)
        and node.attr == "distributed"
        and isinstance(node.value, ast.Name)
        and node.value.id == "torch"
    )


def _block_of(parent: ast.AST, child: ast.AST) -> str:
    if isinstance(parent, ast.IfExp):
        return "body" if child is parent.body else "orelse" if child is parent.orelse else "test"
    if isinstance(parent, ast.Match):
        for index, case in enumerate(parent.cases):
            if case is child:
                return f"case {index}"
        return "test"
    if isinstance(parent, (ast.Module, *FUNCTIONS)) and isinstance(child, ast.stmt):
        # They may be long, and have no other.
        return "body"
    for block in _BLOCKS:
        statements = getattr(parent, block, None)
        if isinstance(statements, list) and child in statements:
            return block
    return "test"
