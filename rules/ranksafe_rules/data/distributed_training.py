"""Models that several ranks train, and the loops that train them."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Final

from ranksafe.checker.finding import Related
from ranksafe.localization import Translated
from ranksafe.semantics.guards import GuardKind
from ranksafe.semantics.module import Module

from ranksafe_rules._shared.trails.follow import trail_of
from ranksafe_rules._shared.trails.holder import Pass, Trail
from ranksafe_rules.data.epochs import run_by, trains
from ranksafe_rules.data.wholes import shares_data

WRAPS: Final = (
    "torch.nn.parallel.DistributedDataParallel",
    "torch.distributed.fsdp.FullyShardedDataParallel",
    "apex.parallel.DistributedDataParallel",
)
"""They average gradients over all ranks and leave the data to their user (torch 2.13.0, docstrings)."""


_WORDS: Final = ("DistributedDataParallel", "DDP", "FullyShardedDataParallel", "FSDP")


@dataclass(frozen=True, slots=True)
class Wrap:
    """The construction of a wrapper, in its file."""

    module: Module
    call: ast.Call

    def related(self, asker: Module, message: Translated) -> Related:
        """The place, seen from the file that a finding is in."""
        place = self.module.range_of(self.call.func)
        return Related(message, place, self.module.path_from(asker))

    @property
    def always(self) -> bool:
        """Whether no condition is around it."""
        return not self.module.guards(self.call)


def may_be_wrapped(module: Module) -> bool:
    """Whether the file, or one that imports it, names such a wrapper."""
    return any(module.users_mention(word) for word in _WORDS)


def wrap_trained_with(trail: Trail) -> Wrap | None:
    """The wrap of a model that is trained in a loop over the loader, in a file that the loader comes through.

    None when no such loop is seen, or data may be shared out where it is.
    """
    wraps = [Wrap(file, call) for file in trail.files for call in file.calls(*WRAPS)]
    if not wraps or not trail.passes or trail.given_up or trail.unknown:
        return None
    if any(other.code_says(shares_data) for other in trail.files[1:]):
        return None
    loops = [
        run_by(found) for found in trail.passes if not _depends_on_launch(found) and trains(found)
    ]
    for wrap in wraps if loops else ():
        models = {id(holder.node) for holder in trail_of(wrap.module, wrap.call).holders}
        if any(_holds_one_of(models, node) for run in loops for _, node in run):
            return wrap
    return None


def _depends_on_launch(found: Pass) -> bool:
    """Whether the loader is made under a condition on the launch or the rank: others may get another one."""
    return any(
        guard.kind is not GuardKind.OTHER
        for node in found.holder.made
        for guard in found.module.guards(node)
    )


def _holds_one_of(models: set[int], node: ast.AST) -> bool:
    return any(id(item) in models for item in ast.walk(node))
