"""RS505: the user's own 0-d tensor, or tensor of length one, is handed to a forward under nn.DataParallel."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ranksafe.checker.finding import Applicability, Finding, FixOffer, Level, Related
from ranksafe.checker.rule import Rule, RuleMetadata
from ranksafe.launch.context import LaunchContext
from ranksafe.localization import Translated
from ranksafe.semantics.facts import DATA_PARALLEL
from ranksafe.semantics.module import Module

from ranksafe_rules._shared import trainer_methods as methods
from ranksafe_rules._shared.plain_python import at_most, data_parallel_level
from ranksafe_rules._shared.small_tensors import Small, small_tensor

_CRASH = Translated(
    "nn.DataParallel splits every tensor it is given, and a 0-d tensor cannot be split: RuntimeError: "
    "chunk expects at least a 1-dimensional tensor; hand over a Python number",
    "nn.DataParallel 会拆分传入的每个张量，而 0 维张量无法拆分：RuntimeError: chunk expects at least a "
    "1-dimensional tensor；请改传 Python 数值",
)
_ONE_REPLICA = Translated(
    "nn.DataParallel makes one piece of a tensor of length one and then runs one replica only: {lost} of "
    "{gpus} parts of the batch are dropped without an error; hand over a Python number or one entry per "
    "row",
    "长度为 1 的张量只能拆出一份，nn.DataParallel 因此只运行一个副本：批次 {gpus} 份中的 {lost} 份被静默"
    "丢弃；请改传 Python 数值，或为每一行提供一个元素",
)
_UNEVEN = Translated(
    "nn.DataParallel makes one piece of a tensor of length one, while the other arguments give {gpus}: "
    "AssertionError in parallel_apply; hand over a Python number or one entry per row",
    "长度为 1 的张量只能拆出一份，而其他参数拆出 {gpus} 份：nn.DataParallel 的 parallel_apply 抛出 "
    "AssertionError；请改传 Python 数值，或为每一行提供一个元素",
)
_MISSING = Translated(
    "nn.DataParallel makes one piece of a tensor of length one: the first replica gets it, the other "
    "{lost} run without the {group} arguments; hand over a Python number or one entry per row",
    "长度为 1 的张量只能拆出一份：nn.DataParallel 只把它交给第一个副本，其余 {lost} 个副本运行时没有"
    "{group}参数；请改传 Python 数值，或为每一行提供一个元素",
)
_KEYWORD = Translated("keyword", "关键字")
_POSITIONAL = Translated("positional", "位置")
_WRAPPED = Translated(
    "the model is wrapped in nn.DataParallel here", "模型在此处被 nn.DataParallel 包装"
)
NUMBER = FixOffer(
    key="pass-number",
    title=Translated("Hand over the Python number", "改传 Python 数值"),
    applicability=Applicability.SAFE,
)


class ScalarTensorIntoDataParallel(Rule):
    """See README.md."""

    metadata = RuleMetadata(
        code="RS505",
        name="scalar-tensor-into-data-parallel",
        summary=Translated(
            "A 0-d tensor or one of length one is handed to a model under nn.DataParallel",
            "将 0 维或长度为 1 的张量传入 nn.DataParallel 下的模型",
        ),
        level=Level.WARNING,
        since="0.1.0",
        run_signatures=(r"chunk expects at least a 1-dimensional tensor",),
    )
    listens_to = (ast.Call,)
    mentions = frozenset({"DataParallel", "compute_loss", "training_step"})

    def check(self, node: ast.AST, module: Module, launch: LaunchContext) -> Iterator[Finding]:
        """One finding per argument that cannot be split."""
        assert isinstance(node, ast.Call)
        step = _training_method(module, node)
        wrapped = None if step else _wrapping(module, node)
        if step is None and wrapped is None:
            return
        level = data_parallel_level(module, launch)
        if level is None:
            return
        related = [Related(_WRAPPED, module.range_of(wrapped))] if wrapped is not None else []
        for place, small, is_keyword in _small_arguments(module, node, step):
            message = _message(node, small, is_keyword)
            certain = message in (_CRASH, _UNEVEN)
            gpus = launch.assumed_gpus
            yield self.finding(
                module,
                place,
                message.filled(
                    gpus=gpus, lost=gpus - 1, group=_KEYWORD if is_keyword else _POSITIONAL
                ),
                level=level if certain else at_most(level, Level.WARNING),
                related=related,
                fixes=[NUMBER] if number_in(module, place) is not None else [],
            )


def _training_method(module: Module, call: ast.Call) -> methods.Function | None:
    """The overridden method of a Trainer around ``model(...)``, where ``model`` is what it was given."""
    if not isinstance(call.func, ast.Name):
        return None
    function = module.enclosing_function(call)
    if function is None:
        return None
    found = methods.override_of(
        module, function, "compute_loss", "training_step", "prediction_step"
    )
    names = methods.positional_names(found) if found else []
    return found if len(names) > 1 and names[1] == call.func.id else None


def _wrapping(module: Module, call: ast.Call) -> ast.expr | None:
    """The ``nn.DataParallel(...)`` that made the object which is called."""
    if not module.facts.data_parallel or not isinstance(call.func, (ast.Name, ast.Attribute)):
        return None
    for value in module.values(call.func).known:
        made = value.node
        if isinstance(made, ast.Call) and module.qualified_name(made.func) == DATA_PARALLEL:
            return made
    return None


def _small_arguments(
    module: Module, call: ast.Call, step: methods.Function | None
) -> Iterator[tuple[ast.expr, Small, bool]]:
    """Arguments (and items stored into a ``**dictionary`` before the call) that are too small to be split."""
    batch = methods.positional_names(step)[2:3] if step is not None else []

    def is_tensor(node: ast.expr) -> bool:
        return _is_made_of(module, node, batch)

    arguments = [(item, False) for item in call.args]
    arguments += [(keyword.value, True) for keyword in call.keywords]
    for argument, is_keyword in arguments:
        small = small_tensor(module, argument, is_tensor)
        if small is not None:
            yield argument, small, is_keyword
    for keyword in call.keywords:
        if keyword.arg is None and isinstance(keyword.value, ast.Name):
            for value in _stored_items(module, call, keyword.value):
                small = small_tensor(module, value, is_tensor)
                if small is not None:
                    yield value, small, True


def _stored_items(module: Module, call: ast.Call, dictionary: ast.Name) -> Iterator[ast.expr]:
    function = module.enclosing_function(call)
    for node in module.nodes(ast.Assign, inside=function) if function is not None else ():
        if not isinstance(node, ast.Assign) or module.order_of(node) > module.order_of(call):
            continue
        for target in node.targets:
            if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
                if target.value.id == dictionary.id:
                    yield node.value


def _is_made_of(module: Module, node: ast.expr, batch: list[str]) -> bool:
    """Whether an expression is a tensor for certain: made of ``inputs[...]``, or by a function of torch."""
    while True:
        if isinstance(node, ast.Subscript):
            if isinstance(node.value, ast.Name) and node.value.id in batch:
                return True
            node = node.value
        elif isinstance(node, ast.Call):
            name = module.qualified_name(node.func)
            if name is not None and name.startswith("torch.") and name[6:].islower():
                return True
            node = node.func
        elif isinstance(node, ast.Attribute):
            node = node.value
        elif isinstance(node, ast.Compare):
            node = node.left
        else:
            return False


def _message(call: ast.Call, small: Small, is_keyword: bool) -> Translated:
    """What happens, by how `scatter_kwargs` and `parallel_apply` of torch 2.13 treat the two groups of arguments."""
    if small is Small.ZERO_DIMENSIONAL:
        return _CRASH
    if not is_keyword:
        return _MISSING if call.keywords else _ONE_REPLICA
    if not call.args:
        return _ONE_REPLICA
    return _UNEVEN if len(call.args) == 1 else _MISSING


def number_in(module: Module, argument: ast.expr) -> ast.expr | None:
    """The number in ``torch.tensor(number)`` or ``torch.tensor([number])``, ``.to(...)`` and the like left out."""
    while isinstance(argument, ast.Call) and isinstance(argument.func, ast.Attribute):
        if module.qualified_name(argument.func) in ("torch.tensor", "torch.as_tensor"):
            data = argument.args[0] if argument.args else None
            if isinstance(data, (ast.List, ast.Tuple)):
                return data.elts[0] if len(data.elts) == 1 else None
            return data
        argument = argument.func.value
    return None
