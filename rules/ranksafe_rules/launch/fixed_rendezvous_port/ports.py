"""Ports for the rendezvous of a process group that stand in the code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final

from ranksafe.semantics.facts import is_main_guard
from ranksafe.semantics.module import Module

from ranksafe_rules._shared.option_defaults import option_default
from ranksafe_rules._shared.passed_arguments import passed_for
from ranksafe_rules._shared.rank_words import assigned_to

_PORT: Final = "MASTER_PORT"
_INIT: Final = "torch.distributed.init_process_group"
_RANKS: Final = frozenset({"RANK", "LOCAL_RANK", "WORLD_SIZE"})
_ADDRESS: Final = re.compile(
    r"tcp://(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1?\]):(?P<port>\d+)/?$"
)
_ASKED: Final = re.compile(
    r"environ|getenv|master|rank|world_?size|slurm|elastic|launch|port|debug|single|mpi|nproc|nnodes"
    r"|\b(?:cpu|gloo|tpu|xla)\b",
    re.IGNORECASE,
)
"""A condition with one of these may hold only where no launcher has chosen a port."""
_STARTERS: Final = ("spawn", "start_processes", "Process", "notebook_launcher", "Popen")
_OTHER_LAUNCHERS: Final = re.compile(
    r"deepspeed|slurm|srun|mpi(?:run|exec)|OMPI_|PMI_|horovod", re.IGNORECASE
)
"""With these, rank 0 of the script listens itself, and any port that is free will do (torch 2.13.0)."""
_TEST_FOLDERS: Final = frozenset({"test", "tests", "testing", "unit_tests"})


@dataclass(frozen=True, slots=True)
class FixedPort:
    """A port that is written down."""

    node: ast.expr
    """``os.environ["MASTER_PORT"]`` or the address that is given to init_process_group."""
    port: str
    assignment: ast.Assign | None
    """The statement that sets the variable."""


def fixed_ports(module: Module) -> Iterator[FixedPort]:
    """The ports in a file that makes the process group, where nothing around them asks for another one."""
    made = list(module.calls(_INIT))
    if not made or _is_test(module) or _is_world_of_one(module, made):
        return
    if any(_reads_variable(module, call) for call in made):
        yield from _assigned_ports(module)
    for call in made:
        address = module.argument_node(call, "init_method", 1)
        written = None if address is None else _written(module, address)
        found = _ADDRESS.match(written) if isinstance(written, str) else None
        if address is not None and found is not None and not _is_asked_for(module, call):
            yield FixedPort(address, found["port"], None)


def _assigned_ports(module: Module) -> Iterator[FixedPort]:
    for node in module.nodes(ast.Assign):
        assert isinstance(node, ast.Assign)
        port = _port_assigned(module, node)
        if port is not None and not _is_asked_for(module, node):
            yield FixedPort(node.targets[0], port, node)


def _reads_variable(module: Module, made: ast.Call) -> bool:
    """Whether the group's rendezvous may be that of the environment: an address, a file or a store needs no port."""
    if module.argument_node(made, "store", 5) is not None:
        return False
    address = module.argument_node(made, "init_method", 1)
    if address is None:
        return True
    known = module.values(address).constants()
    if isinstance(address, ast.Attribute):
        known = [*known, option_default(module, address.attr)]
    texts = [text for text in known if isinstance(text, str)]
    return not texts or any(text.startswith("env:") for text in texts)


def torchrun_listens(module: Module) -> bool:
    """Whether the file takes its rank from a launcher, and neither starts processes itself nor names a launcher that
    leaves the listening to rank 0."""
    return (
        any(item.what in _RANKS for item in module.facts.launcher_evidence)
        and not any(module.calls_written(name) for name in _STARTERS)
        and not any(_sets(node, _RANKS) for node in module.nodes(ast.Assign))
        and not module.text_says(_names_another_launcher)
    )


def _names_another_launcher(text: str) -> bool:
    return _OTHER_LAUNCHERS.search(text) is not None


def _is_test(module: Module) -> bool:
    if module.path is None:
        return False
    path = PurePath(module.path)
    return (
        path.name.startswith(("test_", "conftest"))
        or path.stem.endswith("_test")
        or path.parent.name in _TEST_FOLDERS
    )


def _is_world_of_one(module: Module, made: list[ast.Call]) -> bool:
    """Whether the group is that of a single process."""
    for call in made:
        size = module.argument(call, "world_size", 3)
        if size is not None and size.only_constant() == 1:
            return True
    return any(
        _sets(node, frozenset({"WORLD_SIZE"})) and _written(module, node.value) in (1, "1")
        for node in module.nodes(ast.Assign)
        if isinstance(node, ast.Assign)
    )


def _sets(node: ast.AST, names: frozenset[str]) -> bool:
    """Whether a statement is ``os.environ["NAME"] = ...`` with one of the names."""
    target = node.targets[0] if isinstance(node, ast.Assign) else None
    return (
        isinstance(target, ast.Subscript)
        and isinstance(target.slice, ast.Constant)
        and target.slice.value in names
    )


def _port_assigned(module: Module, node: ast.Assign) -> str | None:
    target = node.targets[0]
    if len(node.targets) != 1 or not _sets(node, frozenset({_PORT})):
        return None
    assert isinstance(target, ast.Subscript)
    if module.qualified_name(target.value) != "os.environ":
        return None
    written = _written(module, node.value)
    return str(written) if written is not None and str(written).isdigit() else None


def _written(module: Module, expression: ast.expr) -> object:
    """The constant that an expression is, as written there, in ``str(...)`` or in the one assignment of a name: a
    default that an argument of the program can change is none."""
    if (
        isinstance(expression, ast.Call)
        and module.qualified_name(expression.func) == "builtins.str"
    ):
        return _written(module, expression.args[0]) if len(expression.args) == 1 else None
    if isinstance(expression, ast.Name):
        given = list(_given(module, expression))
        return given[0].value if len(given) == 1 and isinstance(given[0], ast.Constant) else None
    return expression.value if isinstance(expression, ast.Constant) else None


def _given(module: Module, name: ast.Name) -> Iterator[ast.expr]:
    """What the one assignment of a variable, or the one call for a parameter, gives."""
    _, bindings = module.bindings(name)
    if len(bindings) != 1:
        return
    binding = bindings[0]
    if isinstance(binding, ast.arg):
        for passed in passed_for(module, module.enclosing_function(binding), binding.arg):
            yield from _given(module, passed) if isinstance(passed, ast.Name) else [passed]
    elif isinstance(binding, ast.Name):
        value = module.assigned_value(binding)
        if value is not None:
            yield value


def _is_asked_for(module: Module, node: ast.AST) -> bool:
    """Whether a condition or an error led here: only where no port was given, or in a single process."""
    for guard in module.guards(node):
        if not is_main_guard(guard.test) and any(map(_ASKED.search, _texts(module, guard.test))):
            return True
    current = module.parent(node)
    while current is not None:
        if isinstance(current, ast.ExceptHandler):
            return True
        current = module.parent(current)
    return False


def _texts(module: Module, test: ast.expr) -> Iterator[str]:
    """A condition as written, and what its variables were assigned."""
    yield module.text_of(test)
    for node in ast.walk(test):
        if isinstance(node, ast.Name):
            for value in assigned_to(module, node):
                yield module.text_of(value)
