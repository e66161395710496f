"""RS523: a model's parameters are changed after DistributedDataParallel has looked at them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from ranksafe.checker.finding import Finding, Level, Related
from ranksafe.checker.rule import Rule, RuleMetadata, Scope, Symptom
from ranksafe.launch.context import LaunchContext
from ranksafe.localization import Translated
from ranksafe.semantics.module import Module

from ranksafe_rules._shared.loss_inputs import without_gradients
from ranksafe_rules._shared.wrapped_models import DISTRIBUTED, Wrapped, Wrapper
from ranksafe_rules._shared.wrapper_levels import distributed_level
from ranksafe_rules.model.model_changed_after_wrapping.changes import (
    Change,
    Kind,
    change_at,
    is_toggled,
)
from ranksafe_rules.model.model_changed_after_wrapping.freezes import may_be_frozen

_MESSAGES: Final = {
    Kind.FROZEN: Translated(
        "{what} is frozen after DistributedDataParallel was built, which goes on waiting for its gradients: the second "
        'forward fails ("Expected to have finished reduction in the prior iteration"); freeze it before wrapping',
        "{what} 在 DistributedDataParallel 构建之后才冻结，而它仍在等待这些梯度：第二次前向会失败"
        "（“Expected to have finished reduction in the prior iteration”）；请在包装之前冻结",
    ),
    Kind.TRAINED: Translated(
        "{what} is unfrozen after DistributedDataParallel was built, which does not reduce its gradients: the ranks "
        "drift apart silently; unfreeze it before wrapping, or wrap again",
        "{what} 在 DistributedDataParallel 构建之后才解冻，其梯度不会被归约："
        "各 rank 的权重会悄悄分叉；请在包装之前解冻，或重新包装",
    ),
    Kind.NEW: Translated(
        "{what} gets parameters that DistributedDataParallel has not seen: their gradients are not reduced, and each "
        "rank initialises and trains them for itself; change the model before wrapping",
        "{what} 得到了 DistributedDataParallel 没有见过的参数：其梯度不会被归约，各 rank 各自初始化、各自训练；"
        "请在包装之前修改模型",
    ),
}
_WRAPPED: Final = Translated("the parameters are registered here", "参数在此处登记")


class ModelChangedAfterWrapping(Rule):
    """Listens to what freezes, unfreezes and replaces."""

    metadata = RuleMetadata(
        code="RS523",
        name="model-changed-after-wrapping",
        summary=Translated(
            "Parameters frozen, unfrozen or added after DistributedDataParallel was built",
            "在 DistributedDataParallel 构建之后冻结、解冻或增加参数",
        ),
        level=Level.WARNING,
        symptom=Symptom.WRONG,
        since="0.1.0",
    )
    scope = Scope.MODULE
    at_rest = True
    listens_to = (ast.Call, ast.Assign)
    called_names = frozenset({"requires_grad_", "add_module"})
    mentions = frozenset({"DistributedDataParallel", "ccelerator"})
    on_several_gpus = True

    def check(self, node: ast.AST, module: Module, launch: LaunchContext) -> Iterator[Finding]:
        """A finding where a change comes too late."""
        change = change_at(module, node)
        if change is None or without_gradients(module, node) or _is_wrapped_again(module, node):
            return
        for wrapped in change.wrapped:
            if wrapped.how is Wrapper.TRAINER or _is_harmless(module, change, wrapped):
                continue
            level = distributed_level(module, launch, wrapped)
            if level is None or is_toggled(module, change):
                continue
            if change.kind is Kind.TRAINED and not may_be_frozen(module, node, change.wrapped):
                continue
            yield self.finding(
                module,
                node,
                _MESSAGES[change.kind].filled(what=module.text_of(change.what)),
                level=level,
                related=[Related(_WRAPPED, module.range_of(wrapped.place))],
            )
            return


def _is_wrapped_again(module: Module, node: ast.AST) -> bool:
    return any(
        module.order_of(call) > module.order_of(node)
        and module.enclosing_function(call) is module.enclosing_function(node)
        for call in module.calls(DISTRIBUTED)
    )


def _is_harmless(module: Module, change: Change, wrapped: Wrapped) -> bool:
    """Freezing everything ends the training; freezing a part is what `find_unused_parameters` is for."""
    if change.kind is not Kind.FROZEN:
        return False
    if change.whole:
        return True
    if wrapped.how is Wrapper.PREPARED:
        return bool(module.calls_written("DistributedDataParallelKwargs"))
    if not isinstance(wrapped.place, ast.Call):
        return True
    given = module.argument(wrapped.place, "find_unused_parameters")
    return given is not None and given.only_constant() is not False
