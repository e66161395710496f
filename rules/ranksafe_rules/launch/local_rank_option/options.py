"""The ``--local_rank`` option of a parser, and who else tells the program its local rank."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ranksafe.semantics.cross_file import LaunchCommand
from ranksafe.semantics.module import Module

OPTION: Final = "--local_rank"
DASHED: Final = "--local-rank"
VARIABLE: Final = "LOCAL_RANK"
_DESTINATION: Final = "local_rank"

_SAYS_OTHERWISE: Final = (
    VARIABLE,
    DASHED,
    "deepspeed",
    "HfArgumentParser",
)
"""Words after which the option may be right: the variable that every launcher of torch sets (Open MPI's is called
OMPI_COMM_WORLD_LOCAL_RANK); the other spelling; DeepSpeed, whose launcher passes ``--local_rank=N`` itself
(deepspeed/launcher/launch.py at commit 048b0d5); a parser with options of its own."""
_PASSES: Final = re.compile(r"torch\.distributed\.launch\b(?!.*--use[_-]env\b)", re.DOTALL)
_OWN_START: Final = ("spawn", "start_processes")
"""Functions of torch.multiprocessing after which the script itself numbers its processes."""


@dataclass(frozen=True, slots=True)
class LocalRankOption:
    """One ``parser.add_argument("--local_rank", ...)``."""

    call: ast.Call
    spelled: ast.Constant
    """The string ``"--local_rank"``."""

    def keyword(self, name: str) -> ast.expr | None:
        """What a keyword of the call is given."""
        return next((item.value for item in self.call.keywords if item.arg == name), None)

    def default(self, module: Module) -> str | None:
        """The value without the option, as Python writes it; None when that is not a plain one."""
        given = self.keyword("default")
        if given is None:
            return "None"
        values = module.values(given)
        constants = {repr(value.constant) for value in values.known if value.is_constant}
        known = values.complete and len(constants) == len(values.known) == 1
        return constants.pop() if known else None

    def may_start_with_variable(self, module: Module) -> bool:
        """Whether the default can come from the environment instead: it is a plain one, which counts, and is not
        computed already."""
        plain = self.keyword("type") is not None and not self.is_required
        return plain and self.default(module) is not None

    @property
    def is_required(self) -> bool:
        """Whether the parser stops where the option is not given."""
        given = self.keyword("required")
        return isinstance(given, ast.Constant) and given.value is True


def option_of(call: ast.Call) -> LocalRankOption | None:
    """The option that a call adds, when it is ``--local_rank``, stored under that name, with a plain default."""
    for argument in call.args:
        if isinstance(argument, ast.Constant) and argument.value == OPTION:
            option = LocalRankOption(call, argument)
            destination = option.keyword("dest")
            renamed = isinstance(destination, ast.Constant) and destination.value != _DESTINATION
            spread = any(item.arg is None for item in call.keywords)
            return None if renamed or spread else option
    return None


def reads(module: Module) -> list[ast.Attribute]:
    """Where the file reads ``x.local_rank``."""
    return [node for node in _attributes(module) if isinstance(node.ctx, ast.Load)]


def passing_command(module: Module) -> LaunchCommand | None:
    """The first command of the project that starts the file by torch.distributed.launch so that it passes the dashed
    option (torch 2.13.0, distributed/run.py ``config_from_args``: not with ``--use-env``), to a parser that stops at
    options that it does not know."""
    if module.calls_written("parse_known_args") and not module.calls_written("parse_args"):
        return None
    return next((item for item in module.launch_commands() if _PASSES.search(item.text)), None)


def told_otherwise(module: Module, option: LocalRankOption) -> bool:
    """Whether the file, its users or a helper that it calls may learn the local rank elsewhere."""
    return (
        any(module.users_mention(word) for word in _SAYS_OTHERWISE)
        or any(module.calls_written(name) for name in _OWN_START)
        or _is_written_elsewhere(module, option)
        or any(_is_computed(module, node) for node in _attributes(module))
        or any(
            isinstance(call, ast.Call) and _helper_reads_variable(module, call)
            for call in module.nodes(ast.Call)
        )
    )


def _attributes(module: Module) -> Iterator[ast.Attribute]:
    for node in module.nodes(ast.Attribute):
        if isinstance(node, ast.Attribute) and node.attr == _DESTINATION:
            yield node


def _is_written_elsewhere(module: Module, option: LocalRankOption) -> bool:
    """Whether another string says the option, for a command line that the file builds itself, or sets the attribute
    by its name (``setattr(args, "local_rank", n)``)."""
    return any(
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and not _is_inside(module, node, option.call)
        and (node.value.startswith(OPTION) or node.value == _DESTINATION)
        for node in module.nodes(ast.Constant)
    )


def _is_inside(module: Module, node: ast.AST, call: ast.Call) -> bool:
    parent = module.parent(node)
    return parent is call or (parent is not None and module.parent(parent) is call)


def _is_computed(module: Module, attribute: ast.Attribute) -> bool:
    """Whether the attribute is given a value that is no constant."""
    if isinstance(attribute.ctx, ast.Load):
        return False
    assigned = module.assigned_to_attribute(attribute)
    values = None if assigned is None else module.values(assigned)
    return values is None or not values.are_constants


def _helper_reads_variable(module: Module, call: ast.Call) -> bool:
    """Whether the file of the called function looks at LOCAL_RANK."""
    called = module.qualified_name(call.func)
    found = None if called is None else module.project_definition(called)
    return found is not None and VARIABLE in found[0].source.text
