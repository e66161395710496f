"""Work that is done once and kept in a file: ``if os.path.exists(path): load(path) else: ...; save(found, path)``.

Where all ranks have come through, the file is there: a rank that comes again by itself loads it.
"""

from __future__ import annotations

import ast

from ranksafe.rank_flow.run import Frame, Run
from ranksafe.rank_flow.tables import functions_that, methods_that
from ranksafe.semantics.module import Module
from ranksafe.semantics.units import callee_name
from ranksafe.semantics.walking import FUNCTIONS

_DEPTH = 4


def arm_with_file(run: Run, node: ast.If) -> list[ast.stmt] | None:
    """The arm of a test for a file that this rank takes without the others, because all have made the file before."""
    if not run.inside.apart or not run.files_made:
        return None
    found = _file_of(run, node)
    if found is None or (id(node), found[0]) not in run.files_made:
        return None
    return found[1]


def note_file(run: Run, node: ast.If) -> None:
    """Remember a test for a file that all ranks have come through."""
    if run.inside.apart:
        return
    found = _file_of(run, node)
    if found is not None:
        run.files_made.add((id(node), found[0]))


def _file_of(run: Run, node: ast.If) -> tuple[str, list[ast.stmt]] | None:
    """The path of which a test asks whether it is there, as written where it comes from, and the arm where it is."""
    module = run.module
    kept: tuple[ast.expr, list[ast.stmt]] | None = module.memoized(
        "kept file", node, 0, lambda _node, _depth: _kept(module, node)
    )
    return None if kept is None else (_written(run.frame, kept[0], _DEPTH), kept[1])


def _kept(module: Module, node: ast.If) -> tuple[ast.expr, list[ast.stmt]] | None:
    """The path and the arm where it is there; None where the other arm gives such a path to nothing."""
    asked = _asked(module, node.test)
    if asked is None:
        return None
    path, there = asked
    present, missing = (node.body, node.orelse) if there else (node.orelse, node.body)
    written = ast.unparse(path)
    return (path, present) if any(_is_given(module, item, written) for item in missing) else None


def _asked(module: Module, test: ast.expr) -> tuple[ast.expr, bool] | None:
    """The path in a test, and whether it is there where the test holds."""
    pending = [(test, True)]
    looked_up: set[str] = set()
    while pending:
        part, there = pending.pop()
        if isinstance(part, ast.BoolOp):
            pending += [(item, there) for item in part.values]
        elif isinstance(part, ast.Name) and part.id not in looked_up:
            looked_up.add(part.id)
            pending += [(item, there) for item in module.flow.assigned_values(part)[:1]]
        elif isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.Not):
            pending.append((part.operand, not there))
        elif isinstance(part, ast.Call):
            if (module.qualified_name(part.func) or "") in functions_that("asks for a file"):
                return (part.args[0], there) if part.args else None
            if isinstance(part.func, ast.Attribute) and not part.args:
                if part.func.attr in methods_that("asks for a file"):
                    return part.func.value, there
    return None


def _is_given(module: Module, statement: ast.stmt, path: str) -> bool:
    """Whether a statement gives a path to something that may write there."""
    for call in ast.walk(statement):
        if not isinstance(call, ast.Call) or callee_name(call) in methods_that("logs"):
            continue
        name = module.qualified_name(call.func) or ""
        if name == "builtins.print" or name in functions_that("asks for a file"):
            continue
        given = [*call.args, *(item.value for item in call.keywords)]
        if any(ast.unparse(item) == path for item in given):
            return True
    return False


def _written(frame: Frame, path: ast.expr, depth: int) -> str:
    """The expression behind a name: what it was assigned, or what a call gives."""
    if not isinstance(path, ast.Name) or not depth:
        return ast.unparse(path)
    module = frame.module
    assigned = module.flow.assigned_values(path)
    if len(assigned) == 1:
        return _written(frame, assigned[0], depth - 1)
    _, bindings = module.bindings(path)
    parameter = bindings[0] if len(bindings) == 1 else None
    given = None
    if frame.caller is not None and isinstance(parameter, ast.arg):
        given = _given_for(frame, parameter.arg)
    if given is None or frame.caller is None:
        return path.id
    return _written(frame.caller, given, depth - 1)


def _given_for(frame: Frame, parameter: str) -> ast.expr | None:
    """The argument that the call of a frame gives for a parameter."""
    call = frame.calls[-1][0] if frame.calls else None
    function = frame.function
    if not isinstance(call, ast.Call) or not isinstance(function, FUNCTIONS):
        return None
    for keyword in call.keywords:
        if keyword.arg == parameter:
            return keyword.value
    names = [item.arg for item in (*function.args.posonlyargs, *function.args.args)]
    names = names[1:] if frame.receiver is not None else names
    if parameter not in names or any(isinstance(item, ast.Starred) for item in call.args):
        return None
    position = names.index(parameter)
    return call.args[position] if position < len(call.args) else None
