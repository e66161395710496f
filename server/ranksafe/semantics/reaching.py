"""Which assignments may still hold at a use, and under which conditions.

Followed by the structure of the code (blocks, branches, loops), not by a control-flow graph: enough to see a keyword
dictionary handed on, and to see that a branch guards it.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ranksafe.semantics.guards import Guard
from ranksafe.semantics.walking import FUNCTIONS, Scope

if TYPE_CHECKING:
    from ranksafe.semantics.module import Module

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


class Reaching:
    """Assignments of one module's names."""

    def __init__(self, module: Module) -> None:
        self._module = module

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
