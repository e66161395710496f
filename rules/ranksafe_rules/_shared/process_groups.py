"""Whether a program makes a process group at all, in a file, in what it calls, or in who imports it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from ranksafe.launch.context import LaunchContext
from ranksafe.semantics.facts import is_main_guard
from ranksafe.semantics.module import Module
from ranksafe.semantics.walking import FUNCTIONS

from ranksafe_rules._shared.processes import launchers_shown

_MAKERS: Final = (
    "init_process_group", "init_device_mesh", "init_distributed", "deepspeed", "Accelerator", "PartialState",
    "DistributedDataParallel", "DDP", "Trainer", "TrainingArguments", "Fabric", "LightningCLI", "horovod", ".spawn(",
    "start_processes", "notebook_launcher", "elastic_launch", "colossalai", "ray.", "torch_xla", "ignite.distributed",
)  # fmt: skip
"""Parts of the names of what makes a process group, and of libraries that do (torch, accelerate, transformers,
Lightning, DeepSpeed, horovod, ColossalAI, ray, torch_xla, ignite: their guides to distributed training). Wide on
purpose: the names of what derives from them have them in it."""
_MOST_DEFINITIONS: Final = 200
"""Of those that a program uses, so many are looked at."""


def may_have_ranks(module: Module, launch: LaunchContext) -> bool:
    """Whether a file may run as one of several processes: a setting or a command of the project says so, or the file,
    one that imports it, or something of the project that one of them uses makes a process group.

    That something asks for the rank shows nothing: a library answers 0 where there is one process.
    """
    if launch.launcher.starts_one_process_per_gpu or launchers_shown(module):
        return True
    return (
        any(map(module.users_mention, _MAKERS))
        or bool(module.launch_commands())
        or _uses_a_maker(module)
    )


def _uses_a_maker(module: Module) -> bool:
    """Whether a function or class of other files that the file uses, or one that imports it, makes a group; through
    what these use themselves."""
    pending: list[tuple[Module, ast.AST]] = [
        (user, user.tree) for user in (module, *module.users_saying("import"))
    ]
    seen: set[ast.AST] = set()
    while pending:
        file, node = pending.pop()
        if node in seen:
            continue
        if len(seen) > _MOST_DEFINITIONS:
            return True
        new = [] if file.tree in seen else _run_on_import(file)
        new += [] if node is file.tree else [node]
        seen |= {node, file.tree}
        if any(maker in file.text_of(item) for item in new for maker in _MAKERS):
            return True
        pending += _used_in(file, node)
    return False


def _run_on_import(file: Module) -> list[ast.AST]:
    return [
        item
        for item in file.tree.body
        if not isinstance(item, (*FUNCTIONS, ast.ClassDef, ast.Import, ast.ImportFrom))
        and not (isinstance(item, ast.If) and is_main_guard(item.test))
    ]


def _used_in(file: Module, node: ast.AST) -> Iterator[tuple[Module, ast.AST]]:
    """The functions and classes of the project that something names."""
    for kind in (ast.Name, ast.Attribute):
        for used in file.nodes(kind, inside=node):
            if not isinstance(used, (ast.Name, ast.Attribute)):
                continue
            if not isinstance(used.ctx, ast.Load):
                continue
            name = file.qualified_name(used)
            found = None if name is None else file.project_definition(name)
            if found is not None:
                yield found
            elif isinstance(used, ast.Name):
                for binding in file.bindings(used)[1]:
                    if isinstance(binding, (*FUNCTIONS, ast.ClassDef)):
                        yield file, binding
