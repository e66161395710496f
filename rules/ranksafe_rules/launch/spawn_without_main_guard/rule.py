"""RS112: a file starts processes while it is imported, and each of them imports the file."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from ranksafe.checker.finding import Applicability, Finding, FixOffer, Level, Related
from ranksafe.checker.rule import Rule, RuleMetadata, Scope, Symptom
from ranksafe.launch.context import LaunchContext
from ranksafe.localization import Translated
from ranksafe.semantics.module import Module

from ranksafe_rules.launch.spawn_without_main_guard.guarding import can_be_guarded
from ranksafe_rules.launch.spawn_without_main_guard.starts import start_in

_AGAIN: Final = Translated(
    "This runs whenever the file is imported, and each process that is started imports it: the start inside the start "
    'is refused ("An attempt has been made to start a new process before the current process has finished its '
    'bootstrapping phase")',
    "该文件每次被导入都会执行这一行，而启动的每个进程都会导入该文件：启动过程中的再次启动会被拒绝（“An attempt has "
    "been made to start a new process before the current process has finished its bootstrapping phase”）",
)
_STARTED: Final = Translated("the processes are started here", "进程在此处启动")
_GUARD: Final = FixOffer(
    "add-main-guard",
    Translated('Put it under if __name__ == "__main__":', '放到 if __name__ == "__main__": 之下'),
    Applicability.SAFE,
)


class SpawnWithoutMainGuard(Rule):
    """Looks at the statements of the file that are outside functions, classes and conditions."""

    metadata = RuleMetadata(
        code="RS112",
        name="spawn-without-main-guard",
        summary=Translated(
            "processes started at module level without a main guard",
            "在模块顶层启动进程而没有 main 保护",
        ),
        level=Level.WARNING,
        symptom=Symptom.CRASHES,
        since="0.1.0",
        run_signatures=(
            r"An attempt has been made to start a new process before the\s+current process has finished its "
            r"bootstrapping phase",
            r"ProcessExitedException: process \d+ terminated with exit code 1",
        ),
    )
    scope = Scope.MODULE
    mentions = frozenset({"spawn", "start_processes", "forkserver"})

    def check(self, node: ast.AST, module: Module, launch: LaunchContext) -> Iterator[Finding]:  # noqa: ARG002
        """A finding on each statement that starts processes."""
        if module.path is not None and module.path.endswith(".ipynb"):
            return
        for statement in top_level(module):
            start = start_in(module, statement)
            if start is None or module.guards(statement):
                continue
            call = next(item for item in ast.walk(statement) if isinstance(item, ast.Call))
            related = [] if start is call else [Related(_STARTED, module.range_of(start))]
            fixes = [_GUARD] if can_be_guarded(module, statement) else []
            yield self.finding(module, call.func, _AGAIN, related=related, fixes=fixes)


def top_level(module: Module) -> list[ast.stmt]:
    """The statements that run when the file is imported."""
    return [
        statement
        for kind in (ast.Expr, ast.Assign, ast.With)
        for statement in module.nodes(kind)
        if isinstance(statement, ast.stmt) and isinstance(module.parent(statement), ast.Module)
    ]
