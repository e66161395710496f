"""RS317: every rank draws the same noise, because all of them have the same seed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import islice
from typing import Final

from ranksafe.checker.finding import Applicability, Finding, FixOffer, Level, Related
from ranksafe.checker.rule import Rule, RuleMetadata, Scope, Symptom
from ranksafe.launch.context import LaunchContext
from ranksafe.localization import Translated
from ranksafe.semantics.facts import is_main_guard
from ranksafe.semantics.guards import GuardKind
from ranksafe.semantics.module import Module

from ranksafe_rules._shared.every_rank import every_rank, may_run_on_every_rank
from ranksafe_rules._shared.processes import Certainty, is_named_as_test
from ranksafe_rules._shared.wording import in_one_line
from ranksafe_rules.data.same_noise_on_every_rank.noise import drawn_in_training, seeds_alike

_MESSAGE: Final = Translated(
    "with the same seed on all ranks, every rank draws the same random numbers in each step ({draw}): more GPUs bring "
    "no more noise; seed each rank on its own once the model is built, such as seed + rank",
    "所有 rank 的种子相同，因此每一步各 rank 抽取的随机数都一样（{draw}）：增加 GPU 并不会增加噪声的多样性；"
    "请在模型构建之后为每个 rank 单独设置种子，例如 seed + rank",
)
_DRAWN: Final = Translated("the same values on every rank", "每个 rank 上的值都相同")
_OWN: Final = Translated(
    "Let the seed differ between processes (changes the random numbers)",
    "让各进程的种子不同（会改变随机数）",
)
_SET_SEED: Final = "accelerate.utils.set_seed"
_MOST_SHOWN: Final = 3


class SameNoiseOnEveryRank(Rule):
    """Looks at the seeds of a file that trains, and at what its training step draws."""

    metadata = RuleMetadata(
        code="RS317",
        name="same-noise-on-every-rank",
        summary=Translated(
            "Noise that all ranks draw alike, from the same seed",
            "所有 rank 以相同的种子抽取相同的噪声",
        ),
        level=Level.WARNING,
        symptom=Symptom.WRONG,
        since="0.1.0",
    )
    scope = Scope.MODULE
    at_rest = True
    on_several_gpus = True
    mentions = frozenset({"seed(", "manual_seed_all("})

    def check(self, node: ast.AST, module: Module, launch: LaunchContext) -> Iterator[Finding]:  # noqa: ARG002
        """A finding on the seed; information where it is set on a condition only."""
        if every_rank(module, launch) < Certainty.SHOWN or not module.calls_written("backward"):
            return
        # A test compares ranks that were given the same.
        seed = None if is_named_as_test(module) else seeds_alike(module)
        if seed is None or not may_run_on_every_rank(module, seed.call):
            return
        draws = list(islice(drawn_in_training(module, seed), _MOST_SHOWN))
        if not draws:
            return
        file, first = draws[0]
        related = [
            Related(_DRAWN, other.range_of(call), other.path_from(module)) for other, call in draws
        ]
        yield self.finding(
            module,
            seed.call.func,
            _MESSAGE.filled(draw=in_one_line(file.text_of(first))),
            level=Level.INFORMATION if _is_optional(module, seed.call) else Level.WARNING,
            related=related,
            fixes=_offers(module, seed.call),
        )


def _is_optional(module: Module, seed: ast.Call) -> bool:
    """Whether some runs come by the seed: ``if args.seed is not None``."""
    return any(
        guard.kind is GuardKind.OTHER and not is_main_guard(guard.test)
        for guard in module.guards(seed)
    )


def _offers(module: Module, seed: ast.Call) -> list[FixOffer]:
    """Only accelerate knows the rank by itself, once an Accelerator is there."""
    if module.qualified_name(seed.func) != _SET_SEED or len(seed.args) > 1:
        return []
    made = [
        call
        for call in module.calls("accelerate.Accelerator")
        if module.enclosing_function(call) is module.enclosing_function(seed)
        and module.order_of(call) < module.order_of(seed)
    ]
    return [FixOffer("own-seeds", _OWN, Applicability.UNSAFE)] if made else []
