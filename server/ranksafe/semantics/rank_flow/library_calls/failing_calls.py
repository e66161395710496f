"""Calls that may raise on one rank alone: files that only this rank opens, or under a name of its own.

What runs in a thread or process of a pool raises where its ``Future`` is asked for the result.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ranksafe.semantics.rank_flow.arguments import Given
from ranksafe.semantics.rank_flow.traces import Branch, Call, Failure, Item, Loop
from ranksafe.semantics.rank_flow.values import Thing, Unknown, Value, origin_of

if TYPE_CHECKING:
    from ranksafe.semantics.rank_flow.interpreter import Interpreter

_PATH_AT = {
    "builtins.open": 0, "io.open": 0, "torch.load": 0, "torch.save": 1, "numpy.load": 0, "numpy.save": 0,
    "safetensors.torch.load_file": 0, "safetensors.torch.save_file": 1, "os.listdir": 0, "os.scandir": 0,
    "os.remove": 0, "os.unlink": 0, "os.rename": 0, "os.replace": 0, "os.stat": 0, "os.makedirs": 0, "os.mkdir": 0,
    "shutil.copy": 0, "shutil.copyfile": 0, "shutil.copytree": 0, "shutil.move": 0, "shutil.rmtree": 0,
}  # fmt: skip
"""Functions that ask the file system, with the position of the path."""
_OF_PATHS = frozenset(
    {"read_text", "read_bytes", "write_text", "write_bytes", "open", "iterdir", "unlink", "rmdir", "touch"}
)  # fmt: skip
_RAISED = frozenset(
    {"OSError", "IOError", "EnvironmentError", "FileNotFoundError", "PermissionError", "Exception"}
    | {"BaseException"}
)


def note_failure(
    interpreter: Interpreter, node: ast.Call, name: str | None, receiver: Value | None,
    arguments: list[Value],
) -> None:  # fmt: skip
    """Write to the trace that a call may fail, where no other rank performs it on the same file."""
    run = interpreter.run
    if not run.inside.trying:
        return
    word = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    if word == "result" and isinstance(receiver, Unknown):
        for failure in receiver.raises:
            place = run.place(node)
            run.items.append(Failure(place, failure.raises, failure.origin, failure.by_branch))
        return
    path: Value | None = None
    if name in _PATH_AT:
        position = _PATH_AT[name]
        path = arguments[position] if position < len(node.args) else None
    elif word in _OF_PATHS and receiver is not None and (name is None or "pathlib" in name):
        path = receiver
    if path is None:
        return
    own = origin_of(path) if path.sameness.varies else None
    if own is not None:
        run.items.append(Failure(run.place(node), _RAISED, own))
    elif run.alone:
        run.items.append(Failure(run.place(node), _RAISED, run.alone[-1], by_branch=True))


def submitted(interpreter: Interpreter, node: ast.Call, arguments: list[Value]) -> Value | None:
    """The ``Future`` of ``executor.submit(function, ...)`` whose function may fail on this rank alone; else None."""
    function = arguments[0] if arguments else None
    starred = any(isinstance(item, ast.Starred) for item in node.args)
    if not isinstance(function, Thing) or function.kind != "function" or starred:
        return None
    run = interpreter.run
    named = {item.arg: interpreter.expressions.look(item.value) for item in node.keywords}
    given = Given(
        arguments[1 : len(node.args)], {key: item for key, item in named.items() if key is not None}
    )
    owner = function.detail if isinstance(function.detail, Thing) else None
    before = run.snapshot()
    with run.unnoticed():
        run.inside.trying += 1
        interpreter.followed.entered(node, function, given, owner)
        run.inside.trying -= 1
        failures = _failures_in(run.items)
    run.restore(before)
    return Unknown(raises=tuple(failures)) if failures else None


def _failures_in(items: list[Item]) -> list[Failure]:
    found: list[Failure] = []
    for item in items:
        if isinstance(item, Failure) and item.raises:
            found.append(item)
        elif isinstance(item, (Call, Loop)):
            found += _failures_in(item.body)
        elif isinstance(item, Branch):
            found += _failures_in(item.then) + _failures_in(item.otherwise)
    return found
