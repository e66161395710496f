"""The arm that a rank does not take: what the other ranks have from it and this one has not."""

from __future__ import annotations

import ast

from ranksafe.rank_flow.run import Run
from ranksafe.rank_flow.values import Constant, Object, Unassigned


def miss(run: Run, skipped: list[ast.stmt], branch: ast.If) -> None:
    """What other ranks assign in the arm that this one does not take, or return from it."""
    if _returns_value(skipped):
        run.frame.value_elsewhere = branch
    if not _reaches_end(skipped):
        return
    variables = run.frame.variables
    _miss_attributes(run, skipped, branch)
    for name in assigned_in(skipped):
        before = variables.get(name)
        if before is None:
            if not _bound_before(run, name, branch):
                variables[name] = Unassigned(name, branch)
        elif isinstance(before, Constant) and before.constant is None:
            variables[name] = Constant(None, before.origin, instead_of=branch)


def _miss_attributes(run: Run, skipped: list[ast.stmt], branch: ast.If) -> None:
    """The same for attributes of objects whose class does not give them a value."""
    for statement in skipped:
        if not isinstance(statement, ast.Assign):
            continue
        for target in statement.targets:
            if not isinstance(target, ast.Attribute) or not isinstance(target.value, ast.Name):
                continue
            holder = run.variable(target.value.id)
            if not isinstance(holder, Object) or holder.kind != "object":
                continue
            cls, module = holder.node, holder.module
            if run.attribute(holder, "__made__") is None or not isinstance(cls, ast.ClassDef):
                continue
            assert module is not None
            known = module.attribute_stores(cls, target.attr)
            named = run.functions.class_attribute(holder, target.attr)
            if run.attribute(holder, target.attr) is None and not known and named is None:
                run.set_attribute(holder, target.attr, Unassigned(target.attr, branch))


def _bound_before(run: Run, name: str, branch: ast.AST) -> bool:
    """Whether the name may have been bound in a way that was not followed: a parameter, an import, a global."""
    scope = run.module.scope_of(branch)
    frame = run.frame
    if frame.outer is not None and run.variable(name) is not None:
        return True
    bindings = (
        run.module.module_bindings(name) if scope.kind == "module" else scope.bindings.get(name, [])
    )
    if name in scope.globals:
        return True
    order = run.module.order_of
    return any(
        not run.module.is_inside(binding, branch)
        and (not isinstance(binding, ast.Name) or order(binding) < order(branch))
        for binding in bindings
    )


def assigned_in(statements: list[ast.stmt]) -> set[str]:
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
            found |= assigned_in(statement.body)
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
