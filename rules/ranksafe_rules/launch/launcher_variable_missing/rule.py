"""RS117: a script needs the variables of a launcher, and plain python starts it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ranksafe.checker.finding import Applicability, Finding, FixOffer, Level
from ranksafe.checker.rule import Rule, RuleMetadata, Scope, Symptom
from ranksafe.launch.context import LaunchContext, Launcher
from ranksafe.localization import Translated
from ranksafe.semantics.module import Module

from ranksafe_rules.launch.launcher_variable_missing.variables import (
    names_a_launcher,
    reads_at_start,
)

_KNOWN: Final = Translated(
    "{variable} is set by torchrun and accelerate launch; plain python starts this script, as the settings say, and it "
    "ends here because {variable} is not set",
    "{variable} 由 torchrun 和 accelerate launch 设置；按照设置，该脚本由普通的 python 启动，会因 {variable} 未设置而"
    "在此处结束",
)
_COMMAND: Final = Translated(
    "{variable} is set by torchrun and accelerate launch; {file}:{line} starts this script with plain python, and then "
    "it ends here because {variable} is not set",
    "{variable} 由 torchrun 和 accelerate launch 设置；{file}:{line} 用普通的 python 启动该脚本，此时会因 {variable} "
    "未设置而在此处结束",
)
_FALLBACK: Final = FixOffer(
    "fallback",
    Translated("Go on as a single process where it is not set", "未设置时作为单个进程继续运行"),
    Applicability.SAFE,
)


class LauncherVariableMissing(Rule):
    """Looks at scripts that are started with plain python."""

    metadata = RuleMetadata(
        code="RS117",
        name="launcher-variable-missing",
        summary=Translated(
            "a script for torchrun that plain python starts",
            "为 torchrun 编写的脚本由普通的 python 启动",
        ),
        level=Level.WARNING,
        symptom=Symptom.CRASHES,
        since="0.1.0",
        run_signatures=(
            r"KeyError: '(LOCAL_)?RANK'",
            r"environment variable RANK expected, but not set",
        ),
    )
    scope = Scope.MODULE
    at_rest = True
    mentions = frozenset({"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "init_process_group"})
    on_several_gpus = True

    def check(self, node: ast.AST, module: Module, launch: LaunchContext) -> Iterator[Finding]:  # noqa: ARG002
        """A finding on the first read: the script ends there."""
        if launch.launcher.starts_one_process_per_gpu or not module.facts.is_entry:
            return
        first = next(reads_at_start(module), None)
        if first is None:
            return
        fixes = [] if first.fallback is None else [_FALLBACK]
        if launch.launcher is Launcher.PYTHON:
            message = _KNOWN.filled(variable=first.variable)
            yield self.finding(module, first.node, message, level=Level.ERROR, fixes=fixes)
            return
        start = None if module.text_says(names_a_launcher) else module.plain_start()
        if start is not None:
            message = _COMMAND.filled(
                variable=first.variable, file=_short(start.file, module), line=start.line
            )
            yield self.finding(module, first.node, message, fixes=fixes)


def _short(file: Path, module: Module) -> str:
    """The file as seen from the script's folder or one above it; otherwise its name."""
    folder = Path(module.path or "").parent
    for parent in (folder, *folder.parents[:3]):
        if file.is_relative_to(parent):
            return file.relative_to(parent).as_posix()
    return file.name
