"""Collectives in code that runs beside the program's main path: destructors, signal handlers, workers, threads."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ranksafe.rank_flow.functions import Functions
from ranksafe.rank_flow.issues import Issue, Kind
from ranksafe.rank_flow.operations import operations
from ranksafe.rank_flow.traces import Place
from ranksafe.rank_flow.values import Object
from ranksafe.semantics.module import Module
from ranksafe.semantics.walking import FUNCTIONS

_DATASETS = (
    "torch.utils.data.Dataset",
    "torch.utils.data.IterableDataset",
    "torch.utils.data.dataset.Dataset",
)
_THREAD = "a thread"
_REGISTERED = {
    "signal.signal": ("handler", 1, "a signal handler"),
    "atexit.register": ("func", 0, "an atexit handler"),
    "threading.Thread": ("target", 1, _THREAD),
    "threading.Timer": ("function", 1, _THREAD),
}
_WORKER_ARGUMENTS = ("collate_fn", "worker_init_fn")


def other_paths(module: Module, functions: Functions) -> Iterator[Issue]:
    """Collectives performed by such functions, each at its call."""
    for function, where in _functions(module, functions):
        for call in module.nodes(ast.Call, function):
            assert isinstance(call, ast.Call)
            operation = operations().get(module.qualified_name(call.func) or "")
            if operation is None or operation.kind != "collective" or operation.only:
                continue
            own_group = operation.group is not None and operation.group.of(call) is not None
            if not (own_group and where == _THREAD):
                yield Issue(Kind.OTHER_PATH, Place(call, module), operation.word, name=where)


def _functions(module: Module, functions: Functions) -> Iterator[tuple[ast.AST, str]]:
    for cls in module.nodes(ast.ClassDef):
        assert isinstance(cls, ast.ClassDef)
        yield from _of_class(module, cls)
    for decorated in module.nodes(ast.FunctionDef):
        assert isinstance(decorated, ast.FunctionDef)
        names = map(module.qualified_name, decorated.decorator_list)
        if "atexit.register" in names:
            yield decorated, "an atexit handler"
    written = ("signal", "register", "Thread", "Timer", "DataLoader")
    for call in [call for word in written for call in module.calls_written(word)]:
        yield from _handed_over(module, functions, call)


def _of_class(module: Module, cls: ast.ClassDef) -> Iterator[tuple[ast.AST, str]]:
    """Destructors, and what a DataLoader's workers call."""
    methods = {"__del__": "__del__"}
    if module.is_subclass(module.class_name(cls), *_DATASETS):
        methods |= dict.fromkeys(("__getitem__", "__getitems__"), "Dataset.__getitem__")
    for name, where in methods.items():
        method = module.method(cls, name)
        if method is not None:
            yield method, where


def _handed_over(
    module: Module, functions: Functions, call: ast.Call
) -> Iterator[tuple[ast.AST, str]]:
    """Functions that a call gives to a signal, a thread or a loader."""
    name = module.qualified_name(call.func)
    if name in _REGISTERED:
        yield from _given(module, functions, call, *_REGISTERED[name])
    elif name == "torch.utils.data.DataLoader" and _has_workers(module, call):
        for argument in _WORKER_ARGUMENTS:
            where = f"a DataLoader worker ({argument})"
            yield from _given(module, functions, call, argument, None, where)


def _has_workers(module: Module, call: ast.Call) -> bool:
    values = module.argument(call, "num_workers", 5)
    return values is not None and any(
        isinstance(item, int) and item > 0 for item in values.constants()
    )


def _given(
    module: Module, functions: Functions, call: ast.Call, keyword: str, position: int | None,
    where: str,
) -> Iterator[tuple[ast.AST, str]]:  # fmt: skip
    node = module.argument_node(call, keyword, position)
    if node is None:
        return
    if isinstance(node, ast.Lambda):
        yield node, where
        return
    found: Object | None = None
    if isinstance(node, ast.Name):
        found = functions.named(module, node)
    elif isinstance(node, ast.Attribute):
        cls = module.class_of_self(node.value)
        method = None if cls is None else module.method(cls, node.attr)
        if method is not None:
            yield method, where
    if found is not None and isinstance(found.node, FUNCTIONS) and found.module is module:
        yield found.node, where
