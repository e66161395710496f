"""Whether an expression certainly has the same value on all ranks, as names of files do that nobody made different."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Final

from ranksafe.semantics.module import Module
from ranksafe.semantics.structure import Function

from ranksafe_rules._shared.every_rank import callers
from ranksafe_rules._shared.passed_arguments import passed_elsewhere
from ranksafe_rules._shared.rank_words import assigned_to, identifiers

_MAXIMUM_DEPTH: Final = 6
_DIFFERENT: Final = re.compile(
    r"rank|proc|(^|_)pid|uuid|te?mp|mk[ds]temp|(^|_)(time|now|date|datetime|timestamp|strftime|stamp)|rand|shard"
    r"|worker|host|gpu|device|chunk|node|devnull|(^|_)(batch|sample|example|item|buffer)",
    re.IGNORECASE,
)
"""A name with one of these may be another one on each rank, or at another moment."""
_FUNCTIONS: Final = frozenset(
    {
        "os.path.join", "os.path.abspath", "os.path.realpath", "os.path.dirname", "os.path.basename",
        "os.path.expanduser", "os.path.expandvars", "os.path.normpath", "os.path.splitext", "os.getcwd",
        "os.environ.get", "os.getenv", "pathlib.Path", "pathlib.Path.cwd", "pathlib.Path.home", "builtins.str",
        "builtins.int", "builtins.len", "hydra.utils.to_absolute_path",
    }
)  # fmt: skip
"""Give the same for the same arguments on every rank of one machine."""
_METHODS: Final = frozenset(
    {
        "format", "replace", "strip", "rstrip", "lstrip", "lower", "upper", "split", "removeprefix", "removesuffix",
        "joinpath", "with_suffix", "with_name", "resolve", "absolute", "expanduser", "as_posix", "zfill", "join",
    }
)  # fmt: skip
"""Methods of strings, paths and dictionaries."""
_OF_ONE_RUN: Final = {
    "wandb.init": ("id", "name", "dir"),
    "wandb.run": ("id", "name", "dir"),
    "mlflow.start_run": ("info",),
    "mlflow.active_run": ("info",),
}
"""What makes or holds a tracker's run, and what of it is drawn at random (or holds the time) in each process that
starts one (read in wandb 0.31.0 `sdk/wandb_run.py`, mlflow 3.17.2 `store/tracking/file_store.py`)."""
_SACRED_RUN: Final = "_run"
"""The parameter for which sacred passes its run to the functions of an experiment; its ``_id`` is the next one that is
free, and each process takes one (read in sacred 0.8.7 `config/captured_function.py`, `observers/file_storage.py`)."""
_COUNTING: Final = frozenset({"range", "trange", "count"})


def is_same_on_all_ranks(module: Module, expression: ast.expr, depth: int = _MAXIMUM_DEPTH) -> bool:
    """Whether every rank certainly has the same value; False when nobody knows.

    Constants, arguments and configuration, counters of loops over numbers, and paths made of those. Followed through
    variables, parameters and functions of the file.
    """
    if depth == 0 or any(map(_DIFFERENT.search, identifiers(expression))):
        return False
    if isinstance(expression, ast.Attribute) and _is_of_one_run(module, expression):
        return False
    if isinstance(expression, ast.Constant):
        return True
    if isinstance(expression, ast.Name):
        return _is_same_name(module, expression, depth)
    if isinstance(expression, (ast.Attribute, ast.Subscript)):
        return _is_same_part(module, expression, depth)
    if isinstance(expression, ast.Call):
        return _is_same_call(module, expression, depth)
    if isinstance(expression, (ast.Await, ast.Lambda, ast.Yield, ast.YieldFrom, ast.Starred)):
        return False
    parts = [child for child in ast.iter_child_nodes(expression) if isinstance(child, ast.expr)]
    return all(is_same_on_all_ranks(module, part, depth) for part in parts)


def _is_same_part(module: Module, part: ast.Attribute | ast.Subscript, depth: int) -> bool:
    """``args.output_dir``, ``self.path``, ``config["name"]``: what it was assigned, and else nothing that a loop over
    data gives."""
    if isinstance(part, ast.Attribute):
        known = [value for value in module.values(part).known if value.node is not part]
        if known:
            return all(
                isinstance(value.module, Module)
                and is_same_on_all_ranks(value.module, value.node, depth - 1)
                for value in known
            )
    return _is_shared_object(module, part, depth)


def _is_of_one_run(module: Module, part: ast.Attribute) -> bool:
    """Whether an attribute tells runs of one program apart, of which each process has its own."""
    holder = part.value
    if isinstance(holder, ast.Attribute) and _is_of_one_run(module, holder):
        return True
    if part.attr in _OF_ONE_RUN.get(module.qualified_name(holder) or "", ()):
        return True
    for value in module.values(holder).known:
        if isinstance(value.node, ast.Call) and isinstance(value.module, Module):
            maker = value.module.qualified_name(value.node.func) or ""
            if part.attr in _OF_ONE_RUN.get(maker, ()):
                return value.module.argument_node(value.node, part.attr) is None
    return part.attr == "_id" and _is_run_of_sacred(module, holder)


def _is_run_of_sacred(module: Module, node: ast.expr) -> bool:
    if not isinstance(node, ast.Name) or node.id != _SACRED_RUN:
        return False
    bindings = module.bindings(node)[1]
    function = module.enclosing_function(bindings[0]) if bindings else None
    return function is not None and any(
        isinstance(decorator, ast.Attribute)
        and module.type_of(decorator.value) == "sacred.Experiment"
        for item in function.decorator_list
        for decorator in [item.func if isinstance(item, ast.Call) else item]
    )


def _is_shared_object(module: Module, base: ast.expr, depth: int) -> bool:
    while isinstance(base, (ast.Attribute, ast.Subscript)):
        if isinstance(base, ast.Subscript) and not isinstance(base.slice, ast.Constant):
            return False
        base = base.value
    if isinstance(base, ast.Call):
        return is_same_on_all_ranks(module, base, depth - 1)
    if not isinstance(base, ast.Name):
        return False
    if _is_broadcast(module, base):
        return True
    _, bindings = module.bindings(base)
    for value in assigned_to(module, base):
        if isinstance(value, (ast.List, ast.Tuple)):
            return is_same_on_all_ranks(module, value, depth - 1)
    return not any(
        isinstance(_holder(module, item), (ast.For, ast.comprehension)) for item in bindings
    )


def _is_broadcast(module: Module, name: ast.Name) -> bool:
    """Whether the function gives all ranks the list of one of them (torch.distributed.broadcast_object_list)."""
    function = module.enclosing_function(name)
    return any(
        isinstance(item, ast.Name) and item.id == name.id
        for call in module.calls_written("broadcast_object_list")
        if module.enclosing_function(call) is function
        for item in call.args[:1]
    )


def _is_same_name(module: Module, name: ast.Name, depth: int) -> bool:
    scope, bindings = module.bindings(name)
    if scope is None:
        return False
    # ``path = join(folder, path)`` stands for what the name was before.
    reaching = module.flow.reaching_bindings(name, scope, bindings) or bindings
    return bool(reaching) and all(_is_same_binding(module, item, depth) for item in reaching)


def _is_same_binding(module: Module, binding: ast.AST, depth: int) -> bool:
    if isinstance(binding, ast.arg):
        return _is_same_parameter(module, binding, depth)
    if isinstance(binding, ast.alias):
        return (binding.asname or binding.name).isupper()
    if not isinstance(binding, ast.Name):
        return False
    holder = _holder(module, binding)
    if isinstance(holder, (ast.For, ast.AsyncFor)):
        return _counts(module, holder, binding, depth)
    if isinstance(holder, ast.AugAssign):
        return is_same_on_all_ranks(module, holder.value, depth - 1)
    value = module.assigned_value(binding)
    return value is not None and is_same_on_all_ranks(module, value, depth - 1)


def _counts(module: Module, loop: ast.For | ast.AsyncFor, target: ast.Name, depth: int) -> bool:
    """Whether a loop gives numbers, or items that are written down."""
    source = loop.iter
    if isinstance(source, ast.Call):
        called = source.func
        word = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        if word == "tqdm" and source.args and isinstance(source.args[0], ast.Call):
            return module.text_of(source.args[0]).startswith("range")
        if word == "enumerate":
            return isinstance(loop.target, ast.Tuple) and loop.target.elts[0] is target
        return word in _COUNTING and is_same_on_all_ranks(module, ast.Tuple(source.args), depth - 1)
    return isinstance(source, (ast.List, ast.Tuple)) and is_same_on_all_ranks(
        module, source, depth - 1
    )


def _is_same_parameter(module: Module, parameter: ast.arg, depth: int) -> bool:
    function = module.enclosing_function(parameter)
    if function is None:
        return False
    passed = list(_passed(module, function, parameter.arg))
    return bool(passed) and all(is_same_on_all_ranks(*item, depth - 1) for item in passed)


def _passed(module: Module, function: Function, name: str) -> Iterator[tuple[Module, ast.expr]]:
    """What the calls in this file and in those that import it pass for a parameter, and its default, each with its
    file."""
    arguments = function.args
    names = [item.arg for item in (*arguments.posonlyargs, *arguments.args)]
    position = names.index(name) if name in names else None
    yield from ((module, value) for value in _defaults(function, name))
    if position is not None:
        yield from ((module, value) for value in _started_with(module, function, position))
        if module.self_name(function) is not None:
            position -= 1
    for call in callers(module, function, certain=True):
        if any(isinstance(item, ast.Name) and item.id == function.name for item in call.args):
            continue
        given = module.argument_node(call, name, position)
        if given is not None:
            yield module, given
    yield from passed_elsewhere(module, function, name)


def _started_with(module: Module, function: Function, position: int) -> Iterator[ast.expr]:
    """``mp.spawn(worker, args=(a, b))`` calls ``worker(rank, a, b)``; launchers and processes leave out the rank."""
    for starter, first in (
        ("spawn", 1),
        ("start_processes", 1),
        ("Process", 0),
        ("notebook_launcher", 0),
    ):
        for call in module.calls_written(starter):
            words = [*call.args, *(word.value for word in call.keywords)]
            if not any(isinstance(item, ast.Name) and item.id == function.name for item in words):
                continue
            written = module.argument_node(call, "args", 1)
            given = None if written is None else module.values(written).only_expression()
            if isinstance(given, ast.Tuple) and 0 <= position - first < len(given.elts):
                yield given.elts[position - first]


def _defaults(function: Function, name: str) -> Iterator[ast.expr]:
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    with_default = positional[len(positional) - len(arguments.defaults) :]
    for item, default in zip(with_default, arguments.defaults, strict=True):
        if item.arg == name:
            yield default
    for item, given in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if item.arg == name and given is not None:
            yield given


def _is_same_call(module: Module, call: ast.Call, depth: int) -> bool:
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    called = module.function_called(call)
    if called is not None:
        returns = [item.value for item in module.returns_of(called)]
        return bool(returns) and all(
            value is not None and is_same_on_all_ranks(module, value, depth - 1)
            for value in returns
        )
    if isinstance(call.func, ast.Attribute) and call.func.attr == "get" and call.args:
        if isinstance(call.args[0], ast.Constant):
            return _is_shared_object(module, call.func.value, depth - 1)
    known = module.qualified_name(call.func) in _FUNCTIONS
    if not known and isinstance(call.func, ast.Attribute) and call.func.attr in _METHODS:
        known = is_same_on_all_ranks(module, call.func.value, depth - 1)
    return known and all(is_same_on_all_ranks(module, item, depth - 1) for item in given)


def _holder(module: Module, binding: ast.AST) -> ast.AST | None:
    """The statement or comprehension that binds a name, through tuples."""
    parent = module.parent(binding)
    while isinstance(parent, (ast.Tuple, ast.List, ast.Starred)):
        parent = module.parent(parent)
    return parent
