"""RS116: a script uses the process group, and nobody makes it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from ranksafe.checker.finding import Finding, Level
from ranksafe.checker.rule import Rule, RuleMetadata, Scope, Symptom
from ranksafe.launch.context import LaunchContext
from ranksafe.localization import Translated
from ranksafe.semantics.module import Module

from ranksafe_rules._shared.wording import in_one_line
from ranksafe_rules.launch.group_never_made.whole_programs import (
    calls_without_a_group,
    is_whole_program,
)

_MESSAGE: Final = Translated(
    "{call} needs the process group, and nothing in this script makes it: call torch.distributed.init_process_group() "
    'before ("Default process group has not been initialized")',
    "{call} 需要进程组，而该脚本中没有任何代码创建它：请先调用 torch.distributed.init_process_group()（“Default "
    "process group has not been initialized”）",
)


class GroupNeverMade(Rule):
    """Looks at scripts that are whole programs."""

    metadata = RuleMetadata(
        code="RS116",
        name="group-never-made",
        summary=Translated(
            "a process group that the script uses and never makes", "脚本使用了从未创建的进程组"
        ),
        level=Level.WARNING,
        symptom=Symptom.CRASHES,
        since="0.1.0",
        run_signatures=(r"Default process group has not been initialized",),
    )
    scope = Scope.MODULE
    at_rest = True
    mentions = frozenset({"torch.distributed", "DistributedDataParallel", "DistributedSampler"})
    on_several_gpus = True

    def check(self, node: ast.AST, module: Module, launch: LaunchContext) -> Iterator[Finding]:  # noqa: ARG002
        """A finding on the first call that fails: the program ends there."""
        if launch.gpus is not None and launch.gpus < 2:
            return
        if not is_whole_program(module):
            return
        first = next(calls_without_a_group(module), None)
        if first is not None:
            call = in_one_line(module.text_of(first.func))
            yield self.finding(module, first.func, _MESSAGE.filled(call=call))
