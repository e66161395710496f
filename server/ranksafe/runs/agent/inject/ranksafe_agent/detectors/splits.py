"""Random choices that every rank must make alike: random_split, and the order of a DistributedSampler.

Equal random numbers on all ranks are not judged: after ``set_seed`` they are what most correct scripts have.
"""

from __future__ import annotations

import functools
import hashlib
from typing import Any, Callable

from .watch import Watch, is_user_file, stack

_MOST = 32


class _Splits:
    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.splits = 0
        self.orders = 0

    def split(self, dataset: Any, parts: Any) -> None:
        """A dataset was split at random."""
        if self.splits >= _MOST or type(dataset).__name__ == "Subset":
            return
        self.splits += 1
        told = hashlib.sha256()
        for part in parts:
            told.update(repr([int(index) for index in part.indices]).encode())
        self.watch.journal.write(
            "split",
            number=self.splits,
            lengths=[len(part) for part in parts],
            digest=told.hexdigest(),
            frames=_user_frames(),
        )

    def order(self, sampler: Any) -> None:
        """A DistributedSampler is asked for its share."""
        if self.orders >= _MOST:
            return
        self.orders += 1
        self.watch.journal.write(
            "order",
            number=self.orders,
            replicas=int(sampler.num_replicas),
            length=len(sampler.dataset),
            seed=int(sampler.seed),
            epoch=int(sampler.epoch),
            shuffle=bool(sampler.shuffle),
            frames=_user_frames(),
        )


def hooks(watch: Watch) -> dict[str, Callable[[Any], None]]:
    """What to do after which import."""
    splits = _Splits(watch)
    return {
        "torch.utils.data.dataset": functools.partial(_hook_split, splits),
        "torch.utils.data.distributed": functools.partial(_hook_sampler, splits),
    }


def _hook_split(splits: _Splits, module: Any) -> None:
    random_split = module.random_split

    @functools.wraps(random_split)
    def watched_split(dataset: Any, *arguments: Any, **keywords: Any) -> Any:
        parts = random_split(dataset, *arguments, **keywords)
        splits.watch.attempt(splits.split, dataset, parts)
        return parts

    module.random_split = watched_split


def _hook_sampler(splits: _Splits, module: Any) -> None:
    kind = module.DistributedSampler
    iterate = kind.__iter__

    @functools.wraps(iterate)
    def watched_iterate(self: Any) -> Any:
        splits.watch.attempt(splits.order, self)
        return iterate(self)

    kind.__iter__ = watched_iterate


def _user_frames() -> list[dict[str, Any]]:
    return [frame for frame in stack() if is_user_file(frame["file"])]
