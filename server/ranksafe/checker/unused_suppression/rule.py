"""RS001 unused-suppression: what is known of it. `ranksafe.checker.suppression` finds it after all other rules."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from ranksafe.checker.finding import Finding, Level
from ranksafe.checker.rule import Rule, RuleMetadata
from ranksafe.localization import Translated

if TYPE_CHECKING:
    from ranksafe.launch.context import LaunchContext
    from ranksafe.semantics.module import Module

UNUSED_SUPPRESSION = RuleMetadata(
    code="RS001",
    name="unused-suppression",
    summary=Translated("a suppression comment that silences nothing", "没有屏蔽任何提示的屏蔽注释"),
    level=Level.INFORMATION,
    since="0.1.0",
)


class UnusedSuppression(Rule):
    """Listens to nothing: which comments are unused is known only when all other rules have spoken."""

    metadata: ClassVar[RuleMetadata] = UNUSED_SUPPRESSION

    def check(
        self,
        node: ast.AST,  # noqa: ARG002
        module: Module,  # noqa: ARG002
        launch: LaunchContext,  # noqa: ARG002
    ) -> Iterator[Finding]:
        """Nothing."""
        yield from ()
