"""RS101: a Trainer script that nothing launches: plain python on several GPUs means nn.DataParallel."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ranksafe.checker.finding import Applicability, Finding, FixOffer, Level, Related
from ranksafe.checker.rule import Rule, RuleMetadata, Symptom
from ranksafe.launch.context import LaunchContext
from ranksafe.localization import Translated
from ranksafe.semantics.facts import TRAINER
from ranksafe.semantics.module import Module

from ranksafe_rules._shared.plain_python import at_most, data_parallel_level
from ranksafe_rules._shared.visible_devices import visible_devices
from ranksafe_rules.launch.implicit_data_parallel import evidence
from ranksafe_rules.launch.implicit_data_parallel.outcome import (
    REFUSING_TRAINERS,
    Outcome,
    outcome_of,
    refusal_of,
)

_BUILT = Translated("the Trainer is built here", "Trainer 在此处创建")
_SEVERAL = Translated("several GPUs are chosen here", "此处选择了多个 GPU")
RUN = FixOffer(
    key="run-with-accelerate",
    title=Translated(
        "Start it with `accelerate launch {script}`", "使用 `accelerate launch {script}` 启动"
    ),
    applicability=Applicability.DISPLAY,
)
LAUNCH_JSON = FixOffer(
    key="write-launch-json",
    title=Translated(
        "Add a VS Code launch configuration that uses accelerate (.vscode/launch.json)",
        "添加使用 accelerate 的 VS Code 启动配置（.vscode/launch.json）",
    ),
    applicability=Applicability.DISPLAY,
)
_GUARD_TITLE = Translated(
    "Stop early when several GPUs are visible and nothing launched the script",
    "可见多个 GPU 而未使用启动器时提前退出",
)
GUARD = FixOffer("insert-guard", _GUARD_TITLE, Applicability.SAFE)
GUARD_UNSURE = FixOffer("insert-guard", _GUARD_TITLE, Applicability.UNSAFE)


class ImplicitDataParallel(Rule):
    """See README.md."""

    metadata = RuleMetadata(
        code="RS101",
        name="implicit-data-parallel",
        summary=Translated(
            "A Trainer script started with plain python uses nn.DataParallel on several GPUs",
            "用 python 直接启动的 Trainer 脚本在多个 GPU 上会使用 nn.DataParallel",
        ),
        level=Level.WARNING,
        symptom=Symptom.WRONG,
        since="0.1.0",
        run_signatures=(
            r"chunk expects at least a 1-dimensional tensor",
            r"does not support .nn\.DataParallel.",
            r"The size of tensor a \(\d+\) must match the size of tensor b \(\d+\) "
            r"at non-singleton dimension 0",
        ),
    )
    listens_to = (ast.Call,)
    called_names = frozenset({"train", *REFUSING_TRAINERS})
    mentions = frozenset({".train(", "Trainer("})

    def check(self, node: ast.AST, module: Module, launch: LaunchContext) -> Iterator[Finding]:
        """A finding on `train`, or where TRL refuses, if nothing shows a launcher."""
        assert isinstance(node, ast.Call)
        built = _construction(module, node)
        if built is None:
            return
        level = data_parallel_level(module, launch)
        if level is None or evidence.shows_another_launch(module, launch, node, built):
            return
        refusal = refusal_of(module, built, launch)
        if built is node:
            # TRL refuses where the Trainer is built; everything else happens in `train`.
            if refusal is not None:
                yield self._report(module, node, launch, level, refusal, [])
        elif refusal is None:
            outcome = outcome_of(module, built, launch)
            # Where neither the start nor the versions are known, there is nothing to say.
            if outcome is not None and (outcome.is_known or level > Level.INFORMATION):
                related = [Related(_BUILT, module.range_of(built.func))]
                yield self._report(module, node, launch, level, outcome, related)

    def _report(
        self,
        module: Module,
        node: ast.Call,
        launch: LaunchContext,
        level: Level,
        outcome: Outcome,
        related: list[Related],
    ) -> Finding:
        several = visible_devices(module, several=True)
        if several is not None:
            related = [*related, Related(_SEVERAL, module.range_of(several))]
        name = (module.path or "train.py").replace("\\", "/").rpartition("/")[2]
        offers = [FixOffer(RUN.key, RUN.title.filled(script=name), RUN.applicability)]
        if outcome.level > Level.INFORMATION:
            offers.append(GUARD if outcome.is_known else GUARD_UNSURE)
        return self.finding(
            module,
            node.func,
            outcome.message.filled(
                transformers=launch.version("transformers"),
                trl=launch.version("trl"),
                gpus=launch.assumed_gpus,
                lost=launch.assumed_gpus - 1,
            ),
            level=at_most(level, outcome.level),
            related=related,
            fixes=[*offers, LAUNCH_JSON],
        )


def _construction(module: Module, call: ast.Call) -> ast.Call | None:
    """The call that builds the Trainer: ``call`` itself, or where the object came from whose ``train`` it calls."""
    if module.is_subclass(module.qualified_name(call.func), TRAINER):
        return call
    if not (isinstance(call.func, ast.Attribute) and call.func.attr == "train"):
        return None
    for value in module.values(call.func.value).known:
        made = value.node
        if isinstance(made, ast.Call) and value.module is module:
            if module.is_subclass(module.qualified_name(made.func), TRAINER):
                return made
    return None
