"""RS102: a model wrapped in nn.DataParallel by hand is given to a Trainer."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ranksafe.checker.finding import Applicability, Finding, FixOffer, Level, Related
from ranksafe.checker.rule import Rule, RuleMetadata, Symptom
from ranksafe.launch.context import LaunchContext
from ranksafe.localization import Translated
from ranksafe.semantics.facts import DATA_PARALLEL, TRAINER, is_main_guard
from ranksafe.semantics.guards import GuardKind
from ranksafe.semantics.module import Module

_TRL_TRAINER = "trl.SFTTrainer"
_COLUMNS = Translated(
    "a Trainer reads the forward signature of its model to choose the columns, and nn.DataParallel hides it: every "
    "column is dropped (ValueError), on any number of GPUs; hand over the plain model, Trainer places it itself",
    "Trainer 依据模型 forward 的签名选择数据列，而 nn.DataParallel 将其隐藏：所有列都会被丢弃（ValueError），"
    "与 GPU 数量无关；请传入未包装的模型，Trainer 会自行处理",
)
_CONFIG = Translated(
    "{trainer} reads `model.config`, which nn.DataParallel does not have: AttributeError: 'DataParallel' "
    "object has no attribute 'config', on any number of GPUs; hand over the plain model",
    "{trainer} 会读取 `model.config`，而 nn.DataParallel 没有这个属性：AttributeError: 'DataParallel' "
    "object has no attribute 'config'，与 GPU 数量无关；请传入未包装的模型",
)
_OWN_COLUMNS = Translated(
    "a Trainer wraps the model itself (nn.DataParallel, or DDP under a launcher); a model wrapped by "
    "hand keeps it from choosing, and hides `model.config` and the forward signature",
    "Trainer 会自行包装模型（nn.DataParallel，或在启动器下使用 DDP）；手动包装使其无法选择，并隐藏 "
    "`model.config` 和 forward 的签名",
)
_BUILT = Translated("the wrapped model is given to this Trainer", "包装后的模型传给了这个 Trainer")
UNWRAP = FixOffer(
    key="unwrap-model",
    title=Translated("Hand over the plain model", "传入未包装的模型"),
    applicability=Applicability.SAFE,
)


class DataParallelInTrainer(Rule):
    """See README.md."""

    metadata = RuleMetadata(
        code="RS102",
        name="data-parallel-in-trainer",
        summary=Translated(
            "A model wrapped in nn.DataParallel by hand is given to a Trainer",
            "将手动用 nn.DataParallel 包装的模型传给 Trainer",
        ),
        level=Level.WARNING,
        symptom=Symptom.CRASHES,
        since="0.1.0",
        run_signatures=(
            r"'DataParallel' object has no attribute 'config'",
            r"The batch received was empty, your model won't be able to train on it",
        ),
    )
    listens_to = (ast.Call,)
    called_names = frozenset({"DataParallel"})
    mentions = frozenset({"DataParallel"})

    def check(self, node: ast.AST, module: Module, launch: LaunchContext) -> Iterator[Finding]:
        """A finding where the model is wrapped, if a Trainer gets it."""
        assert isinstance(node, ast.Call)
        if module.qualified_name(node.func) != DATA_PARALLEL or not _may_run(module, node, launch):
            return
        trainer = _trainer_given(module, node)
        if trainer is None:
            return
        name = module.qualified_name(trainer.func)
        level, message = Level.WARNING, _COLUMNS
        if module.is_subclass(name, _TRL_TRAINER):
            message = _CONFIG.filled(trainer=(name or "").rpartition(".")[2])
            if launch.version("trl") is not None:
                level = Level.ERROR
        elif name is not None and name.startswith("trl."):
            message = _OWN_COLUMNS
        elif _keeps_columns(module, trainer):
            level, message = Level.INFORMATION, _OWN_COLUMNS
        elif launch.version("transformers") is not None and _runs_always(module, node):
            level = Level.ERROR
        yield self.finding(
            module,
            node,
            message,
            level=level,
            related=[Related(_BUILT, module.range_of(trainer.func))],
            fixes=[UNWRAP] if node.args else [],
        )


def _may_run(module: Module, call: ast.Call, launch: LaunchContext) -> bool:
    """False where the wrap stands behind a test for several devices and there is one."""
    counted = any(guard.kind is GuardKind.DEVICE_COUNT for guard in module.guards(call))
    return not (counted and launch.gpus is not None and launch.gpus < 2)


def _runs_always(module: Module, call: ast.Call) -> bool:
    return all(is_main_guard(guard.test) for guard in module.guards(call))


def _trainer_given(module: Module, wrapped: ast.Call) -> ast.Call | None:
    if not module.facts.trainers:
        return None
    for call in module.calls(TRAINER):
        model = module.argument(call, "model", 0)
        if model is not None and any(value.node is wrapped for value in model.known):
            return call
    return None


def _keeps_columns(module: Module, trainer: ast.Call) -> bool:
    """Whether ``remove_unused_columns=False`` is set, or may be."""
    arguments = module.argument(trainer, "args", 1)
    if arguments is None:
        return False
    for value in arguments.known:
        if isinstance(value.node, ast.Call):
            removes = module.argument(value.node, "remove_unused_columns")
            return removes is not None and removes.only_constant() is not True
    return True
