"""RS315: a dataset that every process splits or shuffles at random by itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from ranksafe.checker.finding import Applicability, Finding, FixOffer, Level
from ranksafe.checker.rule import Rule, RuleMetadata, Scope, Symptom
from ranksafe.launch.context import LaunchContext
from ranksafe.localization import Translated
from ranksafe.semantics.guards import GuardKind
from ranksafe.semantics.module import Module

from ranksafe_rules._shared.processes import Certainty, several_processes
from ranksafe_rules.data.rank_values import differs
from ranksafe_rules.data.seeding import seeds_of
from ranksafe_rules.data.unseeded_split.splits import NAMES, is_open, splitter_of

_SEED_WORDS: Final = (
    "seed(",
    "seeds(",
    "seed_everything(",
    "seed_all(",
    "seed_worker(",
    "deterministic(",
)
"""Parts of calls that seed, also through helpers that are called so."""
_DISTRIBUTED_WORDS: Final = ("init_process_group(", "Accelerator(", "mp.spawn(")

_UNSEEDED: Final = Translated(
    "Every process splits the dataset by itself, with random numbers of its own: what one rank validates on, another "
    "one trains on. Give the split a fixed seed",
    "每个进程都用自己的随机数各自划分数据集：一个 rank 的验证数据会成为另一个 rank 的训练数据。请为划分设置固定的种子",
)
_BY_RANK: Final = Translated(
    "The random numbers of this split are seeded with the rank: what one rank validates on, another one trains on. "
    "Give the split one seed for all ranks",
    "这次划分所用的随机数以 rank 为种子：一个 rank 的验证数据会成为另一个 rank 的训练数据。"
    "请让所有 rank 用同一个种子划分",
)
_SHUFFLED: Final = Translated(
    "Every process shuffles the dataset by itself, with random numbers of its own: the shares that the ranks then take "
    "overlap and leave samples out. Give the shuffle a fixed seed",
    "每个进程都用自己的随机数各自打乱数据集：各 rank 随后分到的份额互相重叠，并漏掉一些样本。请为打乱设置固定的种子",
)
_SHUFFLED_BY_RANK: Final = Translated(
    "The random numbers of this shuffle are seeded with the rank: the shares that the ranks then take overlap and "
    "leave samples out. Give the shuffle one seed for all ranks",
    "这次打乱所用的随机数以 rank 为种子：各 rank 随后分到的份额互相重叠，并漏掉一些样本。"
    "请让所有 rank 用同一个种子打乱",
)
_FIX: Final = Translated(
    "Give the split a fixed seed (changes the split)", "为划分设置固定的种子（会改变划分结果）"
)
_FIX_SHUFFLE: Final = Translated(
    "Give the shuffle a fixed seed (changes the order)", "为打乱设置固定的种子（会改变顺序）"
)


class UnseededSplit(Rule):
    """Listens to random splits and shuffles."""

    metadata = RuleMetadata(
        code="RS315",
        name="unseeded-split",
        summary=Translated(
            "A dataset that each process splits or shuffles at random by itself",
            "每个进程各自随机划分或打乱数据集",
        ),
        level=Level.WARNING,
        symptom=Symptom.WRONG,
        since="0.1.0",
        silent_kinds=("different-splits",),
    )
    scope = Scope.MODULE
    at_rest = True
    listens_to = (ast.Call,)
    called_names = NAMES
    mentions = NAMES

    def check(self, node: ast.AST, module: Module, launch: LaunchContext) -> Iterator[Finding]:
        """A finding when nothing makes the split the same in all processes."""
        if not isinstance(node, ast.Call):
            return
        splitter = splitter_of(module, node)
        if splitter is None or not is_open(module, node, splitter):
            return
        if any(guard.kind is GuardKind.RANK for guard in module.guards(node)):
            return
        if not _runs_on_several_ranks(module, launch):
            return
        seeds = list(seeds_of(module))
        by_rank = bool(seeds) and all(differs(module, seed) is not None for seed in seeds)
        if not by_rank and any(module.users_mention(word) for word in _SEED_WORDS):
            return
        messages = (_UNSEEDED, _BY_RANK), (_SHUFFLED, _SHUFFLED_BY_RANK)
        message = messages[splitter.only_shuffles][by_rank]
        title = _FIX_SHUFFLE if splitter.only_shuffles else _FIX
        fixes = [FixOffer("fixed-seed", title, Applicability.UNSAFE)]
        yield self.finding(module, node.func, message, fixes=fixes)


def _runs_on_several_ranks(module: Module, launch: LaunchContext) -> bool:
    certainty = several_processes(module, launch)
    if certainty is not Certainty.POSSIBLE:
        return certainty >= Certainty.SHOWN
    return any(module.users_mention(word) for word in _DISTRIBUTED_WORDS)
