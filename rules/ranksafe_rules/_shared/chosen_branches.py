"""Which branches of a function a call can come to, by the constants that it passes."""

from __future__ import annotations

import ast

from ranksafe.semantics.guards import Guard
from ranksafe.semantics.module import Module
from ranksafe.semantics.structure import Function
from ranksafe.semantics.value_flow import default_of
from ranksafe.semantics.values import Values

from ranksafe_rules._shared.passed_arguments import position_of


def comes_to(module: Module, node: ast.AST, user: Module, call: ast.Call) -> bool:
    """Whether a call (in the file ``user``) of the function around ``node`` may come to ``node``: False where a
    condition on a parameter sends it another way, as ``f(last=True)`` past ``if not last:``."""
    return all(_may_hold(module, guard, user, call) for guard in module.guards(node))


def _may_hold(module: Module, guard: Guard, user: Module, call: ast.Call) -> bool:
    test, wanted = guard.test, guard.positive
    # All parts of a conjunction hold where it does; of a disjunction none where it does not.
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) is wanted:
        return all(_part_may_hold(module, part, wanted, user, call) for part in test.values)
    return _part_may_hold(module, test, wanted, user, call)


def _part_may_hold(
    module: Module, test: ast.expr, wanted: bool, user: Module, call: ast.Call
) -> bool:
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, wanted = test.operand, not wanted
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        bound, operator = module.values(test.comparators[0]), test.ops[0]
        if isinstance(operator, (ast.NotEq, ast.IsNot)):
            wanted = not wanted
        elif not isinstance(operator, (ast.Eq, ast.Is)):
            return True
        given = _given_for(module, test.left, user, call)
        constants = _constants(given), _constants(bound)
        return any((one == other) is wanted for one in constants[0] for other in constants[1]) or (
            not constants[0] or not constants[1]
        )
    values = _constants(_given_for(module, test, user, call))
    return not values or any(bool(value) is wanted for value in values)


def _constants(values: Values | None) -> list[object]:
    """All that an expression may be, where all of it is known; else nothing."""
    return values.constants() if values is not None and values.are_constants else []


def _given_for(module: Module, test: ast.expr, user: Module, call: ast.Call) -> Values | None:
    """What a call passes for the parameter that a test asks for, or the parameter's default; None where the test asks
    for something else, or the parameter is bound anew."""
    if not isinstance(test, ast.Name):
        return None
    _, bindings = module.bindings(test)
    if len(bindings) != 1 or not isinstance(bindings[0], ast.arg):
        return None
    function = module.enclosing_function(bindings[0])
    if function is None or not _calls_by_name(call, function):
        return None
    if any(isinstance(item, ast.Starred) for item in call.args) or any(
        word.arg is None for word in call.keywords
    ):
        return None
    given = user.argument_node(call, test.id, position_of(module, function, test.id))
    if given is not None:
        return user.values(given)
    default = default_of(bindings[0], function)
    return None if default is None else module.values(default)


def _calls_by_name(call: ast.Call, function: Function) -> bool:
    """Whether the arguments of a call are those of the function: ``Fire(function)`` passes others."""
    if function.name == "__init__":
        return True
    called = call.func
    word = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", None)
    return word == function.name
