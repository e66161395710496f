"""RS534: whether a backward reduces the gradients is said after the forward in which it was decided."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from ranksafe.checker.finding import Finding, Level, Related
from ranksafe.checker.rule import Rule, RuleMetadata, Scope, Symptom
from ranksafe.launch.context import LaunchContext
from ranksafe.localization import Translated
from ranksafe.semantics.module import Module

from ranksafe_rules.model.no_sync_after_forward.order import Late, set_after_forward

_IN_VAIN: Final = Translated(
    "no_sync() changes nothing here: whether this backward reduces the gradients was decided in the forward, outside "
    "of it; put the forward into the same block",
    "此处的 no_sync() 不起作用：这次反向是否归约梯度已在前向中决定，而前向不在其中；请把前向也放入同一个代码块",
)
_TOO_LATE: Final = Translated(
    "require_backward_grad_sync is read in the forward: set after it, it is for the next one, so that gradients are "
    "reduced after the wrong step and the ranks drift apart; set it before the forward",
    "require_backward_grad_sync 在前向中读取：在前向之后设置，只对下一次前向生效，于是在错误的步上归约梯度，"
    "各 rank 的权重会逐渐不同；请在前向之前设置",
)
_FORWARD: Final = Translated("the forward that decides", "在这次前向中决定")
_BACKWARD: Final = Translated("the backward that it is meant for", "它所针对的反向")


class NoSyncAfterForward(Rule):
    """Listens to backwards."""

    metadata = RuleMetadata(
        code="RS534",
        name="no-sync-after-forward",
        summary=Translated(
            "no_sync or its flag set after the forward of a DistributedDataParallel",
            "在 DistributedDataParallel 的前向之后才使用 no_sync 或设置其标志",
        ),
        level=Level.WARNING,
        symptom=Symptom.WRONG,
        since="0.1.0",
    )
    scope = Scope.MODULE
    at_rest = True
    listens_to = (ast.Call,)
    called_names = frozenset({"backward"})
    mentions = frozenset({"no_sync", "require_backward_grad_sync"})

    def check(self, node: ast.AST, module: Module, launch: LaunchContext) -> Iterator[Finding]:
        """A finding on the block or the assignment that comes too late."""
        assert isinstance(node, ast.Call)
        found = set_after_forward(module, node, launch)
        if found is None:
            return
        related = [
            Related(_FORWARD, module.range_of(found.forward.func)),
            Related(_BACKWARD, module.range_of(node)),
        ]
        message = _IN_VAIN if found.how is Late.BLOCK else _TOO_LATE
        yield self.finding(module, found.place, message, related=related)
