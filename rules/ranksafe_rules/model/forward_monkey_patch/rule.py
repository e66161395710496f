"""RS512: a forward put on one instance, which stays bound to that instance in DataParallel's copies."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ranksafe.checker.finding import Finding, Level, Related
from ranksafe.checker.rule import Rule, RuleMetadata, Symptom
from ranksafe.launch.context import LaunchContext
from ranksafe.localization import Translated
from ranksafe.semantics.module import Module

from ranksafe_rules._shared.plain_python import data_parallel_possible
from ranksafe_rules._shared.replicas import wrapped_models
from ranksafe_rules.model.forward_monkey_patch.binding import is_bound_to, is_instance, root_name

_MESSAGE = Translated(
    "This forward belongs to the one object it was made for. DataParallel's replicas copy the attribute, so all of "
    "them run the original module with the first GPU's weights. Override forward in a subclass instead.",
    "这个 forward 只属于创建时绑定的那个对象。DataParallel 的副本会复制该属性，"
    "因此所有副本都会用第一块 GPU 上的权重运行原模块。"
    "请改为在子类中重写 forward。",
)
_WRAPPED = Translated("replicated here", "在此被复制为多个副本")


class ForwardMonkeyPatch(Rule):
    """Finds ``model.forward = types.MethodType(f, model)``."""

    metadata = RuleMetadata(
        code="RS512",
        name="forward-monkey-patch",
        summary=Translated(
            "A forward assigned to an instance runs the original module in every DataParallel replica",
            "赋值给实例的 forward 会让每个 DataParallel 副本都运行原模块",
        ),
        level=Level.WARNING,
        symptom=Symptom.CRASHES,
        since="0.1.0",
        run_signatures=(r"Expected all tensors to be on the same device",),
    )
    listens_to = (ast.Assign,)
    mentions = frozenset({".forward"})
    on_several_gpus = True

    def check(self, node: ast.AST, module: Module, launch: LaunchContext) -> Iterator[Finding]:
        """A finding on the target of the assignment."""
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            return
        target = node.targets[0]
        if not (isinstance(target, ast.Attribute) and target.attr == "forward"):
            return
        if not data_parallel_possible(module, launch) or not is_instance(module, target.value):
            return
        if not is_bound_to(module, node.value, target):
            return
        models = _models_in_same_scope(module, node)
        name = root_name(module, target.value)
        same = [model for model in models if name in _names_in(module, model)]
        if not same and (models or _stays_in_its_function(module, node, name)):
            return
        related = [Related(_WRAPPED, module.range_of(model)) for model in same]
        yield self.finding(module, target, _MESSAGE, related=related)


def _models_in_same_scope(module: Module, node: ast.AST) -> list[ast.expr]:
    """Replicated models named where the patch is made: there, another name is another model."""
    function = module.enclosing_function(node)
    return [
        model for model in wrapped_models(module) if module.enclosing_function(model) is function
    ]


def _stays_in_its_function(module: Module, node: ast.Assign, name: str | None) -> bool:
    """Whether the patched model is made and kept in this function, while the file replicates models in others only."""
    function = module.enclosing_function(node)
    if function is None or name is None or not module.facts.data_parallel or module.facts.trainers:
        return False
    made_here = any(
        isinstance(target, ast.Name) and target.id == name and isinstance(target.ctx, ast.Store)
        for target in module.nodes(ast.Name, inside=function)
    )
    returned = any(
        isinstance(use, ast.Name) and use.id == name
        for statement in module.nodes(ast.Return, inside=function)
        for use in module.nodes(ast.Name, inside=statement)
    )
    handed_on = any(
        isinstance(call, ast.Call)
        and module.function_called(call) is not None
        and any(isinstance(item, ast.Name) and item.id == name for item in call.args)
        for call in module.nodes(ast.Call, inside=function)
    )
    return made_here and not returned and not handed_on


def _names_in(module: Module, model: ast.expr, depth: int = 0) -> set[str]:
    """Variables a model is, or is built of."""
    names = [node for node in module.nodes(ast.Name, inside=model) if isinstance(node, ast.Name)]
    found = {name.id for name in names}
    if depth < 3:
        for name in names:
            for value in module.flow.assigned_values(name):
                found |= _names_in(module, value, depth + 1)
    return found
